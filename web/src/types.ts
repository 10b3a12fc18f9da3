/**
 * The document that the program puts into the page (src/report/page.h says the same in C++). Everything that is shown comes from a field here.
 *
 * A column holds integers, each the difference to the one before; null was not measured, and the next counts from the last that was.
 * Times are whole milliseconds since the run began. Bytes are the same integers as in the run file. `Name` is an index into `strings`.
 */
export type Column = (number | null)[];
export type Names = Column;

export type Kind = "leak" | "fragmentation" | "retention" | "cache" | "reserve" | "flat" | "unsure";
export type AccountKind = "use" | "retained" | "reserved" | "rest";

export interface PageData {
  format: 2;
  version: string;
  live: boolean;
  runs: RunData[];
  compare: CompareData | null;
}

export interface RunData {
  name: string;
  source: "watch" | "engine";
  title: string;
  verdict: Kind;
  sentence: string;
  would_settle: string;
  /** it goes on and has hardly begun: nothing is said yet */
  early: boolean;
  facts: Facts;
  strings: string[];
  resident: {t: Column; rss: Column; swap: Column};
  tree: {t: Column; processes: Column; rss: Column; private_dirty: Column; pss: Column} | null;
  gpu: {device: number; name: string; total: number; used_peak: number; by_program_peak: number | null; t: Column; used: Column; by_program: Column}[];
  /** what pools of frameworks had of GPUs, by process */
  pools: PoolData[];
  accounts: AccountsData;
  marks: MarksData;
  phases: {kind: Names; name: Names; index: Column; start: Column; end: Column};
  periods: PeriodsData | null;
  probes: ProbeData[];
  limits: {name: string; bytes: number}[];
  findings: FindingData[];
  /** where growth went, by process and space; all processes together first */
  growth: GrowthData[];
  advice: {what: string; text: string; place: PlaceData | null}[];
  sites: SitesData | null;
  /** the program and its children, the one whose story is told first; one that was alone has no points */
  processes: ProcessData[];
  /** of the user's own, as it was when the run was recorded */
  sources: {file: number; function: number; first: number; lines: string[]}[];
  lines: LinesData | null;
  threads: string[];
  /** of all processes together */
  sizes: SizesData | null;
  programs: ProgramData[];
  measured: MeasuredData;
  counters: {name: string; t: Column; value: number[]}[];
}

export interface AccountsData {
  t: Column;
  resident: Column;
  list: {name: string; group: string; kind: AccountKind; bytes: Column}[];
}
export interface MarksData {
  t: Column;
  kind: Names;
  name: Names;
  index: Column;
  period: Column;
  rss: Column;
}
/** The rounds that the verdict compared; `index` is the program's own count. Of a pool `rss` and `live` are what it had in use. */
export interface PeriodsData {
  unit: string;
  kind: string;
  warm: number;
  seconds: number;
  t: Column;
  x: number[];
  index: Column;
  rss: Column;
  live: Column;
}
/** Errors hold 95 %. */
export interface LinesData {
  file: Names;
  line: Column;
  allocated: Column;
  freed: Column;
  kept: Column;
  temporary: Column;
  kept_error: Column;
  allocated_error: Column;
  t: number;
}
/** All blocks ever sampled, by size: [from[i], from[i + 1]); `error` is that of `bytes`. */
export interface SizesData {
  from: number[];
  blocks: number[];
  bytes: number[];
  freed: number[];
  temporary: number[];
  error: number[];
}
export interface PoolData {
  /** as in `processes`; null: the one whose story is told */
  process: number | null;
  name: string;
  pid: number | null;
  /** "gpu:0" */
  space: string;
  /** "torch", "jax" */
  pool: string;
  peak: number;
  retries: number;
  t: Column;
  in_use: Column;
  reserved: Column;
  in_use_peak: Column;
  periods: PeriodsData | null;
}

export interface Facts {
  command: string;
  seconds: number;
  ended: boolean;
  status: string;
  exit_code: number | null;
  signal: number | null;
  peak: number;
  baseline: number;
  end: number;
  /** what it held after its last round: as it ends a program gives much back */
  last_round?: {name: string; rss: number};
  planned?: number;
  started?: string;
  model?: string;
  optimizer?: string;
  loss?: string;
  batch?: string;
  threads?: string;
  version?: string;
  program?: string;
  "host.cpu"?: string;
  "host.cores"?: string;
  "host.memory_bytes"?: string;
  "host.kernel"?: string;
}

export interface ProbeData {
  t: number;
  period: number;
  rss: number;
  after_gc: number;
  after_trim: number;
  collected: number;
}

export interface PlaceData {
  file: string;
  line: number;
  function: string;
  snippet: string;
  /** The lines around it, as they were stored when the run was recorded; `changed`: the file was edited while it ran. */
  source: {changed: true} | {changed: false; from: number; lines: string[]} | null;
}

