import {useEffect, useMemo, useRef, useState} from "preact/hooks";
import {colours} from "./colours";
import type {Buffer, Program, Run} from "./decode";
import {bytes, exact, percent, plural, shown, thousands} from "./format";
import {aliveAt, bufferAt, groupOf, layers, liveBytes, peakCall, type LayerRow} from "./plan";
import {Table, type Col} from "./Table";
import {byteTicks} from "./ticks";
import {SaveChart} from "./Tools";
import {useView} from "./view";
import {Empty} from "./Words";

const kLeft = 66;
const kBottom = 22;
const kTop = 12;
const kMostAlive = 14;

/** Accounts by how much they take, so that the largest get the first colours. */
function groupsOf(program: Program): string[] {
  const sizes = new Map<string, number>();
  for (const b of program.buffers) sizes.set(groupOf(b.account), (sizes.get(groupOf(b.account)) ?? 0) + b.size);
  return [...sizes].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

export function PlanSection({run, theme}: {run: Run; theme: string}) {
  const [chosen, choose] = useView("program");
  const which = Math.max(0, run.programs.findIndex(p => p.name === chosen));
  const program = run.programs[which];
  if (!program) return null;
  const gap = program.lowerBound > 0 ? program.planned / program.lowerBound - 1 : 0;
  return (
    <section class="card long" id="plan" aria-labelledby="plan-title">
      <div class="section-head">
        <h2 id="plan-title">The plan</h2>
        <p>
          The arena of {bytes(program.planned)}, as it was laid out before the first batch{program.planSeconds >= 0.00005 ? ` in ${(program.planSeconds * 1000).toFixed(1)} ms` : ""}. No layout can be below{" "}
          {bytes(program.lowerBound)}: {gap <= 0 ? "this one is as small as can be" : `this one is ${percent(gap)} above`}.
        </p>
      </div>
      {run.programs.length > 1 && (
        <div class="tools">
          <div class="segments" role="group" aria-label="Program">
            {run.programs.map((p, i) => <button key={i} aria-pressed={i === which} onClick={() => choose(i ? p.name.slice(0, 200) : "")}>{shown(p.name, 40)}</button>)}
          </div>
        </div>
      )}
      <PlanMap key={which} program={program} theme={theme} />
      <LayerTable run={run} program={program} />
    </section>
  );
}

function PlanMap({program, theme}: {program: Program; theme: string}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const peak = useMemo(() => peakCall(program), [program]);
  const live = useMemo(() => liveBytes(program), [program]);
  const groups = useMemo(() => groupsOf(program), [program]);
  const [callText, setCallText] = useView("call");
  const call = /^\d{1,7}$/.test(callText) ? Math.min(Math.max(0, program.calls - 1), Math.max(0, Number(callText) - 1)) : peak;
  const setCall = (at: number) => setCallText(at === peak ? "" : String(at + 1));
  const [drawn, setDrawn] = useState(false);
  const paper = useRef<HTMLDivElement>(null);
  const [tip, setTip] = useState<{x: number; y: number; buffer: Buffer} | null>(null);
  const [width, setWidth] = useState(0);
  const alive = useMemo(() => aliveAt(program, call), [program, call]);
  const high = Math.max(program.planned, program.lowerBound, 1) * 1.03;
  useEffect(() => {
    const box = canvas.current!;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    const later = setTimeout(() => setDrawn(true), 60);
    return () => {
      clearTimeout(later);
      observer.disconnect();
    };
  }, []);
  useEffect(() => {
    const box = canvas.current;
    if (!box || !width) return;
    draw(box, program, groups, call, peak, high);
  }, [program, theme, call, width, tip?.buffer]);
  const place = (e: MouseEvent) => {
    const r = canvas.current!.getBoundingClientRect();
    const x = e.clientX - r.left;
    const y = e.clientY - r.top;
    const at = Math.floor(((x - kLeft) / (r.width - kLeft)) * program.calls);
    const address = (1 - (y - kTop) / (r.height - kTop - kBottom)) * high;
    return {x, y, at: Math.max(0, Math.min(program.calls - 1, at)), address};
  };
  const op = program.ops[call];
  const c = colours();
  return (
    <>
      <div class="map on-screen">
        <canvas
          ref={canvas} role="img"
          aria-label={`Map of the arena: ${plural(program.buffers.length, "buffer")} over ${plural(program.calls, "call")}; the peak of ${bytes(live[peak])} is at call ${peak + 1}. The list below says who is there.`}
          onPointerMove={e => {
            const p = place(e);
            const buffer = bufferAt(program, p.at, p.address);
            setTip(buffer && {x: p.x, y: p.y, buffer});
          }}
          onPointerLeave={() => setTip(null)}
          onClick={e => setCall(place(e).at)}
        />
        {tip && (
          <div class="tip" style={{left: `${Math.min(tip.x + 14, Math.max(0, width - 220))}px`, top: `${tip.y + 14}px`}}>
            <strong>{shown(tip.buffer.name, 120)}</strong>
            <br />
            {bytes(tip.buffer.size)} at {bytes(tip.buffer.offset)}, calls {tip.buffer.first + 1} to {tip.buffer.last + 1}
          </div>
        )}
      </div>
      <div class="on-paper" ref={paper} aria-hidden="true">{drawn && <MapSvg program={program} groups={groups} call={call} peak={peak} high={high} />}</div>
      <div class="keys">{groups.map((g, i) => <span key={g}><i class="swatch" style={{background: c.band[i % 8]}} />{shown(g, 60)}</span>)}</div>
      <div class="slider">
        <label for="call">Call</label>
        <input id="call" type="range" min={0} max={Math.max(0, program.calls - 1)} value={call} aria-valuetext={`call ${call + 1}, ${bytes(live[call])} alive`} onInput={e => setCall(Number(e.currentTarget.value))} />
        <span class="number">{call + 1} of {thousands(program.calls)}</span>
        <button class="plain-button" onClick={() => setCall(peak)} disabled={call === peak}>Peak</button>
        <SaveChart name="millpond-plan" of="the map" find={() => paper.current?.querySelector("svg")} />
      </div>
      <p class="at" role="status">
        At call {call + 1}{op ? <>, <code>{shown(op.op, 60)}</code>{op.layer && <> of <code>{shown(op.layer, 80)}</code></>}</> : null}:{" "}
        <strong>{bytes(live[call])}</strong> alive in {plural(alive.length, "buffer")}{call === peak ? ", the peak" : ""}.
      </p>
      <Buffers program={program} groups={groups} alive={alive} call={call} />
    </>
  );
}

/** Every buffer of the plan: those alive at the call, or all; sorted as one likes, and searched. */
function Buffers({program, groups, alive, call}: {program: Program; groups: string[]; alive: Buffer[]; call: number}) {
  const [which, setWhich] = useView("buffers");
  const [query, setQuery] = useView("bq");
  const c = colours();
  const all = which === "all";
  const rows = useMemo(() => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const of = all ? [...program.buffers].sort((a, b) => b.size - a.size) : alive;
    return words.length ? of.filter(b => words.every(w => `${b.name} ${b.account} ${b.layer}`.toLowerCase().includes(w))) : of;
  }, [program, alive, all, query]);
  const columns = useMemo((): Col<Buffer>[] => [
    {key: "name", title: "Buffer", value: b => b.name, cell: b => <span class="place"><i class="swatch" style={{background: c.band[groups.indexOf(groupOf(b.account)) % 8]}} />{shown(b.name, 120)}</span>},
    {key: "size", title: "Bytes", n: true, value: b => b.size, cell: b => bytes(b.size)},
    {key: "exact", title: "Exactly", n: true, wide: true, value: b => b.size, cell: b => <span class="muted">{exact(b.size)}</span>},
    {key: "offset", title: "Offset", n: true, wide: true, value: b => b.offset, tip: b => exact(b.offset), cell: b => bytes(b.offset)},
    {key: "first", title: "From call", n: true, value: b => b.first + 1},
    {key: "last", title: "To call", n: true, value: b => b.last + 1},
    {key: "life", title: "Calls alive", n: true, wide: true, value: b => b.last - b.first + 1},
    {key: "account", title: "Account", wide: true, value: b => b.account, cell: b => <span class="place">{shown(b.account, 80)}</span>},
  ], [program, groups, c.band[0]]);
  const sum = (list: Buffer[]) => list.reduce((s, b) => s + b.size, 0);
  return (
    <>
      <div class="table-tools">
        <div class="segments" role="group" aria-label="Which buffers">
          <button aria-pressed={!all} onClick={() => setWhich("")}>Alive at call {call + 1}</button>
          <button aria-pressed={all} onClick={() => setWhich("all")}>All buffers</button>
        </div>
        <label class="hidden" for="buffer-search">Search buffers</label>
        <input id="buffer-search" class="search" type="search" placeholder="Search buffer, account or layer" value={query} onInput={e => setQuery(e.currentTarget.value)} />
        <span class="muted" role="status">{plural(rows.length, "buffer")}{all ? "" : `, ${bytes(sum(rows))}`}</span>
      </div>
      {rows.length === 0 ? (
        <Empty title="No buffer matches">Every word must be in its name, its account or its layer.</Empty>
      ) : (
        <Table
          id="buffers" label="buffers" className="alive" columns={columns} rows={rows} keyOf={b => `${b.name} ${b.offset} ${b.first}`} usual="-size" most={kMostAlive}
          foot={all ? undefined : [{name: query ? "all that match" : "alive at this call", size: bytes(sum(rows)), exact: exact(sum(rows))}]}
          more={left => <>And {plural(left.length, "more buffer")} of {bytes(sum(left))} together.</>}
        />
      )}
      {program.leftOut > 0 && <p class="hint">{plural(program.leftOut, "buffer")}, the smallest, are not in this page.</p>}
    </>
  );
}

