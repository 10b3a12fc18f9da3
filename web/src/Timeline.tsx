import {useEffect, useMemo, useRef, useState} from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import {bandColour, colours, hatch, type Colours} from "./colours";
import type {Run} from "./decode";
import {forecastAt, forecastBand} from "./forecast";
import {bytes, clock, exact, shown, signedBytes} from "./format";
import {accountStack, chartData, changes, lineStack, momentName, nearest, residentAt, visibleMarks, type Stack} from "./series";
import {byteTicks, timeTicks} from "./ticks";
import {Empty} from "./Words";

export interface Moments {
  a: number;
  b: number;
}

type View = "accounts" | "lines";
const kHeight = 340;
/** Phases that are drawn as a lane above the chart; epochs are lines in it. */
const kLane = new Set(["fit", "evaluate", "predict", "validation", "compile", "trace", "model", "build"]);

export function Timeline(props: {run: Run; theme: string; moments: Moments | null; setMoments(m: Moments | null): void}) {
  const {run, theme, moments, setMoments} = props;
  const lines = useMemo(() => lineStack(run), [run]);
  const accounts = useMemo(() => accountStack(run), [run]);
  const [view, setView] = useState<View>("accounts");
  const [drag, setDrag] = useState<"zoom" | "compare">("zoom");
  const [far, setFar] = useState(false);
  const [zoomed, setZoomed] = useState(false);
  const [cursor, setCursor] = useState<number | null>(null);
  const [said, setSaid] = useState("");
  const stack = view === "lines" && lines ? lines : accounts;
  const band = useMemo(() => forecastBand(run), [run]);
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const now = useRef({drag, moments, setMoments});
  now.current = {drag, moments, setMoments};
  const view_x = useRef<[number, number] | null>(null);
  const data = useMemo(() => chartData(run, stack), [run, stack]);
  const home = useMemo((): [number, number] => {
    const first = data.x[0] ?? 0;
    const last = Math.max(data.x[data.x.length - 1] ?? 1, first + 1);
    if (!band) return [first, last];
    return [first, far ? band.late + (band.late - first) * 0.02 : last + (last - first) * 0.14];
  }, [data, band, far]);

  useEffect(() => {
    if (!host.current || data.x.length === 0) return;
    const c = colours();
    let frame = 0;
    const n = stack.bands.length;
    const series: uPlot.Series[] = [{}];
    for (let i = 0; i < n; ++i) {
      const b = stack.bands[n - 1 - i];
      const colour = bandColour(c, stack.bands, n - 1 - i);
      series.push({spanGaps: true, width: 1, stroke: c.surface, fill: () => (b.kind === "retained" ? hatch(colour, c.surface) : colour), points: {show: stack.t.length === 1}});
    }
    series.push({spanGaps: true, width: 2, stroke: c.resident, points: {show: run.resident.t.length === 1}});
    if (data.rows.length > n + 1) series.push({spanGaps: false, width: 1.5, dash: [5, 4], stroke: c.ink3, points: {show: false}});
    const top = Math.max(...data.rows.map(row => row.reduce<number>((a, v) => Math.max(a, v ?? 0), 0)), 1);
    const limit = run.data.limits.reduce((least, l) => Math.min(least, l.bytes), Infinity);
    const high = far && band ? band.limit * 1.06 : limit < top * 2 ? Math.max(limit * 1.06, top * 1.05) : top * 1.08;
    const u = new uPlot(
      {
        width: host.current.clientWidth,
        height: kHeight,
        padding: [26, 10, 0, 0],
        legend: {show: false},
        cursor: {y: false, points: {show: false}, drag: {x: true, y: false, setScale: false}},
        select: {show: true, left: 0, top: 0, width: 0, height: 0},
        scales: {x: {time: false, range: (_u, min, max) => [min, max]}, y: {range: () => [0, high]}},
        axes: [
          {
            stroke: c.ink3, font: `12px ${c.sans}`, grid: {show: false}, ticks: {stroke: c.line, size: 5}, size: 34,
            splits: (_u, _i, min, max) => timeTicks(min, max, Math.max(2, Math.floor(_u.bbox.width / devicePixelRatio / 110))),
            values: (_u, ticks) => ticks.map(clock),
          },
          {
            stroke: c.ink3, font: `12px ${c.sans}`, grid: {stroke: c.line, width: 1}, ticks: {show: false}, size: 68,
            splits: (_u, _i, _min, max) => byteTicks(max), values: (_u, ticks) => ticks.map(v => (v === 0 ? "0" : bytes(v))),
          },
        ],
        series,
        hooks: {
          draw: [p => drawOver(p, run, c, limit, band, now.current.moments)],
          setCursor: [
            p => {
              cancelAnimationFrame(frame);
              frame = requestAnimationFrame(() => setCursor(p.cursor.left != null && p.cursor.left >= 0 ? p.posToVal(p.cursor.left, "x") : null));
            },
          ],
          setSelect: [
            p => {
              if (p.select.width < 4) return;
              const from = p.posToVal(p.select.left, "x");
              const to = p.posToVal(p.select.left + p.select.width, "x");
              p.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
              if (now.current.drag === "zoom") p.setScale("x", {min: from, max: to});
              else now.current.setMoments({a: Math.max(0, from), b: Math.min(to, run.end)});
            },
          ],
          setScale: [
            (p, key) => {
              if (key !== "x") return;
              const {min, max} = p.scales.x;
              view_x.current = min! > home[0] || max! < home[1] ? [min!, max!] : null;
              setZoomed(view_x.current !== null);
            },
          ],
        },
      },
      [data.x, ...data.rows] as uPlot.AlignedData,
      host.current,
    );
    plot.current = u;
    const [min, max] = view_x.current ?? home;
    u.setScale("x", {min, max});
    const resize = new ResizeObserver(() => {
      if (host.current && host.current.clientWidth !== u.width) u.setSize({width: host.current.clientWidth, height: kHeight});
    });
    resize.observe(host.current);
    return () => {
      cancelAnimationFrame(frame);
      resize.disconnect();
      u.destroy();
      plot.current = null;
    };
  }, [data, theme, far, home]);
  useEffect(() => plot.current?.redraw(false), [moments]);

  const zoom = (factor: number) => {
    const u = plot.current;
    if (!u) return;
    const {min, max} = u.scales.x;
    const middle = cursor ?? (min! + max!) / 2;
    const from = Math.max(home[0], middle - (middle - min!) * factor);
    const to = Math.min(home[1], middle + (max! - middle) * factor);
    if (to - from > 1) u.setScale("x", {min: from, max: to});
  };
  const reset = () => plot.current?.setScale("x", {min: home[0], max: home[1]});
  const move = (by: number, to?: number) => {
    const u = plot.current;
    if (!u || data.x.length === 0) return;
    const at = to ?? Math.max(0, Math.min(data.x.length - 1, (cursor === null ? nearest(data.x, home[0]) : nearest(data.x, cursor)) + by));
    u.setCursor({left: u.valToPos(data.x[at], "x"), top: 20});
    setCursor(data.x[at]);
    setSaid(`${clock(data.x[at])}${momentName(run, data.x[at]) ? `, ${momentName(run, data.x[at])}` : ""}: resident ${bytes(residentAt(run, data.x[at]))}`);
  };
  const onKey = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const step = e.shiftKey ? 10 : 1;
    const at = cursor ?? run.end;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => move(-step), ArrowRight: () => move(step), Home: () => move(0, 0), End: () => move(0, data.x.length - 1),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": reset,
      a: () => setMoments({a: at, b: Math.max(moments?.b ?? run.end, at)}),
      b: () => setMoments({a: Math.min(moments?.a ?? 0, at), b: at}),
      Escape: () => (moments ? setMoments(null) : reset()),
    };
    const action = actions[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (action) {
      e.preventDefault();
      action();
    }
  };

  if (data.x.length === 0) return <section class="card" id="time"><h2>Memory over time</h2><Empty title="No point of memory was recorded">The run was over before the first look.</Empty></section>;
  return (
    <section class="card" id="time" aria-labelledby="time-title">
      <div class="section-head">
        <h2 id="time-title">Memory over time</h2>
        <p>{view === "lines" ? "Live bytes by line of code, sampled; the line is resident memory." : run.data.source === "engine" ? "Every account of the engine, exact from the moment it is taken; resident memory, the line, follows when pages are first touched." : "What the allocators hold, at the program's own marks; the line is resident memory."}</p>
      </div>
      <div class="tools">
        {lines && (
          <div class="segments" role="group" aria-label="What is stacked">
            <button aria-pressed={view === "accounts"} onClick={() => setView("accounts")}>By account</button>
            <button aria-pressed={view === "lines"} onClick={() => setView("lines")}>By line of code</button>
          </div>
        )}
        <div class="segments" role="group" aria-label="What dragging does">
          <button aria-pressed={drag === "zoom"} onClick={() => setDrag("zoom")}>Drag to zoom</button>
          <button aria-pressed={drag === "compare"} onClick={() => setDrag("compare")}>Drag to compare</button>
        </div>
        {band && <button class="plain-button" aria-pressed={far} onClick={() => { view_x.current = null; setFar(!far); }}>Up to the limit</button>}
        <span class="push" />
        <button class="plain-button" onClick={() => zoom(0.5)} aria-label="Zoom in">+</button>
        <button class="plain-button" onClick={() => zoom(2)} aria-label="Zoom out" disabled={!zoomed}>−</button>
        <button class="plain-button" onClick={reset} disabled={!zoomed}>Whole run</button>
      </div>
      <div
        class="chart" ref={host} tabIndex={0} role="application" onKeyDown={onKey} onDblClick={reset} data-zoomed={zoomed}
        aria-label={`Memory over time, from 0 to ${clock(run.end)}, peak ${bytes(run.data.facts.peak)}. Arrow keys move, plus and minus zoom, A and B set two moments to compare, Escape goes back.`}
      />
      <p class="hidden" role="status">{said}</p>
      <Reading run={run} stack={stack} cursor={cursor} moments={moments} setMoments={setMoments} />
      <p class="hint wide"><kbd>←</kbd> <kbd>→</kbd> move, <kbd>+</kbd> <kbd>−</kbd> zoom, <kbd>A</kbd> <kbd>B</kbd> set two moments, <kbd>Esc</kbd> goes back. A double click shows the whole run.</p>
    </section>
  );
}

