/** Memory over time, ready to be drawn: bands that are stacked, the resident line, and what changed between two moments. */
import type {Account, Run, Sites} from "./decode";
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
}

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
  return {t: run.accounts.t, bands: kept, reserved};
}

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
    ? {key: `${f.file}:${f.line}`, frame: id, label: `${baseName(f.file)}:${f.line} ${f.function}`, user}
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
  return {t: Float64Array.from(sites.snapshots, s => s.t), bands: kept, reserved: null};
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
export function chartData(run: Run, stack: Stack): ChartData {
  const x = Float64Array.from(new Set([...run.resident.t, ...stack.t])).sort();
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
  run.resident.t.forEach((t, i) => (rss[at.get(t)!] = run.resident.rss[i]));
  rows.push(rss);
  if (stack.reserved) {
    const reserved = empty();
    stack.t.forEach((t, i) => {
      const sum = stack.bands.reduce((all, band) => all + band.bytes[i], 0);
      if (stack.reserved![i] > 0) reserved[at.get(t)!] = sum;
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

export function residentAt(run: Run, t: number): number {
  const i = nearest(run.resident.t, t);
  return i < 0 ? NaN : run.resident.rss[i];
}

/** "epoch 7": the last mark of the rhythm at or before a moment. */
export function momentName(run: Run, t: number): string {
  const unit = run.data.periods?.kind;
  let name = "";
  for (const mark of run.marks) {
    if (mark.t > t + 0.5) break;
    if (mark.period && (!unit || mark.kind === unit) && mark.kind !== "timer" && mark.kind !== "line") name = `${mark.kind} ${mark.index}`;
  }
  return name;
}

/** Epochs, fits, ... to draw as lines: of too many, every second, fourth, ... one. */
export function visibleMarks(run: Run, from: number, to: number, room: number): {t: number; label: string}[] {
  const kind = run.data.periods?.kind;
  const all = run.marks.filter(m => m.period && m.kind === kind && m.t >= from && m.t <= to && m.kind !== "timer");
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(all.length / Math.max(1, room))));
  return all.filter((_, i) => i % step === 0).map(m => ({t: m.t, label: `${m.kind === "line" ? "" : `${m.kind} `}${m.index}`}));
}

/** Accounts by name, with what they hold at a moment: the table behind the chart. */
export function accountsAt(accounts: Account[], i: number): {name: string; kind: AccountKind; bytes: number}[] {
  return accounts.map(a => ({name: a.name, kind: a.kind, bytes: a.bytes[i]})).sort((a, b) => b.bytes - a.bytes);
}
