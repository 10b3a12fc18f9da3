import {useEffect, useMemo, useRef, useState} from "preact/hooks";
import {colours} from "./colours";
import type {Buffer, Program, Run} from "./decode";
import {bytes, exact, percent, plural, shown, thousands} from "./format";
import {aliveAt, bufferAt, groupOf, layers, liveBytes, peakCall} from "./plan";
import {byteTicks} from "./ticks";

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
  const [which, setWhich] = useState(0);
  const program = run.programs[Math.min(which, run.programs.length - 1)];
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
            {run.programs.map((p, i) => <button key={i} aria-pressed={i === which} onClick={() => setWhich(i)}>{shown(p.name, 40)}</button>)}
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
  const [call, setCall] = useState(peak);
  const [tip, setTip] = useState<{x: number; y: number; buffer: Buffer} | null>(null);
  const [width, setWidth] = useState(0);
  const alive = useMemo(() => aliveAt(program, call), [program, call]);
  const high = Math.max(program.planned, program.lowerBound, 1) * 1.03;
  useEffect(() => {
    const box = canvas.current!;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    return () => observer.disconnect();
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
      <div class="map">
        <canvas
          ref={canvas} role="img"
          aria-label={`Map of the arena: ${plural(program.buffers.length, "buffer")} over ${plural(program.calls, "call")}; the peak of ${bytes(live[peak])} is at call ${peak + 1}. The list below says who is there.`}
          onMouseMove={e => {
            const p = place(e);
            const buffer = bufferAt(program, p.at, p.address);
            setTip(buffer && {x: p.x, y: p.y, buffer});
          }}
          onMouseLeave={() => setTip(null)}
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
      <div class="keys">{groups.map((g, i) => <span key={g}><i class="swatch" style={{background: c.band[i % 8]}} />{shown(g, 60)}</span>)}</div>
      <div class="slider">
        <label for="call">Call</label>
        <input id="call" type="range" min={0} max={Math.max(0, program.calls - 1)} value={call} aria-valuetext={`call ${call + 1}, ${bytes(live[call])} alive`} onInput={e => setCall(Number(e.currentTarget.value))} />
        <span class="number">{call + 1} of {thousands(program.calls)}</span>
        <button class="plain-button" onClick={() => setCall(peak)} disabled={call === peak}>Peak</button>
      </div>
      <p class="at" role="status">
        At call {call + 1}{op ? <>, <code>{shown(op.op, 60)}</code>{op.layer && <> of <code>{shown(op.layer, 80)}</code></>}</> : null}:{" "}
        <strong>{bytes(live[call])}</strong> alive in {plural(alive.length, "buffer")}{call === peak ? ", the peak" : ""}.
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Buffers alive at this call">
        <table class="alive">
          <thead><tr><th>Buffer</th><th class="n">Bytes</th><th class="n wide">Exactly</th><th class="n wide">Offset</th><th class="n">Calls</th></tr></thead>
          <tbody>
            {alive.slice(0, kMostAlive).map(b => (
              <tr key={b.name + b.offset}>
                <td class="place"><i class="swatch" style={{background: c.band[groups.indexOf(groupOf(b.account)) % 8]}} />{shown(b.name, 120)}</td>
                <td class="n">{bytes(b.size)}</td>
                <td class="n wide muted">{exact(b.size)}</td>
                <td class="n wide">{bytes(b.offset)}</td>
                <td class="n">{b.first + 1}–{b.last + 1}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {alive.length > kMostAlive && <p class="hint">And {plural(alive.length - kMostAlive, "smaller buffer")} of {bytes(alive.slice(kMostAlive).reduce((s, b) => s + b.size, 0))} together.</p>}
        {program.leftOut > 0 && <p class="hint">{plural(program.leftOut, "buffer")}, the smallest, are not in this page.</p>}
      </div>
    </>
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
  const [all, setAll] = useState(false);
  const kFew = 14;
  if (rows.length === 0) return null;
  const cell = (n: number) => <td class="n" title={exact(n)}>{n ? bytes(n) : <span class="muted">–</span>}</td>;
  const sum = (key: "weights" | "slots" | "activations" | "gradients" | "workspace" | "atPeak") => rows.reduce((s, r) => s + r[key], 0);
  return (
    <div style={{marginTop: "1.4rem"}}>
      <h3 class="label">By layer</h3>
      <div class="scroll" tabIndex={0} role="region" aria-label="Memory by layer">
        <table class="layers">
          <thead><tr><th>Layer</th><th class="n">Weights</th><th class="n">Slots</th><th class="n">Activations</th><th class="n">Gradients</th><th class="n">Workspace</th><th class="n">In the arena at the peak</th></tr></thead>
          <tbody>
            {(all ? rows : rows.slice(0, kFew)).map(r => <tr key={r.layer}><td class="place">{shown(r.layer, 80)}</td>{cell(r.weights)}{cell(r.slots)}{cell(r.activations)}{cell(r.gradients)}{cell(r.workspace)}{cell(r.atPeak)}</tr>)}
            <tr><td><strong>all layers</strong></td>{cell(sum("weights"))}{cell(sum("slots"))}{cell(sum("activations"))}{cell(sum("gradients"))}{cell(sum("workspace"))}{cell(sum("atPeak"))}</tr>
          </tbody>
        </table>
      </div>
      {rows.length > kFew && <p class="hint"><button class="plain-button" onClick={() => setAll(!all)}>{all ? "Show fewer" : `Show all ${rows.length} layers`}</button></p>}
    </div>
  );
}