/** The table under the chart: what every band holds at the cursor, or what changed between A and B. */
function Reading({run, stack, cursor, moments, setMoments}: {run: Run; stack: Stack; cursor: number | null; moments: Moments | null; setMoments(m: null): void}) {
  const c = useMemo(colours, [document.documentElement.dataset.theme, stack]);
  const peakAt = useMemo(() => run.resident.t[run.resident.rss.reduce((best, v, i) => (v > run.resident.rss[best] ? i : best), 0)] ?? 0, [run]);
  const at = cursor ?? peakAt;
  const i = nearest(stack.t, at);
  const name = (t: number) => [clock(t), momentName(run, t)].filter(Boolean).join(", ");
  const changed = moments ? new Map(changes(stack, moments.a, moments.b).map(x => [x.name, x])) : null;
  const rows = stack.bands.map((band, b) => ({band, b})).reverse();
  const sum = stack.bands.reduce((all, band) => all + (band.bytes[i] ?? 0), 0);
  return (
    <>
      <p class="at">
        {cursor === null ? "At the peak" : "At"} <strong>{name(at)}</strong>: resident <strong title={exact(residentAt(run, at))}>{bytes(residentAt(run, at))}</strong>
        <span class="muted"> ({exact(residentAt(run, at))})</span>
      </p>
      {moments && (
        <div class="between" role="status">
          <span>From A <strong>{name(moments.a)}</strong> to B <strong>{name(moments.b)}</strong></span>
          <span>
            resident {bytes(residentAt(run, moments.a))} → {bytes(residentAt(run, moments.b))}, <Delta value={residentAt(run, moments.b) - residentAt(run, moments.a)} />
          </span>
          <button class="plain-button" onClick={() => setMoments(null)}>Clear A and B</button>
        </div>
      )}
      {stack.bands.length === 0 ? (
        <Empty title="Only resident memory is known">The program's allocators could not be asked in this run.</Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Accounts">
          <table class="accounts">
            <thead>
              <tr>
                <th>Account</th>
                <th class="n">{cursor === null ? "At the peak" : "At the cursor"}</th>
                <th class="n wide">Exactly</th>
                {changed && <><th class="n">A</th><th class="n">B</th><th class="n">Change</th></>}
              </tr>
            </thead>
            <tbody>
              {rows.map(({band, b}) => {
                const change = changed?.get(band.name);
                return (
                  <tr key={band.name}>
                    <td><i class={`swatch ${band.kind === "retained" ? "hatch" : ""}`} style={{backgroundColor: bandColour(c, stack.bands, b)}} />{shown(band.name, 160)}</td>
                    <td class="n">{bytes(band.bytes[i])}</td>
                    <td class="n wide muted">{exact(band.bytes[i])}</td>
                    {change && <><td class="n">{bytes(change.before)}</td><td class="n">{bytes(change.after)}</td><td class="n"><Delta value={change.after - change.before} /></td></>}
                  </tr>
                );
              })}
              <tr>
                <td><i class="swatch line" style={{borderColor: c.resident}} />resident memory</td>
                <td class="n">{bytes(residentAt(run, at))}</td>
                <td class="n wide muted">{exact(residentAt(run, at))}</td>
                {moments && <><td class="n">{bytes(residentAt(run, moments.a))}</td><td class="n">{bytes(residentAt(run, moments.b))}</td><td class="n"><Delta value={residentAt(run, moments.b) - residentAt(run, moments.a)} /></td></>}
              </tr>
              {stack.reserved && (
                <tr>
                  <td><i class="swatch dash" style={{borderColor: c.ink3}} />reserved: mapped, not touched</td>
                  <td class="n">{bytes(stack.reserved[i])}</td>
                  <td class="n wide muted">{exact(stack.reserved[i])}</td>
                  {moments && <><td class="n">{bytes(stack.reserved[nearest(stack.t, moments.a)])}</td><td class="n">{bytes(stack.reserved[nearest(stack.t, moments.b)])}</td><td class="n" /></>}
                </tr>
              )}
              {run.data.facts.planned && (
                <tr>
                  <td><i class="swatch" style={{backgroundColor: "transparent"}} />planned before the first batch</td>
                  <td class="n">{bytes(run.data.facts.planned)}</td>
                  <td class="n wide muted">{exact(run.data.facts.planned)}</td>
                  {moments && <td colSpan={3} />}
                </tr>
              )}
            </tbody>
          </table>
          <p class="hidden">The bands together are {exact(sum)}.</p>
        </div>
      )}
    </>
  );
}