/** The map as a drawing: for paper, and to take along. What is too small to be seen is left out. */
function MapSvg({program, groups, call, peak, high}: {program: Program; groups: string[]; call: number; peak: number; high: number}) {
  const [w, h] = [1040, 380];
  const x = (at: number) => kLeft + (at / program.calls) * (w - kLeft);
  const y = (address: number) => kTop + (1 - address / high) * (h - kTop - kBottom);
  const seen = useMemo(() => [...program.buffers].sort((a, b) => b.size * (b.last - b.first + 1) - a.size * (a.last - a.first + 1)).slice(0, 1500), [program]);
  return (
    <svg viewBox={`0 0 ${w} ${h}`} role="img" aria-label="Map of the arena" font-family="ui-sans-serif, system-ui, sans-serif" font-size="12">
      {byteTicks(high, 5).map(t => (
        <g key={t}>
          <line x1={kLeft} x2={w} y1={y(t)} y2={y(t)} stroke="var(--line)" />
          <text x={kLeft - 8} y={y(t) + 4} text-anchor="end" fill="var(--ink-3)">{t ? bytes(t) : "0"}</text>
        </g>
      ))}
      {seen.map((b, i) => (
        <rect key={i} x={x(b.first).toFixed(1)} y={y(b.offset + b.size).toFixed(1)} width={Math.max(0.8, x(b.last + 1) - x(b.first) - 0.5).toFixed(1)} height={Math.max(0.6, y(b.offset) - y(b.offset + b.size) - 0.5).toFixed(1)} fill={`var(--band-${groups.indexOf(groupOf(b.account)) % 8})`}>
          <title>{`${shown(b.name, 120)}: ${bytes(b.size)}`}</title>
        </rect>
      ))}
      <line x1={kLeft} x2={w} y1={y(program.lowerBound)} y2={y(program.lowerBound)} stroke="var(--ink)" stroke-dasharray="5 4" />
      <text x={w - 6} y={Math.max(10, y(program.lowerBound) - 5)} text-anchor="end" fill="var(--ink)">lower bound {bytes(program.lowerBound)}</text>
      <line x1={x(peak + 0.5)} x2={x(peak + 0.5)} y1={kTop} y2={h - kBottom} stroke="var(--bad)" stroke-width="1.5" />
      <text x={x(peak + 0.5)} y={h - 7} text-anchor="middle" fill="var(--bad)">peak</text>
      {call !== peak && <line x1={x(call + 0.5)} x2={x(call + 0.5)} y1={kTop} y2={h - kBottom} stroke="var(--accent)" stroke-width="1.5" />}
      {x(peak) > kLeft + 60 && <text x={kLeft} y={h - 7} fill="var(--ink-3)">call 1</text>}
      {x(peak) < w - 60 && <text x={w - 2} y={h - 7} text-anchor="end" fill="var(--ink-3)">{thousands(program.calls)}</text>}
    </svg>
  );
}

