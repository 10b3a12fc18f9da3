import {useMemo, useRef} from "preact/hooks";
import type {Run, SizeClass} from "./decode";
import {bytes, estimated, percent, shown, thousands, withError} from "./format";
import {processName} from "./series";
import {Table, type Col} from "./Table";
import {SaveChart} from "./Tools";
import {useView} from "./view";

const kWide = 1040;
const kTall = 250;
const kLeft = 72;
const kBottom = 40;

const edge = (n: number) => (n >= 2 ** 30 ? `${n / 2 ** 30} GiB` : n >= 2 ** 20 ? `${n / 2 ** 20} MiB` : n >= 1024 ? `${n / 1024} KiB` : `${n}`);
export const className = (c: SizeClass): string => (c.from === 0 ? `below ${edge(c.to)} B` : c.to === Infinity ? `${edge(c.from)} and more` : `${edge(c.from)}${c.to <= 512 ? " B" : ""} to ${edge(c.to)}${c.to < 1024 ? " B" : ""}`);

/** Of a part of a class what 95 % lie within: it goes with the root of the bytes. */
const errorOf = (c: SizeClass, part: number): number => (c.bytes > 0 ? c.error * Math.sqrt(Math.max(0, part) / c.bytes) : 0);

/** Blocks by their size: what was kept, what was freed, and what was freed at once. */
export function Sizes({run}: {run: Run}) {
  const [by, setBy] = useView("sizes");
  const host = useRef<HTMLDivElement>(null);
  const [pid, setPid] = useView("process");
  const process = run.processes.find(p => String(p.pid) === pid && p.sizes.length > 0) ?? null;
  const counted = run.processes.filter(p => p.sizes.length > 0);
  const sizes = process ? process.sizes : run.sizes;
  const columns = useMemo((): Col<SizeClass>[] => {
    const all = sizes.reduce((s, c) => s + c.bytes, 0);
    return [
      {key: "from", title: "Size of a block", value: c => c.from, cell: c => className(c)},
      {key: "blocks", title: "Blocks", n: true, value: c => c.blocks, cell: c => thousands(c.blocks)},
      {key: "bytes", title: "Allocated", n: true, value: c => c.bytes, tip: c => estimated(c.bytes, c.error), cell: c => withError(c.bytes, c.error)},
      {key: "share", title: "Share", n: true, wide: true, value: c => c.bytes / all, cell: c => percent(c.bytes / all)},
      {key: "temporary", title: "Temporary", n: true, value: c => c.temporary, tip: c => estimated(c.temporary, errorOf(c, c.temporary)), cell: c => withError(c.temporary, errorOf(c, c.temporary))},
      {key: "freed", title: "Freed", n: true, wide: true, value: c => c.freed, tip: c => estimated(c.freed, errorOf(c, c.freed)), cell: c => withError(c.freed, errorOf(c, c.freed))},
      {key: "kept", title: "Kept", n: true, value: c => c.bytes - c.freed, tip: c => estimated(c.bytes - c.freed, errorOf(c, c.bytes - c.freed)), cell: c => withError(c.bytes - c.freed, errorOf(c, c.bytes - c.freed))},
    ];
  }, [sizes]);
  if (sizes.length === 0) return null;
  const blocks = by === "blocks";
  const total = (of: (c: SizeClass) => number) => sizes.reduce((s, c) => s + of(c), 0);
  const most = Math.max(1, ...sizes.map(c => (blocks ? c.blocks : c.bytes)));
  const step = (kWide - kLeft - 8) / sizes.length;
  const y = (v: number) => (kTall - kBottom) * (1 - v / most) + 6;
  const foot = kTall - kBottom + 6;
  return (
    <section class="card long" id="sizes" aria-labelledby="sizes-title">
      <div class="section-head">
        <h2 id="sizes-title">Blocks by size</h2>
        <p>
          {bytes(total(c => c.bytes))} in about {thousands(total(c => c.blocks))} blocks were allocated in the whole run, {process ? `in ${shown(processName(process), 80)}` : "all processes together"}; {percent(total(c => c.temporary) / Math.max(1, total(c => c.bytes)))} of the bytes were freed within 10 ms. Estimates from samples.
        </p>
      </div>
      <div class="tools">
        <div class="segments" role="group" aria-label="What is counted">
          <button aria-pressed={!blocks} onClick={() => setBy("")}>Bytes</button>
          <button aria-pressed={blocks} onClick={() => setBy("blocks")}>Blocks</button>
        </div>
        {counted.length > 1 && (
          <label class="choose">Process{" "}
            <select aria-label="Process" value={process ? String(process.pid) : ""} onChange={e => setPid(e.currentTarget.value)}>
              <option value="">all together</option>
              {counted.map(p => <option key={`${p.pid} ${p.start}`} value={String(p.pid)}>{shown(processName(p), 60)}</option>)}
            </select>
          </label>
        )}
        <span class="push" />
        <SaveChart name="millpond-sizes" of="the histogram" find={() => host.current?.querySelector("svg")} />
      </div>
      <div ref={host} class="histogram">
        <svg viewBox={`0 0 ${kWide} ${kTall}`} role="img" aria-label={`Blocks by size: ${sizes.map(c => `${className(c)}: ${bytes(c.bytes)}`).join(", ")}`} font-family="ui-sans-serif, system-ui, sans-serif" font-size="12">
          {[0, 0.5, 1].map(k => (
            <g key={k}>
              <line x1={kLeft} x2={kWide} y1={y(most * k)} y2={y(most * k)} stroke="var(--line)" />
              <text x={kLeft - 8} y={y(most * k) + 4} text-anchor="end" fill="var(--ink-3)">{k === 0 ? "0" : blocks ? thousands(Math.round(most * k)) : bytes(most * k)}</text>
            </g>
          ))}
          {sizes.map((c, i) => {
            const x = kLeft + 4 + i * step;
            const w = Math.max(2, step - 6);
            const parts: [number, string][] = blocks ? [[c.blocks, "var(--band-0)"]] : [[c.bytes - c.freed, "var(--band-0)"], [c.freed - c.temporary, "var(--rest)"], [c.temporary, "var(--band-3)"]];
            let sum = 0;
            return (
              <g key={c.from}>
                <title>{`${className(c)}: ${thousands(c.blocks)} blocks, ${withError(c.bytes, c.error)}; kept ${bytes(c.bytes - c.freed)}, temporary ${bytes(c.temporary)}`}</title>
                {parts.map(([v, fill], k) => {
                  sum += v;
                  return v > 0 && <rect key={k} x={x} width={w} y={y(sum)} height={Math.max(0.5, y(sum - v) - y(sum))} fill={fill} />;
                })}
                <text x={x - 3} y={foot + 16} text-anchor="middle" fill="var(--ink-3)">{step > 58 || i % 2 === 0 ? (c.from === 0 ? "0" : edge(c.from)) : ""}</text>
              </g>
            );
          })}
          <line x1={kLeft} x2={kWide} y1={foot} y2={foot} stroke="var(--line-strong)" />
          <text x={kWide} y={foot + 32} text-anchor="end" fill="var(--ink-3)">size of a block, from</text>
        </svg>
      </div>
      {!blocks && (
        <div class="keys"><span><i class="swatch" style={{background: "var(--band-0)"}} />kept to the end</span><span><i class="swatch" style={{background: "var(--rest)"}} />freed</span><span><i class="swatch" style={{background: "var(--band-3)"}} />temporary: freed within 10 ms</span></div>
      )}
      <details>
        <summary>As a table</summary>
        <Table
          id="sizes" label="blocks by size" className="sizes" columns={columns} rows={sizes} keyOf={c => c.from}
          foot={[{from: "all sizes", blocks: thousands(total(c => c.blocks)), bytes: bytes(total(c => c.bytes)), temporary: bytes(total(c => c.temporary)), freed: bytes(total(c => c.freed)), kept: bytes(total(c => c.bytes - c.freed))}]}
        />
      </details>
    </section>
  );
}
