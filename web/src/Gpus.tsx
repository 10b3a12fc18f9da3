import {useRef} from "preact/hooks";
import {column, type Pool, type Run} from "./decode";
import {bytes, clock, exact, plural, shown} from "./format";
import {Spark} from "./SmallCharts";
import {Table, type Col} from "./Table";
import {byteTicks, timeTicks} from "./ticks";
import {SaveChart} from "./Tools";
import type {RunData} from "./types";

const kWide = 1040;
const kTall = 210;
const kLeft = 72;
const kBottom = 26;
const kMostDrawn = 8;

const most = (values: Float64Array) => values.reduce((a, b) => (b > a ? b : a), 0);
const last = (values: Float64Array) => values[values.length - 1] ?? NaN;
export const poolName = (p: Pool): string => `${p.pool} on ${p.space}${p.pid === null ? "" : ` in ${p.name || "process"} ${p.pid}`}`;

/** What a pool had in use, filled, below what it had reserved, the line. */
function Drawn({run, pool}: {run: Run; pool: Pool}) {
  const host = useRef<HTMLElement>(null);
  const high = 1.08 * Math.max(1, most(pool.inUse), most(pool.reserved));
  const x = (t: number) => kLeft + (t / run.end) * (kWide - kLeft - 10);
  const y = (v: number) => 8 + (1 - v / high) * (kTall - kBottom - 8);
  const points = (values: Float64Array) => Array.from(pool.t, (t, i) => (Number.isFinite(values[i]) ? `${x(t).toFixed(1)},${y(values[i]).toFixed(1)}` : "")).filter(Boolean);
  const used = points(pool.inUse);
  const name = shown(poolName(pool), 120);
  return (
    <figure ref={host} class="pool">
      <div class="under">
        <figcaption>{name}: <strong title={exact(last(pool.inUse))}>{bytes(last(pool.inUse))}</strong> in use in the end, {bytes(pool.peak)} at most{most(pool.reserved) > 0 && <>, {bytes(last(pool.reserved))} reserved</>}.</figcaption>
        <SaveChart name={`millpond-${pool.space.replace(":", "")}`} of={`memory of ${name}`} find={() => host.current?.querySelector<SVGSVGElement>("svg")} />
      </div>
      <svg viewBox={`0 0 ${kWide} ${kTall}`} role="img" aria-label={`${name}: from ${bytes(pool.inUse[0])} to ${bytes(last(pool.inUse))} in use`} font-family="ui-sans-serif, system-ui, sans-serif" font-size="12">
        {byteTicks(high).map(v => <g key={v}><line x1={kLeft} x2={kWide} y1={y(v)} y2={y(v)} stroke="var(--line)" /><text x={kLeft - 8} y={y(v) + 4} text-anchor="end" fill="var(--ink-3)">{v === 0 ? "0" : bytes(v)}</text></g>)}
        {timeTicks(0, run.end, 8).map(t => <text key={t} x={x(t)} y={kTall - 6} text-anchor="middle" fill="var(--ink-3)">{clock(t)}</text>)}
        {used.length > 1 && <path d={`M${x(pool.t[0]).toFixed(1)},${y(0)}L${used.join("L")}L${x(last(pool.t)).toFixed(1)},${y(0)}Z`} fill="var(--band-0)" fill-opacity="0.55" />}
        <polyline points={points(pool.reserved).join(" ")} fill="none" stroke="var(--resident)" stroke-width="2" />
      </svg>
    </figure>
  );
}

type Device = RunData["gpu"][number];

/** What the driver says of every device, and what pools of frameworks had of it, by process. */
export function Gpus({run}: {run: Run}) {
  const {gpu} = run.data;
  if (gpu.length === 0 && run.pools.length === 0) return null;
  const columns: Col<Device>[] = [
    {key: "device", title: "GPU", value: g => g.device, cell: g => <span class="place">{g.device} {shown(g.name, 80)}</span>},
    {key: "of", title: "Of", wide: true, value: g => (g.by_program_peak === null ? "all programs: which is whose was not told" : "the program")},
    {key: "over", title: "Over time", wide: true, value: g => g.used_peak, cell: g => <Spark values={column(g.by_program_peak === null ? g.used : g.by_program)} />},
    {key: "most", title: "Most", n: true, value: g => g.by_program_peak ?? g.used_peak, tip: g => exact(g.by_program_peak ?? g.used_peak), cell: g => bytes(g.by_program_peak ?? g.used_peak)},
    {key: "total", title: "Of all", n: true, value: g => g.total, tip: g => exact(g.total), cell: g => bytes(g.total)},
  ];
  return (
    <section class="card long" id="gpu" aria-labelledby="gpu-title">
      <div class="section-head">
        <h2 id="gpu-title">Memory of GPUs</h2>
        <p>
          {run.pools.length > 0
            ? "What frameworks' pools had in use, and reserved, was read at every round; which line keeps it stands with what was found. Outside of the pools the driver tells totals only."
            : "Totals from the driver: what grows on a GPU is not told by line."}
        </p>
      </div>
      {run.pools.slice(0, kMostDrawn).map((p, i) => <Drawn key={i} run={run} pool={p} />)}
      {run.pools.length > kMostDrawn && <p class="hint">{plural(run.pools.length - kMostDrawn, "more pool")} not drawn.</p>}
      {run.pools.length > 0 && <div class="keys"><span><i class="swatch" style={{background: "var(--band-0)"}} />in use</span><span><i class="swatch line" style={{borderColor: "var(--resident)"}} />reserved</span></div>}
      {gpu.length > 0 && <Table id="gpus" label="GPUs as their driver tells" className="gpus" columns={columns} rows={gpu} keyOf={g => g.device} />}
    </section>
  );
}