function draw(box: HTMLCanvasElement, program: Program, groups: string[], call: number, peak: number, high: number) {
  const c = colours();
  const r = devicePixelRatio || 1;
  const w = box.clientWidth;
  const h = box.clientHeight;
  box.width = w * r;
  box.height = h * r;
  const ctx = box.getContext("2d")!;
  ctx.scale(r, r);
  const x = (at: number) => kLeft + (at / program.calls) * (w - kLeft);
  const y = (address: number) => kTop + (1 - address / high) * (h - kTop - kBottom);
  ctx.font = `12px ${c.sans}`;
  ctx.textBaseline = "middle";
  for (const tick of byteTicks(high, 5)) {
    ctx.fillStyle = c.line;
    ctx.fillRect(kLeft, y(tick), w - kLeft, 1);
    ctx.fillStyle = c.ink3;
    ctx.textAlign = "right";
    ctx.fillText(tick ? bytes(tick) : "0", kLeft - 8, y(tick));
  }
  const labels: {b: Buffer; width: number; height: number}[] = [];
  for (const b of program.buffers) {
    const [x0, x1, y0, y1] = [x(b.first), x(b.last + 1), y(b.offset + b.size), y(b.offset)];
    ctx.fillStyle = c.band[groups.indexOf(groupOf(b.account)) % 8];
    ctx.fillRect(x0, y0, Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 1 : 0)), Math.max(0.75, y1 - y0 - (y1 - y0 > 3 ? 1 : 0)));
    if (x1 - x0 > 46 && y1 - y0 > 9.5) labels.push({b, width: x1 - x0, height: y1 - y0});
  }
  // names, on a ground of their own so that they can be read on every colour
  ctx.textAlign = "left";
  for (const {b, width, height} of labels) {
    const size = height > 14 ? 11 : 8.5;
    ctx.font = `${size}px ${c.sans}`;
    const text = shown(b.name, 60);
    const most = Math.floor((width - 14) / (size * 0.57));
    const cut = text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text;
    const at = {x: x(b.first) + 4, y: (y(b.offset) + y(b.offset + b.size)) / 2};
    ctx.fillStyle = c.surface;
    ctx.globalAlpha = 0.82;
    ctx.fillRect(at.x, at.y - size * 0.6, ctx.measureText(cut).width + 7, size * 1.2);
    ctx.globalAlpha = 1;
    ctx.fillStyle = c.ink;
    ctx.fillText(cut, at.x + 3, at.y + 0.5);
  }
  ctx.font = `11px ${c.sans}`;
  ctx.strokeStyle = c.ink;
  ctx.setLineDash([5, 4]);
  ctx.beginPath();
  ctx.moveTo(kLeft, y(program.lowerBound));
  ctx.lineTo(w, y(program.lowerBound));
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.fillStyle = c.ink;
  ctx.textAlign = "right";
  ctx.fillText(`lower bound ${bytes(program.lowerBound)}`, w - 6, Math.max(7, y(program.lowerBound) - 8));
  for (const [at, colour, name] of [[peak, c.bad, "peak"], [call, c.accent, ""]] as const) {
    const middle = x(at + 0.5);
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(middle, kTop);
    ctx.lineTo(middle, h - kBottom);
    ctx.stroke();
    if (name) {
      ctx.fillStyle = colour;
      ctx.textAlign = middle > w - 60 ? "right" : "center";
      ctx.fillText(name, middle, h - kBottom + 11);
    }
  }
  ctx.fillStyle = c.ink3;
  ctx.textAlign = "left";
  if (x(peak) > kLeft + 50) ctx.fillText("call 1", kLeft, h - kBottom + 11);
  ctx.textAlign = "right";
  if (x(peak) < w - 60) ctx.fillText(`${thousands(program.calls)}`, w - 2, h - kBottom + 11);
}

