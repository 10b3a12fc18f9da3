import type {Run} from "./decode";
import {bytes, clock, duration, exact, limitName, percent, shown, thousands} from "./format";
import {treePeak} from "./series";
import {Spark} from "./SmallCharts";

function Fact({name, children}: {name: string; children: preact.ComponentChildren}) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

type ExplainedData = NonNullable<Run["data"]["measured"]["explained"]>;

/** What has a name, against what is resident. Nothing is cut: what is named may be more, and then that is said. */
export function named(x: ExplainedData): {parts: {name: string; bytes: number; colour: string}[]; sum: number; over: number; without: number} {
  const parts =
    x.in_use === null
      ? [{name: "in accounts, files, stacks and code", bytes: x.explained ?? 0, colour: "var(--band-0)"}]
      : [
          {name: "in use, as the allocators say", bytes: x.in_use, colour: "var(--band-0)"},
          {name: "free in the allocators", bytes: x.free ?? 0, colour: "var(--retained)"},
          {name: "files and shared memory", bytes: x.files ?? 0, colour: "var(--rest)"},
        ];
  const sum = parts.reduce((s, p) => s + p.bytes, 0);
  return {parts, sum, over: Math.max(0, sum - x.resident), without: Math.max(0, x.resident - sum)};
}

function Explained(x: ExplainedData) {
  const {parts, sum, over, without} = named(x);
  const scale = Math.max(sum, x.resident);
  return (
    <>
      {over > 0 ? (
        <p>
          What has a name adds up to <strong>{bytes(sum)}</strong>, {bytes(over)} more than the <strong>{bytes(x.resident)}</strong> that were resident at {clock(x.t)}: so much of it is mapped and not touched, was given back, or is counted twice.
        </p>
      ) : (
        <p>
          Of <strong>{bytes(x.resident)}</strong> that were resident at {clock(x.t)}, <strong>{bytes(sum)}</strong> ({percent(sum / x.resident)}) have a name; {bytes(without)} have none.
        </p>
      )}
      <div class="meter" role="img" aria-label={`${bytes(sum)} have a name, ${bytes(x.resident)} are resident`}>
        {parts.map(p => <i key={p.name} style={{width: `${(100 * p.bytes) / scale}%`, background: p.colour}} />)}
        {over > 0 && <b style={{left: `${(100 * x.resident) / scale}%`}} />}
      </div>
      <div class="keys">
        {parts.map(p => <span key={p.name}><i class="swatch" style={{background: p.colour}} />{p.name} <strong>{bytes(p.bytes)}</strong></span>)}
        {over > 0 && <span><i class="swatch edge" />resident</span>}
        {x.with_line !== null && <span>sampled blocks with their line: <strong>{bytes(x.with_line)}{x.with_line_error ? ` ± ${bytes(x.with_line_error)}` : ""}</strong></span>}
      </div>
    </>
  );
}

export function Measured({run}: {run: Run}) {
  const m = run.data.measured;
  const f = run.data.facts;
  const x = m.explained;
  const cost = m.probe_seconds + m.agent_seconds;
  const engine = run.data.source === "engine";
  const tree = treePeak(run);
  const error = x?.with_line_error ?? 0;
  return (
    <section class="card" id="measured" aria-labelledby="measured-title">
      <div class="section-head"><h2 id="measured-title">What was measured, and how sure it is</h2></div>
      {x && x.resident > 0 && <Explained {...x} />}
      <dl class="facts" style={{marginTop: ".8rem"}}>
        {!engine && <Fact name="Samples of allocations">{thousands(m.samples)}, one for about {bytes(m.interval)}</Fact>}
        {!engine && error > 0 && <Fact name="Sampling error of the sum">± {bytes(error)}, at 95 %</Fact>}
        {!engine && <Fact name="Records lost">{thousands(m.dropped)}</Fact>}
        {!engine && <Fact name="Cost in the program">{cost.toFixed(2)} s{f.seconds > 0 && `, ${percent(cost / f.seconds)} of the time`}</Fact>}
        {!engine && <Fact name="Collector, beside it">{m.collector_seconds.toFixed(2)} s of a processor</Fact>}
        {!engine && m.probe_bytes > 0 && <Fact name="Memory of the probe">{bytes(m.probe_bytes)}</Fact>}
        {engine && <Fact name="How">by the engine itself: every account is exact</Fact>}
        <Fact name="Peak, exactly">{exact(f.peak)}</Fact>
        {tree && <Fact name="Peak of all processes together">{exact(tree.rss)}</Fact>}
        <Fact name="Points of resident memory">{thousands(run.resident.t.length)}</Fact>
        {run.sites && <Fact name="Snapshots of live blocks">{thousands(run.sites.snapshots.length)}, {thousands(run.sites.stacks.length)} stacks</Fact>}
        {f.started && <Fact name="Started">{shown(f.started, 60).replace("T", " ").replace("Z", " UTC")}</Fact>}
        <Fact name="Ran for">{duration(f.seconds)}</Fact>
        {f.model && <Fact name="Model">{shown(f.model, 80)}{f.batch && `, batch ${shown(f.batch, 20)}`}{f.optimizer && `, ${shown(f.optimizer, 40)}`}</Fact>}
        {f["host.cpu"] && <Fact name="Machine">{shown(f["host.cpu"], 80)}{f["host.cores"] && `, ${shown(f["host.cores"], 10)} cores`}</Fact>}
        {f["host.memory_bytes"] && <Fact name="Its memory">{bytes(Number(f["host.memory_bytes"]))}</Fact>}
        {run.data.limits.map(l => <Fact key={l.name} name={`Limit: ${limitName(l.name)}`}>{bytes(l.bytes)}</Fact>)}
        <Fact name="Run file">{shown(run.data.name, 120)}</Fact>
      </dl>
      {m.remarks && <p class="settle" style={{marginTop: "1rem"}}>Not seen: {shown(m.remarks)}</p>}
      {run.data.counters.length > 0 && (
        <details style={{marginTop: "1rem"}}>
          <summary>Counters of the frameworks</summary>
          <div class="scroll" tabIndex={0} role="region" aria-label="Counters">
            <table><thead><tr><th scope="col">Counter</th><th scope="col">Over time</th><th class="n" scope="col">First</th><th class="n" scope="col">Last</th></tr></thead>
              <tbody>{run.data.counters.map(c => <tr key={c.name}><td class="place">{shown(c.name, 80)}</td><td><Spark values={c.value} /></td><td class="n">{thousands(c.value[0] ?? 0)}</td><td class="n">{thousands(c.value[c.value.length - 1] ?? 0)}</td></tr>)}</tbody>
            </table>
          </div>
        </details>
      )}
    </section>
  );
}
