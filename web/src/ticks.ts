/** Places for labels on the axes: round numbers of binary units, and of seconds, minutes, hours. */

export function byteTicks(max: number, count = 5): number[] {
  if (!(max > 0)) return [0];
  const unit = 1024 ** Math.max(0, Math.min(5, Math.floor(Math.log(max) / Math.log(1024))));
  const rough = max / unit / count;
  const tens = 10 ** Math.floor(Math.log10(rough));
  const step = unit * tens * ([1, 2, 2.5, 5, 10].find(k => k * tens >= rough) ?? 10);
  const ticks: number[] = [];
  for (let i = 0; i * step <= max * 1.0001; ++i) ticks.push(i * step);
  return ticks;
}

const kSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 14400e3, 43200e3, 86400e3];

export function timeTicks(from: number, to: number, count: number): number[] {
  const rough = (to - from) / Math.max(1, count);
  const step = kSteps.find(s => s >= rough) ?? Math.ceil(rough / 86400e3) * 86400e3;
  const ticks: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) ticks.push(t);
  return ticks;
}