function LayerTable({run, program}: {run: Run; program: Program}) {
  const rows = useMemo(() => layers(run, program), [run, program]);
  const kinds = [["weights", "Weights"], ["slots", "Slots"], ["activations", "Activations"], ["gradients", "Gradients"], ["workspace", "Workspace"], ["atPeak", "In the arena at the peak"]] as const;
  const columns = useMemo((): Col<LayerRow>[] => [
    {key: "layer", title: "Layer", value: r => r.layer, cell: r => <span class="place">{shown(r.layer, 80)}</span>},
    ...kinds.map(([key, title]): Col<LayerRow> => ({key: key.toLowerCase(), title, n: true, value: r => r[key], tip: r => exact(r[key]), cell: r => (r[key] ? bytes(r[key]) : <span class="muted">–</span>)})),
  ], [rows]);
  if (rows.length === 0) return null;
  const sums: Record<string, preact.ComponentChildren> = {layer: "all layers"};
  for (const [key] of kinds) sums[key.toLowerCase()] = bytes(rows.reduce((s, r) => s + r[key], 0));
  return (
    <div style={{marginTop: "1.4rem"}}>
      <h3 class="label">By layer</h3>
      <Table id="layers" label="memory by layer" className="layers" columns={columns} rows={rows} keyOf={r => r.layer} most={14} foot={[sums]} more={left => plural(left.length, "more layer")} />
    </div>
  );
}
