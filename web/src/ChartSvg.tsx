import type {Run} from "./decode";
import {forecastAt, type ForecastBand} from "./forecast";
import {bytes, clock, shown} from "./format";
import {visibleMarks, type Stack} from "./series";
import {byteTicks, timeTicks} from "./ticks";

const kWide = 1040;
const kPlot = 320;
const kLeft = 72;
const kTop = 30;
const kMost = 600;

/** A band's colour as the page's style sheet names it: it follows the theme, and paper. */
export function bandPaint(stack: Stack, i: number): {fill: string; opacity: number} {
  const kind = stack.bands[i].kind;
  const before = stack.bands.slice(0, i).filter(b => b.kind === kind).length;
  if (kind === "retained") return {fill: "var(--retained)", opacity: 0.6};
  if (kind === "rest") return {fill: "var(--rest)", opacity: 1 - 0.18 * Math.min(4, before)};
  return {fill: `var(--band-${before % 8})`, opacity: 1};
}

/** Of many points the highest of each stretch, and the first and the last. */
function thinned(t: Float64Array, value: (i: number) => number, from: number, to: number): number[] {
  const inside = Array.from(t.keys()).filter(i => t[i] >= from && t[i] <= to);
  const list = [...new Set([Math.max(0, (inside[0] ?? 0) - 1), ...inside, Math.min(t.length - 1, (inside[inside.length - 1] ?? 0) + 1)])].filter(i => i >= 0);
  if (list.length <= kMost) return list;
  const out = [list[0]];
  for (let s = 0; s < kMost; ++s) {
    const stretch = list.slice(Math.floor((s * list.length) / kMost), Math.floor(((s + 1) * list.length) / kMost));
    out.push(stretch.reduce((best, i) => (value(i) > value(best) ? i : best), stretch[0]));
  }
  return [...new Set([...out, list[list.length - 1]])].sort((a, b) => a - b);
}

