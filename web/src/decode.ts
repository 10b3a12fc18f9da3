/** From the bytes in the page to a run as the other modules know it: typed arrays, names in place of numbers. */
import type {AccountKind, AccountsData, Column, LinesData, MarksData, PageData, PeriodsData, PoolData, ProbeData, RunData, SizesData} from "./types";

/** Sums the differences up; what was not measured is NaN. */
export function column(differences: Column): Float64Array {
  const out = new Float64Array(differences.length);
  let last = 0;
  for (let i = 0; i < differences.length; ++i) {
    const d = differences[i];
    out[i] = d === null ? NaN : (last += d);
  }
  return out;
}

export interface Account {
  name: string;
  group: string;
  kind: AccountKind;
  bytes: Float64Array;
}
export interface Mark {
  t: number;
  kind: string;
  name: string;
  index: number;
  period: boolean;
  rss: number;
}
export interface Phase {
  kind: string;
  name: string;
  index: number;
  start: number;
  end: number;
}
export interface Frame {
  id: number;
  file: string;
  function: string;
  line: number;
  native: boolean;
  user: boolean;
  named: boolean;
  text: string;
  /** file, function and source in small letters, to search in */
  words: string;
}
export interface Snapshot {
  t: number;
  kind: string;
  index: number;
  rss: number;
  sum: number;
  other: number;
}
export interface Sites {
  frames: Frame[];
  stacks: number[][];
  snapshots: Snapshot[];
  /** by stack, then by snapshot */
  bytes: Float64Array[];
  blocks: number[];
  allocated: number[];
  freed: number[];
  temporary: number[] | null;
  thread: number[] | null;
  doubt: number[];
  peak: number;
}
export interface Accounts {
  t: Float64Array;
  resident: Float64Array;
  list: Account[];
}
/** Rounds of a loop that were compared. */
export interface Periods {
  unit: string;
  kind: string;
  warm: number;
  t: Float64Array;
  x: number[];
  index: Float64Array;
  rss: Float64Array;
  live: Float64Array;
}
export interface Pool extends Omit<PoolData, "t" | "in_use" | "reserved" | "in_use_peak" | "periods"> {
  t: Float64Array;
  inUse: Float64Array;
  reserved: Float64Array;
  periods: Periods | null;
}
/** What is told of one process, the main one or another. */
export interface Story {
  peak: number;
  accounts: Accounts;
  marks: Mark[];
  periods: Periods | null;
  probes: ProbeData[];
  sites: Sites | null;
  lines: CodeLine[];
  /** when of these lines is told what they kept */
  linesAt: number;
}
export interface Process {
  process: number | null;
  pid: number;
  parent: number;
  name: string;
  command: string;
  start: number;
  end: number;
  seen: string;
  main: boolean;
  peak: number;
  t: Float64Array;
  resident: Float64Array;
  private: Float64Array;
  sites: Sites | null;
  sizes: SizeClass[];
  /** of the main one it is the run's own */
  story: Story | null;
}
export interface CodeLine {
  file: string;
  line: number;
  allocated: number;
  freed: number;
  kept: number;
  temporary: number;
  keptError: number;
  allocatedError: number;
}
export interface Source {
  file: string;
  function: string;
  first: number;
  lines: string[];
}
export interface SizeClass {
  from: number;
  to: number;
  blocks: number;
  bytes: number;
  freed: number;
  temporary: number;
  error: number;
}
export interface Buffer {
  name: string;
  account: string;
  layer: string;
  offset: number;
  size: number;
  first: number;
  last: number;
}
export interface Program {
  name: string;
  calls: number;
  planned: number;
  lowerBound: number;
  planSeconds: number;
  method: string;
  buffers: Buffer[];
  ops: {op: string; layer: string; workspace: number}[];
  leftOut: number;
}
export interface Run extends Story {
  data: RunData;
  /** whose story it is; null: there is one process, or none is named */
  of: Process | null;
  resident: {t: Float64Array; rss: Float64Array};
  tree: {t: Float64Array; processes: Float64Array; rss: Float64Array; pss: Float64Array} | null;
  phases: Phase[];
  pools: Pool[];
  /** the main one first; without those that only started it (a shell, the shim that chooses a Python) and were gone before it began */
  processes: Process[];
  launchers: number;
  sources: Source[];
  /** of all processes together */
  sizes: SizeClass[];
  programs: Program[];
  /** end of all that was seen, in milliseconds */
  end: number;
}

