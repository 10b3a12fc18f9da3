import {useMemo} from "preact/hooks";
import {leading} from "./answer";
import {processOf, seenFrom, type Process, type Run} from "./decode";
import {shown} from "./format";
import {processName} from "./series";
import {useView} from "./view";

/** The process that the answer speaks of, where it was looked into; otherwise the main one. */
export function usualProcess(run: Run): Process | null {
  const finding = leading(run.data.findings);
  const process = finding && processOf(run, finding);
  return process && seenFrom(run, process) ? process : run.of;
}

/** One choice for all views of one process, kept in the address by pid. `run` is told as it was seen from that one. */
export function useProcess(run: Run): {run: Run; chosen: Process | null; choose(pid: string): void} {
  const [text, choose] = useView("process");
  return useMemo(() => {
    const asked = run.processes.find(p => String(p.pid) === text && seenFrom(run, p)) ?? usualProcess(run);
    return {run: seenFrom(run, asked) ?? run, chosen: asked, choose};
  }, [run, text]);
}

/** Those that were only seen from outside stand in the list too, and say so. */
export function ProcessChoice({run, chosen, choose}: {run: Run; chosen: Process | null; choose(pid: string): void}) {
  if (run.processes.length < 2 || !chosen) return null;
  const usual = usualProcess(run);
  return (
    <label class="choose">Process{" "}
      <select aria-label="Process" value={String(chosen.pid)} onChange={e => choose(e.currentTarget.value === String(usual?.pid) ? "" : e.currentTarget.value)}>
        {run.processes.map(p => <option key={`${p.pid} ${p.start}`} value={String(p.pid)} disabled={!seenFrom(run, p)}>{shown(processName(p), 60)}{seenFrom(run, p) ? "" : ", not looked into"}</option>)}
      </select>
    </label>
  );
}