/** Memory over time as a drawing: for paper, and for readers who take it along. The canvas on the screen shows the same. */
export function ChartSvg({run, stack, range, high, limit, forecast, title, peak}: {
  run: Run; stack: Stack; range: [number, number]; high: number; limit: number; forecast: ForecastBand | null; title: string; peak: number | null;
}) {
  const [from, to] = range;
  const right = kWide - 12;
  const bottom = kTop + kPlot;
  const x = (t: number) => kLeft + ((Math.max(from, Math.min(to, t)) - from) / Math.max(1, to - from)) * (right - kLeft);
  const y = (v: number) => bottom - (Math.max(0, Math.min(high, v)) / high) * kPlot;
  const n = stack.bands.length;
  const sum = (i: number, bands: number) => {
    let all = 0;
    for (let b = 0; b < bands; ++b) all += stack.bands[b].bytes[i];
    return all;
  };
  const at = thinned(stack.t, i => sum(i, n), from, to);
  const point = (t: number, v: number) => `${x(t).toFixed(1)},${y(v).toFixed(1)}`;
  const line = thinned(stack.line.t, i => stack.line.bytes[i], from, to).filter(i => Number.isFinite(stack.line.bytes[i]));
  const marks = visibleMarks(run, from, to, (right - kLeft) / 70);
  const legend = [...stack.bands.map((band, i) => ({name: band.name, ...bandPaint(stack, i)})), {name: stack.line.name, fill: "var(--resident)", opacity: 1}];
  const columns = 3;
  const tall = bottom + 40 + Math.ceil(legend.length / columns) * 20 + 6;
  return (
    <svg class="chart-svg" viewBox={`0 0 ${kWide} ${tall}`} role="img" aria-label={title} font-family="ui-sans-serif, system-ui, sans-serif" font-size="12">
      {byteTicks(high).map(v => (
        <g key={v}>
          <line x1={kLeft} x2={right} y1={y(v)} y2={y(v)} stroke="var(--line)" />
          <text x={kLeft - 8} y={y(v) + 4} text-anchor="end" fill="var(--ink-3)">{v === 0 ? "0" : bytes(v)}</text>
        </g>
      ))}
      {timeTicks(from, to, 9).map(t => <text key={t} x={x(t)} y={bottom + 18} text-anchor="middle" fill="var(--ink-3)">{clock(t)}</text>)}
      {at.length > 0 && stack.bands.map((band, b) => (
        <path
          key={band.name} {...paint(bandPaint(stack, b))} stroke="var(--surface)" stroke-width="0.7"
          d={`M${at.map(i => point(stack.t[i], sum(i, b + 1))).join("L")}L${[...at].reverse().map(i => point(stack.t[i], sum(i, b))).join("L")}Z`}
        />
      ))}
      {marks.map((m, i) => (
        <g key={i}>
          <line x1={x(m.t)} x2={x(m.t)} y1={kTop} y2={bottom} stroke="var(--line-strong)" stroke-dasharray="2 3" stroke-opacity="0.6" />
          <text x={x(m.t)} y={kTop - 9} text-anchor="middle" fill="var(--ink-3)" font-size="11">{shown(m.label, 24)}</text>
        </g>
      ))}
      {run.probes.filter(p => p.t >= from && p.t <= to).map((p, i) => <path key={i} d={`M${x(p.t) - 4},${bottom + 7}h8l-4,-7z`} fill="var(--probe)" />)}
      {line.length > 0 && <polyline points={line.map(i => point(stack.line.t[i], stack.line.bytes[i])).join(" ")} fill="none" stroke="var(--resident)" stroke-width="2" />}
      {forecast && to > forecast.from.t && (
        <line x1={x(forecast.from.t)} y1={y(forecast.from.bytes)} x2={x(Math.min(to, forecast.likely))} y2={y(forecastAt(forecast, Math.min(to, forecast.likely)).likely)} stroke="var(--bad)" stroke-width="1.6" stroke-dasharray="6 4" />
      )}
      {peak !== null && (
        <g>
          <line x1={kLeft} x2={right} y1={y(peak)} y2={y(peak)} stroke="var(--ink-2)" stroke-dasharray="1 3" stroke-width="1.5" />
          <text x={kLeft + 6} y={y(peak) - 5} fill="var(--ink-2)" font-size="11">peak, as the kernel counted: {bytes(peak)}</text>
        </g>
      )}
      {Number.isFinite(limit) && limit <= high && (
        <g>
          <line x1={kLeft} x2={right} y1={y(limit)} y2={y(limit)} stroke="var(--bad)" stroke-width="1.5" />
          <text x={right - 6} y={y(limit) - 5} text-anchor="end" fill="var(--bad)" font-size="11">limit {bytes(limit)}</text>
        </g>
      )}
      {legend.map((entry, i) => {
        const left = kLeft + (i % columns) * ((right - kLeft) / columns);
        const top = bottom + 36 + Math.floor(i / columns) * 20;
        return (
          <g key={i}>
            <rect x={left} y={i === legend.length - 1 ? top + 3 : top - 2} width="12" height={i === legend.length - 1 ? 2.5 : 12} rx="2" {...paint(entry)} />
            <text x={left + 18} y={top + 8} fill="var(--ink-2)">{shown(entry.name, 46)}</text>
          </g>
        );
      })}
    </svg>
  );
}

const paint = ({fill, opacity}: {fill: string; opacity: number}) => ({fill, "fill-opacity": opacity === 1 ? undefined : opacity});

/** The highest point of the line that was sampled. */
export function highestSample(stack: Stack): {t: number; bytes: number} {
  const {t, bytes: v} = stack.line;
  const i = v.reduce((best, b, k) => (b > v[best] || Number.isNaN(v[best]) ? k : best), 0);
  return {t: t[i] ?? 0, bytes: v[i] ?? NaN};
}

