import {useMemo} from "preact/hooks";
import type {Process, Run} from "./decode";
import {bytes, clock, exact, plural, scriptFirst, shown} from "./format";
import {processName, treePeak} from "./series";
import {Spark} from "./SmallCharts";
import {Table, type Col} from "./Table";

const kSeen: Record<string, string> = {inside: "from inside", outside: "from outside", not: "in the sum only"};

/** The program and its children, one by one. */
export function Processes({run}: {run: Run}) {
  const columns = useMemo((): Col<Process>[] => {
    const high = Math.max(1, ...run.processes.map(p => p.peak));
    return [
      {key: "process", title: "Process", value: p => `${p.name} ${p.pid}`, cell: p => <span class="place">{shown(processName(p), 80)}{p.command && <small>{shown(scriptFirst(p.command), 160)}</small>}</span>},
      {key: "peak", title: "Peak", n: true, value: p => p.peak, tip: p => exact(p.peak), cell: p => (p.peak ? bytes(p.peak) : "not measured")},
      {key: "over", title: "Over time", wide: true, value: p => p.peak, cell: p => <Spark values={p.resident} high={high} />},
      {key: "start", title: "From", n: true, value: p => p.start, cell: p => clock(p.start)},
      {key: "end", title: "To", n: true, value: p => p.end, cell: p => clock(p.end)},
      {key: "seen", title: "Seen", wide: true, value: p => kSeen[p.seen] ?? p.seen},
    ];
  }, [run]);
  const tree = treePeak(run);
  if (run.processes.length < 2) return null;
  return (
    <section class="card long" id="processes" aria-labelledby="processes-title">
      <div class="section-head">
        <h2 id="processes-title">Processes</h2>
        <p>
          {plural(run.processes.length, "process")} {run.processes.length === 1 ? "was" : "were"} seen{run.launchers > 0 ? `, and ${plural(run.launchers, "other")} that only started it` : ""}.
          {tree && ` Together they held up to ${bytes(tree.rss)}${tree.pss > 0 ? `, or ${bytes(tree.pss)} with shared pages counted once` : " (pages that they share count in each)"}.`}
        </p>
      </div>
      <Table id="processes" label="all processes" className="processes" columns={columns} rows={run.processes} keyOf={p => `${p.pid} ${p.start}`} most={20} more={left => plural(left.length, "more process")} />
    </section>
  );
}