export function decodeRun(data: RunData): Run {
  const name = (id: number) => data.strings[id] ?? "";
  const names = (c: Column) => Array.from(column(c), name);
  const resident = {t: column(data.resident.t), rss: column(data.resident.rss)};
  const marks = decodeMarks(data.marks, name);
  const p = data.phases;
  const [pk, pn, pi, ps, pe] = [names(p.kind), names(p.name), column(p.index), column(p.start), column(p.end)];
  const [processes, launchers] = company(data.processes);
  const began = processes[0]?.start ?? 0;
  const end = Math.max(data.facts.seconds * 1000, resident.t[resident.t.length - 1] ?? 0, marks[marks.length - 1]?.t ?? 0, 1);
  const seen = processes.map((q): Process => {
    const sites = q.sites && decodeSites(q.sites, name);
    const s = q.story;
    return {
      ...q, end: q.end ?? end, t: column(q.t), resident: column(q.resident), private: column(q.private), sites, sizes: decodeSizes(q.sizes),
      story: s && {peak: s.peak, accounts: decodeAccounts(s.accounts), marks: decodeMarks(s.marks, name), periods: decodePeriods(s.periods), probes: s.probes, sites, lines: decodeLines(s.lines, name), linesAt: s.lines?.t ?? 0},
    };
  });
  return {
    data,
    of: seen.find(q => q.main) ?? null,
    peak: data.facts.peak,
    resident,
    tree: processes.length > 1 ? decodeTree(data.tree, began) : null,
    accounts: decodeAccounts(data.accounts),
    marks,
    phases: pk.map((kind, i) => ({kind, name: pn[i], index: pi[i], start: ps[i], end: Number.isNaN(pe[i]) ? end : pe[i]})),
    periods: decodePeriods(data.periods),
    probes: data.probes,
    pools: data.pools.map(q => ({...q, t: column(q.t), inUse: column(q.in_use), reserved: column(q.reserved), periods: decodePeriods(q.periods)})),
    sites: data.sites && decodeSites(data.sites, name),
    launchers,
    processes: seen,
    sources: data.sources.map(q => ({...q, file: name(q.file), function: name(q.function)})),
    lines: decodeLines(data.lines, name),
    linesAt: data.lines?.t ?? 0,
    sizes: decodeSizes(data.sizes),
    programs: data.programs.map(q => {
      const b = q.buffers;
      const [bn, ba, bl, bo, bs, bf, be] = [names(b.name), names(b.account), names(b.layer), column(b.offset), column(b.size), column(b.first), column(b.last)];
      const [op, of, ws] = [names(q.ops.op), names(q.ops.layer), column(q.ops.workspace)];
      return {
        name: q.name, calls: q.calls, planned: q.planned, lowerBound: q.lower_bound, planSeconds: q.plan_seconds, method: q.method, leftOut: q.left_out,
        buffers: bn.map((text, i) => ({name: text, account: ba[i], layer: bl[i], offset: bo[i], size: bs[i], first: bf[i], last: be[i]})),
        ops: op.map((text, i) => ({op: text, layer: of[i], workspace: ws[i]})),
      };
    }),
    end,
  };
}

/** The run as it was seen from another of its processes: the story is that one's, all else stays. Null: it was not looked into. */
export function seenFrom(run: Run, process: Process | null): Run | null {
  if (!process || process === run.of) return run;
  return process.story && {...run, ...process.story, of: process, resident: {t: process.t, rss: process.resident}};
}

/** Whose story a finding is; null: of one that is not shown. */
export function processOf(run: Run, of: {process: number | null}): Process | null {
  return of.process === null ? (run.processes.find(p => p.main) ?? null) : (run.processes.find(p => p.process === of.process) ?? null);
}

/** Of the main process, and of what it has on the host: what most runs are about. */
export const isMain = (run: Run, of: {process: number | null}): boolean => of.process === null || (processOf(run, of)?.main ?? false);

function decodeAccounts(a: AccountsData): Accounts {
  return {t: column(a.t), resident: column(a.resident), list: a.list.map(k => ({...k, bytes: column(k.bytes)}))};
}

