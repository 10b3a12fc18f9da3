import {useEffect, useMemo, useRef, useState} from "preact/hooks";
import uPlot from "uplot";
import {Badge} from "./Answer";
import {kVerdicts} from "./answer";
import {colours} from "./colours";
import type {Run} from "./decode";
import {bytes, clock, exact, plural, shortPath, shown} from "./format";
import {lineAt, nearest} from "./series";
import {Table, type Col} from "./Table";
import {Delta} from "./Timeline";
import {byteTicks, timeTicks} from "./ticks";
import {SaveChart} from "./Tools";
import type {CompareData} from "./types";
import {Words} from "./Words";

type Place = CompareData["places"][number];
const lineOf = (p: Place) => (p.line_before && p.line_after && p.line_before !== p.line_after ? `${p.line_before} → ${p.line_after}` : String(p.line_after ?? p.line_before ?? ""));
const kColumns: Col<Place>[] = [
  {key: "change", title: "Change", n: true, value: p => p.bytes_after - p.bytes_before, cell: p => <Delta value={p.bytes_after - p.bytes_before} />},
  {key: "before", title: "Before", n: true, wide: true, value: p => p.bytes_before, cell: p => bytes(p.bytes_before)},
  {key: "after", title: "After", n: true, wide: true, value: p => p.bytes_after, cell: p => bytes(p.bytes_after)},
  {key: "place", title: "Place", value: p => `${p.file}${lineOf(p) && `:${lineOf(p)}`} ${p.function}`, cell: p => <span class="place">{shown(shortPath(p.file, 56))}{lineOf(p) && `:${lineOf(p)}`} <span class="muted">{shown(p.function, 100)}</span></span>},
];

/** Two runs side by side, and the sentence that says what changed. */
export function Compare({compare, runs, theme}: {compare: CompareData; runs: Run[]; theme: string}) {
  const tone = (kVerdicts[compare.after.verdict] ?? kVerdicts.unsure).tone;
  const [x, y] = [compare.before.last_round_rss, compare.after.last_round_rss];
  // Of one process, or of all of them together where one of the runs has children: the same for both.
  const [before, after] = [compare.before.tree_peak, compare.after.tree_peak];
  const rows: [string, number, number][] = [
    ...(before !== null || after !== null ? [["Peak, all processes together", before ?? compare.before.peak_rss, after ?? compare.after.peak_rss] as [string, number, number]] : []),
    [before !== null || after !== null ? "Peak of the main process" : "Peak", compare.before.peak_rss, compare.after.peak_rss],
    x !== null && y !== null ? ["After the last round", x, y] : ["At the end", compare.before.end_rss, compare.after.end_rss],
  ];
  return (
    <>
      <section class={`card answer tone-${tone}`} aria-label="The answer" id="answer">
        <span class="badge">Before and after</span>
        <h1><Words text={compare.sentence} /></h1>
      </section>
      <div class="two">
        {runs.map((run, i) => {
          const v = kVerdicts[run.data.verdict] ?? kVerdicts.unsure;
          return (
            <section key={i} class={`card answer tone-${v.tone}`} aria-label={i ? "After" : "Before"}>
              <p class="label">{i ? "After" : "Before"}: {shown(run.data.name, 120)}</p>
              <Badge kind={run.data.verdict} />
              <h2><Words text={run.data.sentence} /></h2>
            </section>
          );
        })}
      </div>
      <section class="card" id="both" aria-labelledby="both-title">
        <div class="section-head"><h2 id="both-title">Resident memory of both</h2><p>From the start of each run{runs.some(r => r.processes.length > 1) ? "; of the main process of each" : ""}.</p></div>
        <Both runs={runs} theme={theme} />
        <div class="keys"><span><i class="swatch dash" style={{borderColor: "var(--ink-3)"}} />before</span><span><i class="swatch line" style={{borderColor: "var(--band-0)"}} />after</span></div>
        <div class="scroll" tabIndex={0} role="region" aria-label="Numbers of both runs">
          <table class="both">
            <thead><tr><td /><th class="n">Before</th><th class="n">After</th><th class="n">Change</th></tr></thead>
            <tbody>
              <tr><td>Verdict</td><td class="n">{compare.before.verdict}</td><td class="n">{compare.after.verdict}</td><td /></tr>
              <tr><td>Growth</td><td class="n">{shown(compare.before.rate, 80)}</td><td class="n">{shown(compare.after.rate, 80)}</td><td /></tr>
              {rows.map(([name, a, b]) => <tr key={name}><td>{name}</td><td class="n" title={exact(a)}>{bytes(a)}</td><td class="n" title={exact(b)}>{bytes(b)}</td><td class="n"><Delta value={b - a} /></td></tr>)}
              <tr><td>Seconds</td><td class="n">{compare.before.seconds.toFixed(1)}</td><td class="n">{compare.after.seconds.toFixed(1)}</td><td /></tr>
            </tbody>
          </table>
        </div>
      </section>
      {compare.places.length > 0 && (
        <section class="card long" aria-labelledby="places-title">
          <div class="section-head"><h2 id="places-title">Where it differs</h2><p>Alive at the peak of each, the largest difference first.</p></div>
          <Table id="differ" label="places that differ" className="places" columns={kColumns} rows={compare.places} keyOf={(_p, i) => i} most={25} more={left => plural(left.length, "more place")} />
        </section>
      )}
    </>
  );
}

