/** Memory over time, ready to be drawn: bands that are stacked, the resident line, and what changed between two moments. */
import type {Account, Process, Run, Sites} from "./decode";
import {baseName} from "./format";
import type {AccountKind} from "./types";

export interface Band {
  name: string;
  kind: AccountKind;
  bytes: Float64Array;
}
/** Bands from the bottom up, at the moments t. */
export interface Stack {
  t: Float64Array;
  bands: Band[];
  /** mapped and not touched: not resident, so it is not in the stack */
  reserved: Float64Array | null;
  /** the line over the bands */
  line: {t: Float64Array; bytes: Float64Array; name: string};
}

const residentLine = (run: Run): Stack["line"] => ({
  t: run.resident.t, bytes: run.resident.rss,
  name: run.processes.length < 2 ? "resident memory" : run.of && !run.of.main ? `resident memory of ${processName(run.of)}` : "resident memory of the main process",
});

const most = (values: Float64Array) => values.reduce((a, b) => Math.max(a, b), 0);

/** At most `count` bands: groups of accounts; what is small goes together. */
export function accountStack(run: Run, count = 8): Stack {
  const n = run.accounts.t.length;
  const groups = new Map<string, Band>();
  let reserved: Float64Array | null = null;
  for (const account of run.accounts.list) {
    if (account.kind === "reserved") {
      reserved = account.bytes;
      continue;
    }
    let band = groups.get(account.group);
    if (!band) groups.set(account.group, (band = {name: account.group, kind: account.kind, bytes: new Float64Array(n)}));
    for (let i = 0; i < n; ++i) band.bytes[i] += account.bytes[i];
  }
  const bySize = [...groups.values()].filter(band => most(band.bytes) > 0).sort((a, b) => most(b.bytes) - most(a.bytes));
  const kept = bySize.length > count ? bySize.slice(0, count - 1) : bySize;
  if (kept.length < bySize.length) {
    const rest = new Float64Array(n);
    for (const band of bySize.slice(kept.length)) for (let i = 0; i < n; ++i) rest[i] += band.bytes[i];
    kept.push({name: `${bySize.length - count + 1} smaller accounts`, kind: "use", bytes: rest});
  }
  const rank: Record<AccountKind, number> = {rest: 0, use: 1, retained: 2, reserved: 3};
  kept.sort((a, b) => rank[a.kind] - rank[b.kind]);
  return {t: run.accounts.t, bands: kept, reserved, line: residentLine(run)};
}

/** How far a sum of sampled blocks may be off, at 95 %: that of small blocks, each of which was taken by chance; large ones are all taken, so it may be less. */
export function mostOff(sum: number, interval: number): number {
  return interval > 0 && sum > 0 ? Math.min(sum, 1.96 * Math.sqrt(sum * interval)) : 0;
}

/** Accounts of what was sampled, in a program whose allocators were not asked. */
export const isSampled = (band: string): boolean => /^(?!not ).*sampled blocks/.test(band);

export interface Place {
  key: string;
  /** the frame that stands for it */
  frame: number;
  label: string;
  user: boolean;
}

const places = new WeakMap<Sites, Map<number[], Place>>();

/** Where a stack belongs, found once. */
export function placeOf(sites: Sites, stack: number[]): Place {
  let known = places.get(sites);
  if (!known) places.set(sites, (known = new Map()));
  let place = known.get(stack);
  if (!place) known.set(stack, (place = findPlace(sites, stack)));
  return place;
}

/** Where a stack belongs: the innermost line of the user's own, otherwise the innermost function with a name. */
function findPlace(sites: Sites, stack: number[]): Place {
  const own = stack.find(id => sites.frames[id].user && !sites.frames[id].file.includes("__autograph_generated_file"));
  const id = own ?? stack.find(k => sites.frames[k].named) ?? stack[0];
  if (id === undefined) return {key: "?", frame: -1, label: "not known", user: false};
  const f = sites.frames[id];
  const user = own !== undefined;
  return user
    ? {key: `${f.file}:${f.line}`, frame: id, label: `${baseName(f.file)}:${f.line}${f.function === "<module>" ? "" : ` ${f.function}`}`, user}
    : {key: `${f.file}|${f.function}`, frame: id, label: `${f.function || "?"} (${baseName(f.file)})`, user};
}

