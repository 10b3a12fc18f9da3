import {useEffect, useMemo, useRef, useState} from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import {ChartSvg, highestSample} from "./ChartSvg";
import {bandColour, colours, hatch, type Colours} from "./colours";
import {isMain, type Run} from "./decode";
import {leading} from "./answer";
import {forecastAt, forecastBand} from "./forecast";
import {bytes, clock, exact, plural, shown, signedBytes} from "./format";
import {accountStack, chartData, changes, isSampled, lineAt, lineStack, momentName, mostOff, nearest, processStack, treePeak, visibleMarks, type Band, type Stack} from "./series";
import {ProcessChoice, useProcess} from "./ProcessChoice";
import {Table, type Col} from "./Table";
import {byteTicks, timeTicks} from "./ticks";
import {SaveChart} from "./Tools";
import {parseRange, printRange, useView} from "./view";
import {Empty} from "./Words";

export interface Moments {
  a: number;
  b: number;
}

type View = "accounts" | "lines" | "processes";
/** Phases that are drawn as a lane above the chart; epochs are lines in it. */
const kLane = new Set(["fit", "evaluate", "predict", "validation", "compile", "trace", "model", "build"]);

const kAbout: Record<View, string> = {
  accounts: "What the allocators hold of resident memory, the line.",
  lines: "Live bytes by line of code, sampled; the line is resident memory.",
  processes: "Resident memory of every process; pages that they share count in each, as in their sum, the line.",
};