function Both({runs, theme}: {runs: Run[]; theme: string}) {
  const host = useRef<HTMLDivElement>(null);
  const paper = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const data = useMemo(() => {
    const x = Float64Array.from(new Set(runs.flatMap(r => [...r.resident.t]))).sort();
    const at = new Map<number, number>();
    x.forEach((t, i) => at.set(t, i));
    const rows = runs.map(r => {
      const row = new Array<number | null>(x.length).fill(null);
      r.resident.t.forEach((t, i) => (row[at.get(t)!] = r.resident.rss[i]));
      return row;
    });
    return [Array.from(x), ...rows] as uPlot.AlignedData;
  }, [runs]);
  useEffect(() => {
    if (!host.current || data[0].length === 0) return;
    const c = colours();
    const high = 1.08 * Math.max(1, ...runs.map(r => r.resident.rss.reduce((a, b) => Math.max(a, b), 0)));
    const u = new uPlot(
      {
        width: host.current.clientWidth, height: 280, padding: [12, 10, 0, 0], legend: {show: false}, cursor: {y: false, points: {show: true, size: 6}},
        scales: {x: {time: false}, y: {range: () => [0, high]}},
        axes: [
          {stroke: c.ink3, font: `12px ${c.sans}`, grid: {show: false}, ticks: {stroke: c.line, size: 5}, size: 34, splits: (_u, _i, min, max) => timeTicks(min, max, Math.max(2, Math.floor(_u.bbox.width / devicePixelRatio / 110))), values: (_u, t) => t.map(clock)},
          {stroke: c.ink3, font: `12px ${c.sans}`, grid: {stroke: c.line, width: 1}, ticks: {show: false}, size: 68, splits: (_u, _i, _min, max) => byteTicks(max), values: (_u, t) => t.map(v => (v === 0 ? "0" : bytes(v)))},
        ],
        hooks: {setCursor: [p => setCursor(p.cursor.left != null && p.cursor.left >= 0 ? p.posToVal(p.cursor.left, "x") : null)]},
        series: [{}, {spanGaps: true, stroke: c.ink3, width: 2, dash: [6, 4], points: {show: false}}, {spanGaps: true, stroke: c.band[0], width: 2.2, points: {show: false}}],
      },
      data,
      host.current,
    );
    plot.current = u;
    const resize = new ResizeObserver(() => host.current && u.setSize({width: host.current.clientWidth, height: 280}));
    resize.observe(host.current);
    return () => {
      resize.disconnect();
      u.destroy();
      plot.current = null;
    };
  }, [data, theme]);
  const x = data[0] as number[];
  const onKey = (e: KeyboardEvent) => {
    const u = plot.current;
    if (!u || x.length === 0 || e.ctrlKey || e.metaKey || e.altKey) return;
    const here = cursor === null ? 0 : nearest(x, cursor);
    const to: Record<string, number> = {ArrowLeft: here - (e.shiftKey ? 10 : 1), ArrowRight: here + (e.shiftKey ? 10 : 1), Home: 0, End: x.length - 1};
    if (!(e.key in to)) return;
    e.preventDefault();
    const at = x[Math.max(0, Math.min(x.length - 1, to[e.key]))];
    u.setCursor({left: u.valToPos(at, "x"), top: 20});
    setCursor(at);
  };
  const held = (r: Run, t: number) => (t > (r.resident.t[r.resident.t.length - 1] ?? 0) ? "over" : bytes(lineAt({t: r.resident.t, bytes: r.resident.rss, name: ""}, t)));
  return <>
    <div class="tools"><span class="push" /><SaveChart name="millpond-both" of="the chart of both" find={() => paper.current?.querySelector("svg")} /></div>
    <div
      class="chart on-screen" ref={host} tabIndex={0} role="application" onKeyDown={onKey}
      aria-label={`Resident memory of both runs. ${runs.map(r => `${shown(r.data.name, 60)}: peak ${bytes(r.data.facts.peak)}`).join("; ")}. Arrow keys move.`}
    />
    <div class="on-paper" ref={paper} aria-hidden="true"><BothSvg runs={runs} /></div>
    <p class="at" role="status">{cursor === null ? "Point at the chart, or move with the arrow keys." : <>At <strong>{clock(cursor)}</strong>: before {held(runs[0], cursor)}, after {held(runs[1], cursor)}</>}</p>
  </>;
}

/** The same for paper. */
export function BothSvg({runs}: {runs: Run[]}) {
  const [w, h, left, bottom] = [1040, 280, 72, 26];
  const high = 1.08 * Math.max(1, ...runs.map(r => r.resident.rss.reduce((a, b) => Math.max(a, b), 0)));
  const end = Math.max(1, ...runs.map(r => r.resident.t[r.resident.t.length - 1] ?? 0));
  const x = (t: number) => left + (t / end) * (w - left - 10);
  const y = (v: number) => 8 + (1 - v / high) * (h - bottom - 8);
  const paint = [{stroke: "var(--ink-3)", "stroke-dasharray": "6 4"}, {stroke: "var(--band-0)"}];
  return (
    <svg viewBox={`0 0 ${w} ${h}`} role="img" aria-label="Resident memory of both" font-family="ui-sans-serif, system-ui, sans-serif" font-size="12">
      {byteTicks(high).map(v => <g key={v}><line x1={left} x2={w} y1={y(v)} y2={y(v)} stroke="var(--line)" /><text x={left - 8} y={y(v) + 4} text-anchor="end" fill="var(--ink-3)">{v === 0 ? "0" : bytes(v)}</text></g>)}
      {timeTicks(0, end, 8).map(t => <text key={t} x={x(t)} y={h - 8} text-anchor="middle" fill="var(--ink-3)">{clock(t)}</text>)}
      {runs.map((r, i) => {
        const every = Math.max(1, Math.floor(r.resident.t.length / 800));
        return <polyline key={i} points={Array.from(r.resident.t, (t, k) => (k % every ? "" : `${x(t).toFixed(1)},${y(r.resident.rss[k]).toFixed(1)}`)).join(" ")} fill="none" stroke-width="2" {...paint[i]} />;
      })}
    </svg>
  );
}