/** Live bytes by line of code at the snapshots; sampled, so they do not add up to resident memory. */
export function lineStack(run: Run, count = 8): Stack | null {
  const sites = run.sites;
  if (!sites || sites.snapshots.length < 2) return null;
  const n = sites.snapshots.length;
  const places = new Map<string, Band>();
  sites.stacks.forEach((stack, s) => {
    const place = placeOf(sites, stack);
    let band = places.get(place.key);
    if (!band) places.set(place.key, (band = {name: place.label, kind: place.user ? "use" : "rest", bytes: new Float64Array(n)}));
    for (let i = 0; i < n; ++i) band.bytes[i] += sites.bytes[s][i];
  });
  const bySize = [...places.values()].sort((a, b) => most(b.bytes) - most(a.bytes));
  const kept = bySize.slice(0, count - 1);
  const rest = new Float64Array(n);
  for (const band of bySize.slice(kept.length)) for (let i = 0; i < n; ++i) rest[i] += band.bytes[i];
  sites.snapshots.forEach((s, i) => (rest[i] += s.other));
  if (most(rest) > 0) kept.push({name: "all other lines", kind: "rest", bytes: rest});
  kept.sort((a, b) => Number(a.kind === "use") - Number(b.kind === "use"));
  return {t: Float64Array.from(sites.snapshots, s => s.t), bands: kept, reserved: null, line: residentLine(run)};
}

export const processName = (p: Process): string => `${p.name || "process"} ${p.pid}${p.main ? " (main)" : ""}`;

/** Resident memory of every process, one upon the other: pages that several of them share count in each, as in the sum that the kernel gives. */
export function processStack(run: Run, count = 8): Stack | null {
  const seen = run.processes.filter(p => p.t.length > 0);
  if (seen.length < 2 || !run.tree) return null;
  const t = Float64Array.from(new Set(seen.flatMap(p => [...p.t]))).sort();
  const rows = seen.map(p => {
    const bytes = new Float64Array(t.length);
    let k = -1;
    t.forEach((at, i) => {
      while (k + 1 < p.t.length && p.t[k + 1] <= at) ++k;
      // All are looked at together: after the last look at it a process holds nothing, though it may wait as a zombie.
      bytes[i] = k >= 0 && at <= p.t[p.t.length - 1] && Number.isFinite(p.resident[k]) ? p.resident[k] : 0;
    });
    return {name: processName(p), kind: "use" as const, bytes};
  });
  const bySize = rows.sort((a, b) => most(b.bytes) - most(a.bytes));
  const kept = bySize.length > count ? bySize.slice(0, count - 1) : bySize;
  if (kept.length < bySize.length) {
    const rest = new Float64Array(t.length);
    for (const band of bySize.slice(kept.length)) band.bytes.forEach((v, i) => (rest[i] += v));
    kept.push({name: `${bySize.length - count + 1} smaller processes`, kind: "use", bytes: rest});
  }
  return {t, bands: kept, reserved: null, line: {t: run.tree.t, bytes: run.tree.rss, name: "all processes together"}};
}

/** The most that all processes held together, and when; null: it was alone. */
export function treePeak(run: Run): {t: number; rss: number; pss: number; processes: number} | null {
  const tree = run.tree;
  if (!tree || most(tree.processes) < 2) return null;
  const i = tree.rss.reduce((best, v, k) => (v > tree.rss[best] || Number.isNaN(tree.rss[best]) ? k : best), 0);
  return {t: tree.t[i], rss: tree.rss[i], pss: most(tree.pss.filter(Number.isFinite)), processes: tree.processes[i]};
}

/** Of the values at rising places t, the one nearest to `at`; -1 of none. */
export function nearest(t: ArrayLike<number>, at: number): number {
  if (t.length === 0) return -1;
  let low = 0;
  let high = t.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low > 0 && at - t[low - 1] <= t[low] - at ? low - 1 : low;
}

export interface ChartData {
  /** every moment at which anything is known */
  x: number[];
  /** sums from the top band down, then resident memory, then reserved where there is any; null: nothing known then */
  rows: (number | null)[][];
}