export function Timeline(props: {run: Run; theme: string; moments: Moments | null; setMoments(m: Moments | null): void}) {
  const {theme, moments, setMoments} = props;
  const whole = props.run;
  const {run, chosen, choose} = useProcess(whole);
  const stacks = useMemo(() => ({accounts: accountStack(run), lines: lineStack(run), processes: processStack(run)}), [run]);
  const [by, setBy] = useView("by");
  const [zoomText, setZoom] = useView("z");
  const [dragText, setDrag] = useView("drag");
  const drag = dragText === "compare" ? "compare" : "zoom";
  const [farText, setFar] = useView("far");
  const [cursor, setCursor] = useState<number | null>(null);
  const [said, setSaid] = useState("");
  const [drawn, setDrawn] = useState(false);
  const tree = useMemo(() => treePeak(run), [run]);
  // Where children hold much, or it is one of them that grows, one process is not the story.
  const finding = leading(run.data.findings);
  const elsewhere = finding !== null && !isMain(whole, finding);
  const usual: View = stacks.processes && tree && (elsewhere || tree.rss > 1.25 * whole.peak) ? "processes" : "accounts";
  const view: View = by === "lines" && stacks.lines ? "lines" : by === "processes" && stacks.processes ? "processes" : by === "accounts" ? "accounts" : usual;
  const stack = stacks[view]!;
  const setView = (v: View) => setBy(v === usual ? "" : v);
  const band = useMemo(() => (view === "processes" ? null : forecastBand(run)), [run, view]);
  const far = farText === "limit" && band !== null;
  const host = useRef<HTMLDivElement>(null);
  const paper = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const now = useRef({drag, moments, setMoments});
  now.current = {drag, moments, setMoments};
  const data = useMemo(() => chartData(stack), [stack]);
  const home = useMemo((): [number, number] => {
    const first = data.x[0] ?? 0;
    const last = Math.max(data.x[data.x.length - 1] ?? 1, first + 1);
    if (!band) return [first, last];
    return [first, far ? band.late + (band.late - first) * 0.02 : last + (last - first) * 0.14];
  }, [data, band, far]);
  const range = useMemo((): [number, number] => {
    const wanted = parseRange(zoomText);
    const [from, to] = wanted ? [Math.max(home[0], wanted[0]), Math.min(home[1], wanted[1])] : home;
    return to - from >= 1 ? [from, to] : home;
  }, [zoomText, home]);
  const zoomed = range[0] > home[0] || range[1] < home[1];
  // The kernel's own count may be above every sample: what came and went between two of them. It is of one process.
  const highest = useMemo(() => highestSample(stack), [stack]);
  const kernel = view !== "processes" && run.peak > highest.bytes * 1.002 ? run.peak : null;
  const limit = run.data.limits.reduce((least, l) => Math.min(least, l.bytes), Infinity);
  const high = useMemo(() => {
    const top = Math.max(...data.rows.map(row => row.reduce<number>((a, v) => Math.max(a, v ?? 0), 0)), kernel ?? 0, 1);
    return far && band ? band.limit * 1.06 : limit < top * 2 ? Math.max(limit * 1.06, top * 1.05) : top * 1.08;
  }, [data, far, band, limit, kernel]);

  useEffect(() => {
    const later = setTimeout(() => setDrawn(true), 30); // what is for paper comes after what is for the screen
    return () => clearTimeout(later);
  }, []);
  const zoomTo = (from: number, to: number) => {
    const [a, b] = [Math.max(home[0], from), Math.min(home[1], to)];
    if (b - a < 1) return;
    setZoom(a <= home[0] && b >= home[1] ? "" : printRange(a, b));
  };
  const dragged = useRef((_from: number, _to: number) => {});
  dragged.current = (from, to) => {
    if (now.current.drag === "zoom") zoomTo(from, to);
    else now.current.setMoments({a: Math.max(0, from), b: Math.min(to, run.end)});
  };

  useEffect(() => {
    if (!host.current || data.x.length === 0) return;
    const c = colours();
    let frame = 0;
    const tall = host.current.clientWidth < 560 ? 270 : 340;
    const n = stack.bands.length;
    const series: uPlot.Series[] = [{}];
    for (let i = 0; i < n; ++i) {
      const b = stack.bands[n - 1 - i];
      const colour = bandColour(c, stack.bands, n - 1 - i);
      series.push({spanGaps: true, width: 1, stroke: c.surface, fill: () => (b.kind === "retained" ? hatch(colour, c.surface) : colour), points: {show: stack.t.length === 1}});
    }
    series.push({spanGaps: true, width: 2, stroke: c.resident, points: {show: stack.line.t.length === 1}});
    if (data.rows.length > n + 1) series.push({spanGaps: false, width: 1.5, dash: [5, 4], stroke: c.ink3, points: {show: false}});
    const u = new uPlot(
      {
        width: host.current.clientWidth,
        height: tall,
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
          draw: [p => drawOver(p, run, c, limit, band, kernel, now.current.moments)],
          setCursor: [
            p => {
              cancelAnimationFrame(frame);
              frame = requestAnimationFrame(() => setCursor(p.cursor.left != null && p.cursor.left >= 0 ? p.posToVal(p.cursor.left, "x") : null));
            },
          ],
          setSelect: [
            p => {
              if (p.select.width < 4) return;
              const [from, to] = [p.posToVal(p.select.left, "x"), p.posToVal(p.select.left + p.select.width, "x")];
              p.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
              dragged.current(from, to);
            },
          ],
        },
      },
      [data.x, ...data.rows] as uPlot.AlignedData,
      host.current,
    );
    plot.current = u;
    u.setScale("x", {min: range[0], max: range[1]});
    const letGo = byTouch(u, (from, to) => dragged.current(from, to));
    const resize = new ResizeObserver(() => {
      if (host.current && host.current.clientWidth !== u.width) u.setSize({width: host.current.clientWidth, height: tall});
    });
    resize.observe(host.current);
    return () => {
      cancelAnimationFrame(frame);
      letGo();
      resize.disconnect();
      u.destroy();
      plot.current = null;
    };
  }, [data, theme, far, home, high]);
  useEffect(() => plot.current?.setScale("x", {min: range[0], max: range[1]}), [range]);
  useEffect(() => plot.current?.redraw(false), [moments]);

  const zoom = (factor: number) => {
    const middle = cursor ?? (range[0] + range[1]) / 2;
    zoomTo(middle - (middle - range[0]) * factor, middle + (range[1] - middle) * factor);
  };
  const reset = () => setZoom("");
  const move = (by: number, to?: number) => {
    const u = plot.current;
    if (!u || data.x.length === 0) return;
    const at = to ?? Math.max(0, Math.min(data.x.length - 1, (cursor === null ? nearest(data.x, range[0]) : nearest(data.x, cursor)) + by));
    u.setCursor({left: u.valToPos(data.x[at], "x"), top: 20});
    setCursor(data.x[at]);
    setSaid(`${clock(data.x[at])}${momentName(run, data.x[at]) ? `, ${momentName(run, data.x[at])}` : ""}: resident ${bytes(lineAt(stack.line, data.x[at]))}`);
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
  const probes = run.probes.length;
  return (
    <section class="card" id="time" aria-labelledby="time-title">
      <div class="section-head">
        <h2 id="time-title">Memory over time</h2>
        <p>{view === "accounts" && run.data.source === "engine" ? "Every account of the engine, exact from the moment it is taken; resident memory, the line, follows when pages are first touched." : kAbout[view]}</p>
      </div>
      <div class="tools">
        {(stacks.lines || stacks.processes) && (
          <div class="segments" role="group" aria-label="What is stacked">
            <button aria-pressed={view === "accounts"} onClick={() => setView("accounts")}>By account</button>
            {stacks.lines && <button aria-pressed={view === "lines"} onClick={() => setView("lines")}>By line of code</button>}
            {stacks.processes && <button aria-pressed={view === "processes"} onClick={() => setView("processes")}>By process</button>}
          </div>
        )}
        {view !== "processes" && <ProcessChoice run={whole} chosen={chosen} choose={choose} />}
        <div class="segments" role="group" aria-label="What dragging does">
          <button aria-pressed={drag === "zoom"} onClick={() => setDrag("")}>Drag to zoom</button>
          <button aria-pressed={drag === "compare"} onClick={() => setDrag("compare")}>Drag to compare</button>
        </div>
        {band && <button class="plain-button" aria-pressed={far} onClick={() => { setZoom(""); setFar(far ? "" : "limit"); }}>Up to the limit</button>}
        <span class="push" />
        <SaveChart name="millpond-memory" of="the chart" find={() => paper.current?.querySelector("svg")} />
        <span class="joined">
          <button class="plain-button" onClick={() => zoom(0.5)} aria-label="Zoom in">+</button>
          <button class="plain-button" onClick={() => zoom(2)} aria-label="Zoom out" disabled={!zoomed}>−</button>
        </span>
        <button class="plain-button" onClick={reset} disabled={!zoomed}>Whole run</button>
      </div>
      <div
        class="chart on-screen" ref={host} tabIndex={0} role="application" onKeyDown={onKey} onDblClick={reset} data-zoomed={zoomed}
        aria-label={`Memory over time, from 0 to ${clock(run.end)}, peak ${bytes(view === "processes" && tree ? tree.rss : run.peak)}. Arrow keys move, plus and minus zoom, A and B set two moments to compare, Escape goes back.`}
      />
      <div class="on-paper" ref={paper} aria-hidden="true">{drawn && <ChartSvg run={run} stack={stack} range={range} high={high} limit={limit} forecast={band} peak={kernel} title="Memory over time" />}</div>
      <p class="hidden" role="status">{said}</p>
      <Reading run={run} view={view} stack={stack} cursor={cursor} kernel={kernel} moments={moments} setMoments={setMoments} />
      {probes > 0 && <p class="hint"><i class="probe-sign" aria-hidden="true" /> {plural(probes, "time")} Millpond itself tried <code>gc.collect</code> and <code>malloc_trim</code>: a notch there is ours, not the program's.</p>}
      <p class="hint wide keys-hint"><kbd>←</kbd> <kbd>→</kbd> move, <kbd>+</kbd> <kbd>−</kbd> zoom, <kbd>A</kbd> <kbd>B</kbd> set two moments, <kbd>Esc</kbd> goes back. A double click shows the whole run.</p>
    </section>
  );
}

/** The chart library hears the mouse only: a finger or a pen that goes sideways selects a stretch, up and down it scrolls the page. */
function byTouch(u: uPlot, selected: (from: number, to: number) => void): () => void {
  let from: number | null = null;
  const place = (e: PointerEvent) => Math.max(0, Math.min(u.over.clientWidth, e.clientX - u.over.getBoundingClientRect().left));
  const down = (e: PointerEvent) => {
    if (e.pointerType === "mouse" || !e.isPrimary) return;
    from = place(e);
    u.over.setPointerCapture(e.pointerId);
    u.setCursor({left: from, top: 20});
  };
  const move = (e: PointerEvent) => {
    if (from === null) return;
    const to = place(e);
    u.setCursor({left: to, top: 20});
    if (Math.abs(to - from) > 6) u.setSelect({left: Math.min(from, to), top: 0, width: Math.abs(to - from), height: u.over.clientHeight}, false);
  };
  const up = (e: PointerEvent) => {
    if (from === null) return;
    const [a, b] = [Math.min(from, place(e)), Math.max(from, place(e))];
    from = null;
    u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
    if (b - a > 12) selected(u.posToVal(a, "x"), u.posToVal(b, "x"));
  };
  const cancel = () => {
    from = null;
    u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
  };
  u.over.addEventListener("pointerdown", down);
  u.over.addEventListener("pointermove", move);
  u.over.addEventListener("pointerup", up);
  u.over.addEventListener("pointercancel", cancel);
  return () => {
    u.over.removeEventListener("pointerdown", down);
    u.over.removeEventListener("pointermove", move);
    u.over.removeEventListener("pointerup", up);
    u.over.removeEventListener("pointercancel", cancel);
  };
}

interface BandRow {
  band: Band;
  place: number;
  now: number;
  before: number;
  after: number;
}

/** The table under the chart: what every band holds at one moment, and what changed between A and B. It adds up to its last row. */
function Reading({run, view, stack, cursor, kernel, moments, setMoments}: {
  run: Run; view: View; stack: Stack; cursor: number | null; kernel: number | null; moments: Moments | null; setMoments(m: null): void;
}) {
  const c = useMemo(colours, [document.documentElement.dataset.theme, stack]);
  const peakAt = useMemo(() => highestSample(stack).t, [stack]);
  const at = cursor ?? peakAt;
  const i = nearest(stack.t, at);
  const name = (t: number) => [clock(t), momentName(run, t)].filter(Boolean).join(", ");
  const held = lineAt(stack.line, at);
  const between = (m: Moments) => [lineAt(stack.line, m.a), lineAt(stack.line, m.b)] as const;
  const rows = useMemo((): BandRow[] => {
    const changed = moments ? new Map(changes(stack, moments.a, moments.b).map(x => [x.name, x])) : null;
    return stack.bands.map((band, place) => ({band, place, now: band.bytes[i] ?? NaN, before: changed?.get(band.name)?.before ?? NaN, after: changed?.get(band.name)?.after ?? NaN})).reverse();
  }, [stack, i, moments]);
  const when = i >= 0 ? name(stack.t[i]) : "";
  // What was sampled is an estimate: its digits would say more than is known.
  const known = (value: number, sampled: boolean) => <span class="muted">{sampled && value > 0 ? `± ${bytes(mostOff(value, run.data.measured.interval))} at most` : exact(value)}</span>;
  const columns: Col<BandRow>[] = [
    {
      key: "name", title: view === "lines" ? "Line" : view === "processes" ? "Process" : "Account", value: r => r.band.name,
      cell: r => <><i class={`swatch ${r.band.kind === "retained" ? "hatch" : ""}`} style={{backgroundColor: bandColour(c, stack.bands, r.place)}} />{shown(r.band.name, 160)}</>,
    },
    {key: "now", title: `At ${when}`, n: true, value: r => r.now, cell: r => bytes(r.now)},
    {key: "exact", title: view === "lines" ? "Give or take" : "Exactly", n: true, wide: true, value: r => r.now, cell: r => known(r.now, view === "lines" || isSampled(r.band.name))},
  ];
  if (moments)
    columns.push(
      {key: "a", title: "A", n: true, value: r => r.before, cell: r => bytes(r.before)},
      {key: "b", title: "B", n: true, value: r => r.after, cell: r => bytes(r.after)},
      {key: "change", title: "Change", n: true, value: r => r.after - r.before, cell: r => <Delta value={r.after - r.before} />},
    );
  const sum = rows.reduce((all, r) => all + (r.now || 0), 0);
  const foot: Record<string, preact.ComponentChildren>[] = [];
  const total = (label: preact.ComponentChildren, value: number, more: Record<string, preact.ComponentChildren> = {}) =>
    foot.push({name: label, now: bytes(value), exact: known(value, view === "lines"), ...more});
  const [ka, kb] = moments ? [nearest(stack.t, moments.a), nearest(stack.t, moments.b)] : [-1, -1];
  const sums = moments ? {a: bytes(stack.bands.reduce((s, b) => s + b.bytes[ka], 0)), b: bytes(stack.bands.reduce((s, b) => s + b.bytes[kb], 0)), change: <Delta value={stack.bands.reduce((s, b) => s + b.bytes[kb] - b.bytes[ka], 0)} />} : {};
  const lineSwatch = <i class="swatch line" style={{borderColor: c.resident}} />;
  const resident = run.accounts.resident[i];
  if (rows.length > 0) {
    if (view === "lines") total("all sampled blocks", sum, sums);
    else if (view === "processes") total(<>{lineSwatch}all processes together</>, sum, sums);
    else if (run.data.source === "engine") {
      total("all accounts", sum, sums);
      total(<>{lineSwatch}resident memory</>, resident);
    } else total(<>{lineSwatch}resident memory</>, resident, sums);
    if (stack.reserved && stack.reserved[i] > 0) total(<><i class="swatch dash" style={{borderColor: c.ink3}} />besides: mapped and not touched, or given back</>, stack.reserved[i]);
    if (run.data.facts.planned) total(<><i class="swatch" style={{backgroundColor: "transparent"}} />planned before the first batch</>, run.data.facts.planned);
  }
  return (
    <>
      <p class="at">
        {cursor === null ? (kernel === null ? "At the peak," : "At the highest that was sampled,") : "At"} <strong>{name(at)}</strong>: {view === "processes" ? "all together" : "resident"} <strong title={exact(held)}>{bytes(held)}</strong>
        <span class="muted"> ({exact(held)})</span>
        {cursor === null && kernel !== null && <span class="muted">; the kernel counted up to {bytes(kernel)} between two samples</span>}
      </p>
      {moments && (
        <div class="between" role="status">
          <span>From A <strong>{name(moments.a)}</strong> to B <strong>{name(moments.b)}</strong></span>
          <span>
            {view === "processes" ? "all together" : "resident"} {bytes(between(moments)[0])} → {bytes(between(moments)[1])}, <Delta value={between(moments)[1] - between(moments)[0]} />
          </span>
          <button class="plain-button" onClick={() => setMoments(null)}>Clear A and B</button>
        </div>
      )}
      {stack.bands.length === 0 ? (
        <Empty title="Only resident memory is known">The program's allocators could not be asked in this run.</Empty>
      ) : (
        <Table id="bands" label={view === "processes" ? "processes at this moment" : view === "lines" ? "lines at this moment" : "accounts at this moment"} className="accounts" columns={columns} rows={rows} keyOf={r => r.band.name} foot={foot} />
      )}
    </>
  );
}

export function Delta({value}: {value: number}) {
  if (!Number.isFinite(value)) return <span class="muted">not measured</span>;
  return <span class={value > 0 ? "up" : value < 0 ? "down" : ""} title={exact(value)}>{signedBytes(value)}</span>;
}

function drawOver(u: uPlot, run: Run, c: Colours, limit: number, band: ReturnType<typeof forecastBand>, kernel: number | null, moments: Moments | null) {
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
  const marks = visibleMarks(run, from, to, width / r / 64);
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
  if (kernel !== null && kernel <= u.scales.y.max!) {
    ctx.strokeStyle = c.ink3;
    ctx.lineWidth = 1.5 * r;
    ctx.setLineDash([1.5 * r, 3 * r]);
    ctx.beginPath();
    ctx.moveTo(left, y(kernel));
    ctx.lineTo(left + width, y(kernel));
    ctx.stroke();
    ctx.setLineDash([]);
    label(width / r < 460 ? `peak ${bytes(kernel)}` : `peak, as the kernel counted: ${bytes(kernel)}`, left + 6 * r, y(kernel) - 5 * r, "left", c.ink3);
  }
  // our own probes, at the foot
  ctx.fillStyle = c.probe;
  for (const p of run.probes) {
    if (p.t < from || p.t > to) continue;
    ctx.beginPath();
    ctx.moveTo(x(p.t), top + height - 8 * r);
    ctx.lineTo(x(p.t) - 4.5 * r, top + height);
    ctx.lineTo(x(p.t) + 4.5 * r, top + height);
    ctx.fill();
    ctx.strokeStyle = c.surface;
    ctx.lineWidth = r;
    ctx.stroke();
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
