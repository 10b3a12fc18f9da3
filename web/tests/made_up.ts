/** A small run, as the program would write it. */
import type {PageData, RunData} from "../src/types";

export function run(change: Partial<RunData> = {}): RunData {
  return {
    name: "run.pond", source: "watch", title: "python train.py", verdict: "leak", sentence: "Memory grows.", would_settle: "", early: false,
    facts: {command: "python train.py", seconds: 4, ended: true, status: "ended", exit_code: 0, signal: null, peak: 400, baseline: 100, end: 400},
    strings: ["", "epoch", "fit", "train.py", "keep", "lib.py", "call", "/usr/lib/x.so", "alloc", "main", "end"],
    resident: {t: [0, 1000, 1000, 1000], rss: [100, 100, 100, 100], swap: [null, null, null, null]},
    tree: null,
    accounts: {
      t: [1000, 1000, 1000], resident: [200, 100, 100],
      list: [
        {name: "code, libraries, stacks", group: "code, libraries, stacks", kind: "rest", bytes: [50, 0, 0]},
        {name: "Python objects", group: "Python objects", kind: "use", bytes: [100, 100, 100]},
        {name: "malloc, free but kept", group: "malloc, free but kept", kind: "retained", bytes: [50, 0, 0]},
        {name: "mapped, not touched", group: "mapped, not touched", kind: "reserved", bytes: [0, 0, 7]},
      ],
    },
    marks: {t: [1000, 1000, 1000], kind: [1, 0, 0], name: [2, 0, 0], index: [1, 1, 1], period: [1, 0, 0], rss: [200, 100, 100]},
    phases: {kind: [2], name: [0], index: [0], start: [500], end: [null]},
    periods: {unit: "epoch", kind: "epoch", warm: 1, seconds: 1, t: [1000, 1000, 1000], x: [1, 2, 3], index: [1, 1, 1], rss: [200, 100, 100], live: [150, 100, 100]},
    probes: [], limits: [{name: "machine", bytes: 10000}],
    findings: [], advice: [], growth: [],
    sites: {
      // 0 keep (user), 1 main (user), 2 call (library), 3 alloc (native)
      frames: {file: [3, 0, 2, 2], function: [4, 5, -3, 2], line: [12, 28, -33, -7], flags: [6, 0, -2, 1], text: {"0": "self.kept.append(x)"}},
      stacks: [[0, 2, 1], [3, 2, 1], [3]],
      snapshots: {t: [1000, 1000, 1000], kind: [1, 0, 9], index: [1, 1, 1], rss: [200, 100, 100], sum: [70, 50, -60], other: [5, 0, 0]},
      bytes: [[10, 50, 0], [40, 0, -35], [20, 0, -20]],
      blocks: [3, 1, 0], allocated: [100, 400, 20], freed: [40, 395, 20], temporary: [0, 300, 10], thread: [0, 1, -1], doubt: [4, 0, 9],
    },
    processes: [], sources: [], lines: null, threads: ["main thread", "load, thread 2"], sizes: null,
    programs: [], counters: [], gpu: [], pools: [],
    measured: {samples: 10, interval: 65536, dropped: 0, explained: null, probe_seconds: 0, agent_seconds: 0, collector_seconds: 0, probe_bytes: 0, remarks: ""},
    ...change,
  };
}

export function page(...runs: RunData[]): PageData {
  return {format: 2, version: "0", live: false, runs, compare: null};
}