function decodeMarks(m: MarksData, name: (id: number) => string): Mark[] {
  const [t, kind, names, index, period, rss] = [m.t, m.kind, m.name, m.index, m.period, m.rss].map(column);
  return Array.from(t, (at, i) => ({t: at, kind: name(kind[i]), name: name(names[i]), index: index[i], period: period[i] === 1, rss: rss[i]}));
}

function decodePeriods(p: PeriodsData | null): Periods | null {
  return p && {unit: p.unit, kind: p.kind, warm: p.warm, t: column(p.t), x: p.x, index: column(p.index), rss: column(p.rss), live: column(p.live)};
}

function company(all: RunData["processes"]): [RunData["processes"], number] {
  const main = all.find(p => p.main);
  const last = (t: Column) => t.reduce<number>((sum, d) => sum + (d ?? 0), 0);
  const kept = main ? all.filter(p => p.main || (p.t.length ? last(p.t) >= main.start : p.start >= main.start)) : all;
  return [kept, all.length - kept.length];
}

function decodeTree(tree: RunData["tree"], began: number): Run["tree"] {
  if (!tree) return null;
  const t = column(tree.t);
  const keep = (c: Column) => column(c).filter((_, i) => t[i] >= began);
  return {t: t.filter(at => at >= began), processes: keep(tree.processes), rss: keep(tree.rss), pss: keep(tree.pss)};
}

function decodeLines(l: LinesData | null, name: (id: number) => string): CodeLine[] {
  if (!l) return [];
  const [file, line, allocated, freed, kept, temporary, keptError, allocatedError] = [l.file, l.line, l.allocated, l.freed, l.kept, l.temporary, l.kept_error, l.allocated_error].map(column);
  return Array.from(file, (f, i) => ({file: name(f), line: line[i], allocated: allocated[i], freed: freed[i], kept: kept[i], temporary: temporary[i], keptError: keptError[i], allocatedError: allocatedError[i]}));
}

/** From the first size that was met to the last. */
function decodeSizes(s: SizesData | null): SizeClass[] {
  if (!s) return [];
  const all = s.from.map((from, i) => ({from, to: s.from[i + 1] ?? Infinity, blocks: s.blocks[i], bytes: s.bytes[i], freed: s.freed[i], temporary: s.temporary[i], error: s.error[i]}));
  const used = all.map(k => k.bytes > 0);
  return used.includes(true) ? all.slice(used.indexOf(true), used.lastIndexOf(true) + 1) : [];
}

function decodeSites(s: NonNullable<RunData["sites"]>, name: (id: number) => string): Sites {
  const [file, fn, line, flags] = [column(s.frames.file), column(s.frames.function), column(s.frames.line), column(s.frames.flags)];
  const frames = Array.from(file, (f, i) => ({
    words: `${name(f)} ${name(fn[i])} ${s.frames.text[i] ?? ""}`.slice(0, 2000).toLowerCase(),
    id: i, file: name(f), function: name(fn[i]), line: line[i], native: (flags[i] & 1) > 0, user: (flags[i] & 2) > 0, named: (flags[i] & 4) > 0,
    text: s.frames.text[i] ?? "",
  }));
  const n = s.snapshots;
  const [t, kind, index, rss, sum, other] = [column(n.t), column(n.kind), column(n.index), column(n.rss), column(n.sum), column(n.other)];
  const snapshots = Array.from(t, (at, i) => ({t: at, kind: name(kind[i]), index: index[i], rss: rss[i], sum: sum[i], other: other[i]}));
  let peak = 0;
  snapshots.forEach((x, i) => {
    if (x.rss > snapshots[peak].rss) peak = i;
  });
  return {frames, stacks: s.stacks.map(stack => stack.filter(id => frames[id])), snapshots, bytes: s.bytes.map(column), blocks: s.blocks, allocated: s.allocated, freed: s.freed, temporary: s.temporary, thread: s.thread, doubt: s.doubt, peak};
}

export async function inflate(compressed: Uint8Array<ArrayBuffer>): Promise<string> {
  return new Response(new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const raw = atob(text.trim());
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) out[i] = raw.charCodeAt(i);
  return out;
}

export function parseDocument(text: string): PageData {
  const data = JSON.parse(text) as PageData;
  if (data.format !== 2) throw new Error(`this page reads documents of format 2, not ${String(data.format)}`);
  return data;
}