/** One row of places for all lines: what the chart library draws. */
export function chartData(stack: Stack): ChartData {
  const line = stack.line;
  const x = Float64Array.from(new Set([...line.t, ...stack.t])).sort();
  const at = new Map<number, number>();
  x.forEach((t, i) => at.set(t, i));
  const empty = () => new Array<number | null>(x.length).fill(null);
  const rows: (number | null)[][] = stack.bands.map(empty);
  const n = stack.bands.length;
  for (let i = 0; i < stack.t.length; ++i) {
    const place = at.get(stack.t[i])!;
    let sum = 0;
    for (let b = 0; b < n; ++b) {
      sum += stack.bands[b].bytes[i];
      rows[n - 1 - b][place] = sum;
    }
  }
  const rss = empty();
  line.t.forEach((t, i) => (rss[at.get(t)!] = Number.isFinite(line.bytes[i]) ? line.bytes[i] : null));
  rows.push(rss);
  if (stack.reserved) {
    const reserved = empty();
    stack.t.forEach((t, i) => {
      const sum = stack.bands.reduce((all, band) => all + band.bytes[i], 0);
      if (stack.reserved![i] > 0) reserved[at.get(t)!] = sum + stack.reserved![i];
    });
    rows.push(reserved);
  }
  return {x: Array.from(x), rows};
}

export interface Change {
  name: string;
  before: number;
  after: number;
}

/** What every band held at two moments, the largest change first. */
export function changes(stack: Stack, a: number, b: number): Change[] {
  const [i, k] = [nearest(stack.t, a), nearest(stack.t, b)];
  if (i < 0) return [];
  return stack.bands
    .map(band => ({name: band.name, before: band.bytes[i], after: band.bytes[k]}))
    .sort((x, y) => Math.abs(y.after - y.before) - Math.abs(x.after - x.before));
}

/** The line over the bands at a moment. */
export function lineAt(line: Stack["line"], t: number): number {
  const i = nearest(line.t, t);
  return i < 0 ? NaN : line.bytes[i];
}

/** "epoch 7": the last mark of the rhythm at or before a moment. */
export function momentName(run: Run, t: number): string {
  const unit = run.periods?.kind;
  let name = "";
  for (const mark of run.marks) {
    if (mark.t > t + 0.5) break;
    if (mark.period && (!unit || mark.kind === unit) && mark.kind !== "timer" && mark.kind !== "line") name = `${mark.kind} ${mark.index}`;
  }
  return name;
}

/** Rounds to draw as lines and to name: at round numbers of them (every 1, 2, 5, 10, ... of the program's own count), as many as there is room for. */
export function visibleMarks(run: Run, from: number, to: number, room: number): {t: number; label: string}[] {
  const kind = run.periods?.kind;
  if (!kind || kind === "timer") return [];
  const rows: {t: number; index: number}[][] = [[]];
  for (const m of run.marks) {
    if (!m.period || m.kind !== kind) continue;
    const last = rows[rows.length - 1];
    if (last.length && m.index <= last[last.length - 1].index) rows.push([m]); // another fit counts from the beginning again
    else last.push(m);
  }
  const within = (row: {t: number; index: number}[]) => {
    const low = row.findIndex(m => m.t >= from);
    const high = row.findLastIndex(m => m.t <= to);
    return low < 0 || high < low ? 0 : row[high].index - row[low].index + 1;
  };
  const rounds = rows.reduce((n, row) => n + within(row), 0);
  const rough = rounds / Math.max(1, room);
  const tens = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(rough, 1))));
  const step = [1, 2, 5, 10].map(k => k * tens).find(k => k >= rough) ?? 10 * tens;
  const list: {t: number; label: string}[] = [];
  for (const row of rows)
    for (let i = 0; i < row.length && list.length < 2000; ++i) {
      // Of long runs not every round was kept: where one lies between two that were is known well enough for a line.
      const [a, b] = [row[Math.max(0, i - 1)], row[i]];
      for (let n = i ? Math.floor(a.index / step) * step + step : Math.ceil(b.index / step) * step; n <= b.index && list.length < 2000; n += step) {
        const t = b.index === a.index ? b.t : a.t + ((b.t - a.t) * (n - a.index)) / (b.index - a.index);
        if (t >= from && t <= to) list.push({t, label: `${kind === "line" ? "" : `${kind} `}${n}`});
      }
    }
  return list;
}

/** Accounts by name, with what they hold at a moment: the table behind the chart. */
export function accountsAt(accounts: Account[], i: number): {name: string; kind: AccountKind; bytes: number}[] {
  return accounts.map(a => ({name: a.name, kind: a.kind, bytes: a.bytes[i]})).sort((a, b) => b.bytes - a.bytes);
}
