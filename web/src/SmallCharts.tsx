import {processOf, seenFrom, type Periods, type Run} from "./decode";
import {bytes, percent, plural} from "./format";
import type {FindingData, ProbeData} from "./types";

const kWide = 260;
const kTall = 112;

/** The rounds that a finding speaks of: those of its own process, or of the pool that grows. Null: they were not seen. */
export function roundsOf(run: Run, finding: FindingData): Periods | null {
  const process = processOf(run, finding);
  if (finding.process !== null && !process) return null;
  if (finding.space === "host") return seenFrom(run, process)?.periods ?? null;
  return run.pools.find(p => p.space === finding.space && p.process === finding.process)?.periods ?? null;
}

/** What was tried in its process; of a GPU, or of files in shared memory, these tell nothing. */
export function probesOf(run: Run, finding: FindingData): ProbeData[] {
  const process = processOf(run, finding);
  return finding.space !== "host" || (finding.process !== null && !process) ? [] : (seenFrom(run, process)?.probes ?? []);
}

/** Memory at the same place of every round, with the rate that was found. */
export function Slope({periods: p, finding}: {periods: Periods | null; finding: FindingData}) {
  if (!p || p.x.length < 3) return null;
  const y = p.live.some(v => v > 0) && finding.kind !== "retention" ? p.live : p.rss;
  const points = p.x.map((x, i) => ({x, y: y[i]})).filter(q => Number.isFinite(q.y));
  if (points.length < 3) return null;
  const x0 = points[0].x;
  const x1 = points[points.length - 1].x;
  const low = Math.min(...points.map(q => q.y));
  const high = Math.max(...points.map(q => q.y));
  // A flat run must look flat: a change of less than a tenth is drawn against a tenth, unless it is the growth that was found.
  const pad = Math.max((high - low) * 0.1, 1, finding.kind === "leak" ? high * 0.01 : (high * 0.1 - (high - low)) / 2);
  const px = (x: number) => 6 + ((x - x0) / Math.max(1e-9, x1 - x0)) * (kWide - 12);
  const py = (v: number) => kTall - 18 - ((v - low + pad) / (high - low + 2 * pad)) * (kTall - 34);
  // rounds are named as the program counts them
  const round = (i: number) => Math.round(p.kind !== "timer" ? p.index[i] : p.x[i]);
  const warm = points.filter(q => q.x >= p.warm);
  const last = warm[warm.length - 1] ?? points[points.length - 1];
  const first = warm[0] ?? points[0];
  return (
    <figure>
      <svg viewBox={`0 0 ${kWide} ${kTall}`} role="img" aria-label={`From ${bytes(points[0].y)} to ${bytes(points[points.length - 1].y)} over ${plural(points.length, "round")}`}>
        <rect x={px(x0)} y={10} width={Math.max(0, px(first.x) - px(x0))} height={kTall - 28} fill="var(--sunken)" />
        <line x1={6} x2={kWide - 6} y1={kTall - 18} y2={kTall - 18} stroke="var(--line-strong)" />
        {finding.kind === "leak" && last.x > first.x && (
          <line x1={px(first.x)} y1={py(first.y)} x2={px(last.x)} y2={py(last.y)} stroke="var(--tone)" stroke-width="1.5" stroke-dasharray="5 3" />
        )}
        {points.map((q, i) => <circle key={i} cx={px(q.x)} cy={py(q.y)} r={points.length > 80 ? 1.4 : 2.6} fill={q.x < p.warm ? "var(--line-strong)" : "var(--band-0)"} />)}
        <text x={6} y={kTall - 5}>{p.unit} {round(0)}</text>
        <text x={kWide - 6} y={kTall - 5} text-anchor="end">{round(p.x.length - 1)}</text>
        <text x={kWide - 6} y={9} text-anchor="end">{bytes(high)}</text>
      </svg>
      <figcaption>{finding.space !== "host" ? `In use of ${finding.space}` : y === p.live ? "In use by the allocators" : "Resident"} after every {p.unit}{first.x > x0 ? "; grey is warm-up" : ""}.</figcaption>
    </figure>
  );
}