export interface ForecastData {
  limit: string;
  bytes: number;
  seconds: number;
  seconds_range: [number, number];
  round: string; // "epoch 740", or empty
  words: string;
  unit_index: number | null;
}

export interface FindingData {
  kind: Kind;
  cause: string;
  title: string;
  unit: string;
  /** "every epoch", "each time line 5 runs" */
  each: string;
  /** "12 epochs", "40 times" */
  seen_over: string;
  rate: number;
  rate_range: [number, number];
  units_seen: number;
  total: number;
  blame: PlaceData | null;
  holder: string;
  chain: string[];
  evidence: string[];
  fix: string;
  threads: string[];
  forecast: ForecastData | null;
  sets_verdict: boolean;
  /** as in `processes`; null: the main one */
  process: number | null;
  /** alike ones that it speaks for */
  processes: number;
  /** "host", "shared", "gpu:0" */
  space: string;
  /** Live bytes by age, oldest first: of the blamed line, or of everything. */
  cohorts: {bytes: number[]; of: "line" | "all"} | null;
}

export type PartKind = "held" | "native" | "garbage" | "in use" | "free" | "pinned" | "stacks" | "files" | "shared" | "copied" | "gpu" | "outside" | "untouched" | "unexplained";

/** What memory grew by between like rounds, after warm-up: the bytes of the parts add up to it. A range holds 95 %. */
export interface GrowthData {
  tree: boolean;
  pid: number | null;
  process: string;
  main: boolean;
  space: string;
  level: number;
  growth: number;
  range: [number, number];
  rounds: number;
  unit: string;
  from: number;
  to: number;
  parts: PartData[];
}
export interface PartData {
  kind: PartKind;
  name: string;
  chain: string[];
  born: {file: string; line: number; function: string} | null;
  bytes: number;
  range: [number, number];
}

export interface SitesData {
  /** flags: 1 native, 2 the user's own, 4 has a name that tells something. text: source lines by frame. */
  frames: {file: Names; function: Names; line: Column; flags: Column; text: Record<string, string>};
  stacks: number[][];
  snapshots: {t: Column; kind: Names; index: Column; rss: Column; sum: Column; other: Column};
  bytes: Column[];
  blocks: number[];
  /** in the whole run, by stack; estimates as all samples are */
  allocated: number[];
  freed: number[];
  /** of `freed`, what lived 10 ms at most; null: not recorded */
  temporary: number[] | null;
  /** index into `threads`; -1: several; null: not recorded */
  thread: number[] | null;
  /** by stack: 95 % of b bytes lie within the root of b times this; 0: all its blocks were taken */
  doubt: number[];
}

export interface ProcessData {
  /** its row of the run file: pids come again */
  process: number | null;
  pid: number;
  parent: number;
  name: string;
  command: string;
  start: number;
  end: number | null;
  seen: "inside" | "outside" | "not";
  main: boolean;
  peak: number;
  t: Column;
  resident: Column;
  private: Column;
  /** what is alive in it, where it is not the main one */
  sites: SitesData | null;
  sizes: SizesData | null;
  /** what is told of it beside that, where it is not the main one and was looked into */
  story: {peak: number; accounts: AccountsData; marks: MarksData; periods: PeriodsData | null; probes: ProbeData[]; lines: LinesData | null} | null;
}

export interface ProgramData {
  name: string;
  calls: number;
  planned: number;
  lower_bound: number;
  plan_seconds: number;
  method: string;
  buffers: {name: Names; account: Names; layer: Names; offset: Column; size: Column; first: Column; last: Column};
  ops: {op: Names; layer: Names; workspace: Column};
  left_out: number;
}

export interface MeasuredData {
  samples: number;
  interval: number;
  dropped: number;
  /** Of the resident memory at a moment. What allocators and kernel name may be more than is resident: mapped and not touched, or counted twice. */
  explained: {t: number; resident: number; explained: number | null; in_use: number | null; with_line: number | null; with_line_error: number | null; free: number | null; files: number | null} | null;
  probe_seconds: number;
  agent_seconds: number;
  collector_seconds: number;
  probe_bytes: number;
  remarks: string;
}

export interface CompareData {
  sentence: string;
  before: CompareRun;
  after: CompareRun;
  places: {file: string; function: string; line_before: number | null; line_after: number | null; bytes_before: number; bytes_after: number}[];
}
export interface CompareRun {
  file: string;
  verdict: Kind;
  peak_rss: number;
  /** of all processes together; null: it was alone */
  tree_peak: number | null;
  end_rss: number;
  last_round_rss: number | null;
  seconds: number;
  bytes_per_unit: number | null;
  unit: string | null;
  /** of growth, in words */
  rate: string;
}
