import {useMemo, useRef} from "preact/hooks";
import type {Run} from "./decode";
import {bytes, exact, plural, shown, signedBytes} from "./format";
import {bornAt, growthName, kParts, spoken, waterfall} from "./growth";
import {Table, type Col} from "./Table";
import {SaveChart} from "./Tools";
import type {GrowthData, PartData} from "./types";
import {useView} from "./view";

const kWide = 640;
const kRow = 26;
const kAxis = 22;

const within = (range: [number, number]) => `${bytes(range[0])} to ${bytes(range[1])}`;

/** One bar upon the other, as far as each part brings the sum; a thin line is where 95 % lie. The names stand beside it, in the table. */
function Waterfall({growth}: {growth: GrowthData}) {
  const {bars, low, high} = waterfall(growth);
  const x = (v: number) => 8 + ((v - low) / (high - low)) * (kWide - 16);
  const tall = kRow * (bars.length + 1) + kAxis;
  return (
    <svg viewBox={`0 0 ${kWide} ${tall}`} role="img" aria-label={shown(spoken(growth))} font-family="ui-sans-serif, system-ui, sans-serif" font-size="13">
      <line x1={x(0)} x2={x(0)} y1={0} y2={tall - kAxis + 4} stroke="var(--line-strong)" />
      <text x={x(0)} y={tall - 5} text-anchor={x(0) > kWide / 2 ? "end" : "start"} fill="var(--ink-2)">0</text>
      <text x={x(growth.growth)} y={tall - 5} text-anchor={x(growth.growth) > kWide / 2 ? "end" : "start"} fill="var(--ink-2)">{signedBytes(growth.growth)}</text>
      {bars.map((b, i) => {
        const y = i * kRow + 5;
        const next = i + 1 < bars.length ? i + 1 : bars.length;
        return (
          <g key={i}>
            <title>{`${shown(b.part.name, 200)}: ${signedBytes(b.part.bytes)} (${within(b.part.range)})`}</title>
            <rect x={Math.min(x(b.from), x(b.to))} y={y} width={Math.max(1.5, Math.abs(x(b.to) - x(b.from)))} height={kRow - 10} rx={2} fill={kParts[b.part.kind].colour} />
            <line x1={x(b.low)} x2={x(b.high)} y1={y + kRow / 2 - 5} y2={y + kRow / 2 - 5} stroke="var(--ink)" />
            <line x1={x(b.to)} x2={x(b.to)} y1={y} y2={next * kRow + 5} stroke="var(--line-strong)" stroke-dasharray="2 2" />
          </g>
        );
      })}
      <rect x={Math.min(x(0), x(growth.growth))} y={bars.length * kRow + 5} width={Math.max(1.5, Math.abs(x(growth.growth) - x(0)))} height={kRow - 10} rx={2} fill="var(--ink-2)"><title>{`all: ${signedBytes(growth.growth)}`}</title></rect>
      <line x1={x(growth.range[0])} x2={x(growth.range[1])} y1={bars.length * kRow + kRow / 2} y2={bars.length * kRow + kRow / 2} stroke="var(--ink)" />
    </svg>
  );
}

/** Where growth went: parts that add up, by process and space. */
export function Growth({run}: {run: Run}) {
  const list = run.data.growth;
  const [which, choose] = useView("growth");
  const host = useRef<HTMLDivElement>(null);
  const columns = useMemo((): Col<PartData>[] => [
    {
      key: "part", title: "Part", value: p => p.name,
      cell: p => <span><i class="swatch" style={{background: kParts[p.kind].colour}} />{shown(p.name, 160)}{p.chain.length > 1 && <small class="muted"> in {shown(p.chain.slice(1).join(", in "), 240)}</small>}</span>,
    },
    {key: "kind", title: "What it is", wide: true, value: p => kParts[p.kind].word},
    {key: "born", title: "Allocated at", value: p => bornAt(p), cell: p => <span class="place">{shown(bornAt(p), 80)}</span>, tip: p => (p.born ? shown(`${p.born.file}:${p.born.line}`, 400) : "")},
    {key: "bytes", title: "Growth", n: true, value: p => p.bytes, tip: p => exact(p.bytes), cell: p => signedBytes(p.bytes)},
    {key: "low", title: "95 % from", n: true, wide: true, value: p => p.range[0], cell: p => bytes(p.range[0])},
    {key: "high", title: "to", n: true, wide: true, value: p => p.range[1], cell: p => bytes(p.range[1])},
  ], []);
  const growth = list[Number(which) || 0] ?? list[0];
  if (!growth) return null;
  return (
    <section class="card long" id="growth" aria-labelledby="growth-title">
      <div class="section-head">
        <h2 id="growth-title">Where the growth went</h2>
        <p>
          {shown(growthName(growth), 120)} grew by {signedBytes(growth.growth)} ({within(growth.range)} with 95 %) over {plural(Math.round(growth.rounds), growth.unit)} after warm-up. The parts add up to it.
        </p>
      </div>
      <div class="tools">
        {list.length > 1 && (
          <label class="choose">Of{" "}
            <select value={String(list.indexOf(growth))} onChange={e => choose(e.currentTarget.value === "0" ? "" : e.currentTarget.value)}>
              {list.map((g, i) => <option key={i} value={String(i)}>{shown(growthName(g), 80)} ({signedBytes(g.growth)})</option>)}
            </select>
          </label>
        )}
        <span class="push" />
        <SaveChart name="millpond-growth" of="the account of growth" find={() => host.current?.querySelector("svg")} />
      </div>
      <div ref={host} class="histogram"><Waterfall growth={growth} /></div>
      <Table
        id="growth" label="parts of the growth" className="growth" columns={columns} rows={growth.parts} keyOf={(_, i) => i}
        foot={[{part: "all", bytes: <span title={exact(growth.growth)}>{signedBytes(growth.growth)}</span>, low: bytes(growth.range[0]), high: bytes(growth.range[1])}]}
      />
    </section>
  );
}