/** What is left of blocks of every age: a leak keeps some of each, a cache the old ones, churn the newest only. */
export function Cohorts({finding}: {finding: FindingData}) {
  const c = finding.cohorts;
  const sum = c ? c.bytes.reduce((a, b) => a + b, 0) : 0;
  if (!c || sum === 0) return null;
  const most = Math.max(...c.bytes);
  const step = (kWide - 12) / c.bytes.length;
  return (
    <figure>
      <svg viewBox={`0 0 ${kWide} ${kTall}`} role="img" aria-label={`Live bytes by age, oldest first: ${c.bytes.map(bytes).join(", ")}`}>
        <line x1={6} x2={kWide - 6} y1={kTall - 18} y2={kTall - 18} stroke="var(--line-strong)" />
        {c.bytes.map((b, i) => {
          const h = (b / most) * (kTall - 36);
          return <rect key={i} x={8 + i * step} y={kTall - 18 - h} width={step - 4} height={h} rx={2} fill="var(--band-0)"><title>{bytes(b)}</title></rect>;
        })}
        <text x={6} y={kTall - 5}>oldest</text>
        <text x={kWide - 6} y={kTall - 5} text-anchor="end">newest</text>
        <text x={kWide - 6} y={9} text-anchor="end">{bytes(most)}</text>
      </svg>
      <figcaption>{c.of === "line" ? "Survivors of this line" : "All survivors"} by age: {percent(c.bytes[c.bytes.length - 1] / sum)} are of the newest eighth.</figcaption>
    </figure>
  );
}

/** What gc.collect and malloc_trim gave back, each time they were tried. */
export function Probes({all}: {all: ProbeData[]}) {
  const probes = all.slice(-8);
  if (probes.length === 0) return null;
  const high = Math.max(...probes.map(p => p.rss));
  const low = Math.min(...probes.map(p => Math.min(p.after_gc || p.rss, p.after_trim || p.rss)));
  const base = Math.max(0, low - Math.max((high - low) * 0.35, high * 0.03));
  const py = (v: number) => kTall - 18 - ((v - base) / Math.max(1, high - base)) * (kTall - 36);
  const step = (kWide - 12) / probes.length;
  const most = Math.max(...probes.map(p => p.rss - Math.min(p.after_trim || p.rss, p.after_gc || p.rss)));
  return (
    <figure>
      <svg viewBox={`0 0 ${kWide} ${kTall}`} role="img" aria-label={`Probes: ${probes.map(p => `${bytes(p.rss)} before, ${bytes(p.after_trim || p.after_gc)} after`).join("; ")}`}>
        <line x1={6} x2={kWide - 6} y1={kTall - 18} y2={kTall - 18} stroke="var(--line-strong)" />
        {probes.map((p, i) => {
          const x = 6 + i * step + step / 2;
          const after = Math.min(p.after_trim || p.rss, p.after_gc || p.rss);
          const w = Math.min(18, step * 0.32);
          return (
            <g key={i}>
              <rect x={x - w - 1} y={py(p.rss)} width={w} height={kTall - 18 - py(p.rss)} rx={2} fill="var(--rest)"><title>{bytes(p.rss)} before</title></rect>
              <rect x={x + 1} y={py(after)} width={w} height={kTall - 18 - py(after)} rx={2} fill="var(--band-2)"><title>{bytes(after)} after</title></rect>
              <text x={x} y={kTall - 5} text-anchor="middle">{p.period}</text>
            </g>
          );
        })}
        <text x={kWide - 6} y={9} text-anchor="end">{bytes(high)}</text>
      </svg>
      <figcaption>Resident before (grey) and after (green) gc.collect and malloc_trim: {most > 0 ? `at most ${bytes(most)} came back` : "nothing came back"}.</figcaption>
    </figure>
  );
}

/** From where to where a small line is drawn: its own range, but never less than a fifth of its height, so that noise does not look like growth. */
export function sparkRange(list: number[], given?: number): {low: number; high: number} {
  if (given !== undefined) return {low: 0, high: Math.max(1, given)};
  const low = Math.min(...list);
  const high = Math.max(...list);
  const least = Math.max(Math.abs(high) * 0.2, 1e-9);
  if (high - low >= least) return {low, high};
  const middle = (low + high) / 2;
  return {low: middle - least / 2, high: middle + least / 2};
}

/** A line of memory without axes. */
export function Spark({values, colour = "var(--band-0)", high: given}: {values: ArrayLike<number>; colour?: string; high?: number}) {
  const every = Math.max(1, Math.floor(values.length / 240));
  const list = Array.from(values).filter((v, i) => Number.isFinite(v) && i % every === 0);
  if (list.length < 2) return null;
  const {low, high} = sparkRange(list, given);
  const points = list.map((v, i) => `${((i / (list.length - 1)) * 120).toFixed(1)},${(22 - ((v - low) / (high - low)) * 20).toFixed(1)}`).join(" ");
  return <svg viewBox="0 0 120 24" width="120" height="24" aria-hidden="true"><polyline points={points} fill="none" stroke={colour} stroke-width="1.5" /></svg>;
}