export function Delta({value}: {value: number}) {
  if (!Number.isFinite(value)) return <span class="muted">not measured</span>;
  return <span class={value > 0 ? "up" : value < 0 ? "down" : ""} title={exact(value)}>{signedBytes(value)}</span>;
}

function drawOver(u: uPlot, run: Run, c: Colours, limit: number, band: ReturnType<typeof forecastBand>, moments: Moments | null) {
  const {ctx} = u;
  const r = devicePixelRatio;
  const {left, top, width, height} = u.bbox;
  const x = (t: number) => u.valToPos(t, "x", true);
  const y = (v: number) => u.valToPos(v, "y", true);
  const from = u.scales.x.min!;
  const to = u.scales.x.max!;
  const label = (text: string, at: number, baseline: number, align: CanvasTextAlign, colour: string, weight = "") => {
    ctx.font = `${weight} ${11 * r}px ${c.sans}`;
    ctx.textAlign = align;
    ctx.fillStyle = colour;
    ctx.fillText(text, at, baseline);
  };
  ctx.save();
  // phases, as a lane above the plot
  const laneTop = top - 21 * r;
  ctx.beginPath();
  ctx.rect(left, laneTop - 4 * r, width, height + 26 * r);
  ctx.clip();
  let lastLabel = -Infinity;
  for (const p of run.phases) {
    if (!kLane.has(p.kind) || p.end < from || p.start > to) continue;
    const a = Math.max(left, x(p.start));
    const b = Math.max(a + 2 * r, Math.min(left + width, x(p.end)));
    ctx.fillStyle = p.kind === "validation" || p.kind === "evaluate" ? c.band[3] : p.kind === "fit" ? c.accentSoft : c.band[6];
    ctx.fillRect(a, laneTop, b - a, 14 * r);
    if (b - a > 44 * r && a > lastLabel) {
      label(shown(p.kind, 24), a + 5 * r, laneTop + 10.5 * r, "left", p.kind === "fit" ? c.accent : c.ink);
      lastLabel = a + 40 * r;
    }
  }
  // rounds of the loop
  ctx.setLineDash([2 * r, 3 * r]);
  ctx.lineWidth = r;
  ctx.strokeStyle = c.lineStrong;
  const marks = visibleMarks(run, from, to, width / r / 46);
  for (const m of marks) {
    ctx.beginPath();
    ctx.moveTo(x(m.t), top);
    ctx.lineTo(x(m.t), top + height);
    ctx.globalAlpha = 0.55;
    ctx.stroke();
    ctx.globalAlpha = 1;
  }
  ctx.setLineDash([]);
  if (!run.phases.some(p => kLane.has(p.kind))) {
    ctx.font = `${11 * r}px ${c.sans}`;
    let free = left;
    for (const m of marks) {
      const half = ctx.measureText(m.label).width / 2;
      if (x(m.t) - half < free || x(m.t) + half > left + width) continue;
      label(shown(m.label, 24), x(m.t), top - 8 * r, "center", c.ink3);
      free = x(m.t) + half + 10 * r;
    }
  }
  // where it would go
  if (band && to > band.from.t) {
    const end = Math.min(to, band.late);
    const at = forecastAt(band, end);
    const early = Math.min(end, band.early);
    ctx.fillStyle = c.bad;
    ctx.globalAlpha = 0.14;
    ctx.beginPath();
    ctx.moveTo(x(band.from.t), y(band.from.bytes));
    ctx.lineTo(x(early), y(forecastAt(band, early).high));
    if (end > early) ctx.lineTo(x(end), y(band.limit));
    ctx.lineTo(x(end), y(at.low));
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.strokeStyle = c.bad;
    ctx.lineWidth = 1.6 * r;
    ctx.setLineDash([6 * r, 4 * r]);
    const likely = Math.min(end, band.likely);
    ctx.beginPath();
    ctx.moveTo(x(band.from.t), y(band.from.bytes));
    ctx.lineTo(x(likely), y(forecastAt(band, likely).likely));
    ctx.stroke();
    ctx.setLineDash([]);
    label("forecast", left + width - 6 * r, y(Math.min(u.scales.y.max!, forecastAt(band, Math.min(to, likely)).likely)) + 16 * r, "right", c.bad);
  }
  if (Number.isFinite(limit) && limit <= u.scales.y.max!) {
    ctx.strokeStyle = c.bad;
    ctx.lineWidth = 1.5 * r;
    ctx.beginPath();
    ctx.moveTo(left, y(limit));
    ctx.lineTo(left + width, y(limit));
    ctx.stroke();
    label(`limit ${bytes(limit)}`, left + width - 6 * r, y(limit) - 5 * r, "right", c.bad, "600");
  }
  // the two moments
  if (moments) {
    ctx.fillStyle = c.accent;
    ctx.globalAlpha = 0.1;
    ctx.fillRect(x(moments.a), top, x(moments.b) - x(moments.a), height);
    ctx.globalAlpha = 1;
    for (const [t, name] of [[moments.a, "A"], [moments.b, "B"]] as const) {
      ctx.strokeStyle = c.accent;
      ctx.lineWidth = 1.5 * r;
      ctx.beginPath();
      ctx.moveTo(x(t), top);
      ctx.lineTo(x(t), top + height);
      ctx.stroke();
      ctx.fillStyle = c.accent;
      ctx.fillRect(x(t) - 8 * r, top, 16 * r, 16 * r);
      label(name, x(t), top + 12 * r, "center", c.surface, "600");
    }
  }
  ctx.restore();
}
