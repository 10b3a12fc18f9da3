/** Who holds the memory: stacks and their bytes as a tree of calls, as rectangles, and as a table. */
import {hierarchy, partition} from "d3-hierarchy";
import type {Frame, Run, Sites} from "./decode";
import {baseName} from "./format";
import {nearest, placeOf} from "./series";

/** What is looked at: what is alive at a snapshot, the change from one to another, or what was ever allocated, or only for a moment. */
export type Look = {at: number} | {from: number; to: number} | {ever: "allocated" | "temporary"};
export const isDifference = (look: Look): look is {from: number; to: number} => "from" in look;
export const isTotal = (look: Look): look is {ever: "allocated" | "temporary"} => "ever" in look;

/** Bytes by stack; for a change these may be below zero. `thread`: only of that one; -1: of stacks that several threads share. */
export function weights(sites: Sites, look: Look, thread: number | null = null): Float64Array {
  const of = (s: number) => {
    if (isTotal(look)) return (look.ever === "temporary" ? sites.temporary?.[s] : sites.allocated[s]) ?? 0;
    return isDifference(look) ? sites.bytes[s][look.to] - sites.bytes[s][look.from] : sites.bytes[s][look.at];
  };
  return Float64Array.from(sites.bytes, (_, s) => (thread !== null && sites.thread?.[s] !== thread ? 0 : of(s)));
}

export function snapshotAt(run: Run, t: number): number {
  return run.sites ? nearest(run.sites.snapshots.map(s => s.t), t) : -1;
}

export interface Call {
  id: number;
  frame: Frame | null;
  /** width: the sum of what its stacks weigh, without signs */
  weight: number;
  /** the same with signs */
  net: number;
  children: Call[];
  own: number;
  /** frames of libraries below it that are not shown: the most of any of its stacks */
  folded: number;
}

/** "keras" of ".../site-packages/keras/src/models/functional.py"; "" of what is not in a package. */
export function packageOf(file: string): string {
  const found = /\/(?:site|dist)-packages\/([^/]+)/.exec(file);
  if (found) return found[1].replace(/\.(?:py|so).*$/, "");
  return /\/lib\/python3[^/]*\//.test(file) ? "python" : "";
}

export interface Step {
  id: number;
  folded: number;
}

/**
 * Frames from the outermost in. Of a row of library frames only the first is kept, and the one that allocates: a stack of Keras has fifty.
 * The terminal's tree does the same.
 */
export function condensed(sites: Sites, stack: number[]): Step[] {
  const named = stack.filter(id => sites.frames[id].named).reverse();
  const list = named.length ? named : stack.slice(0, 1);
  const out: Step[] = [];
  let library = false;
  list.forEach((id, i) => {
    const user = sites.frames[id].user;
    if (user || !library || i + 1 === list.length) out.push({id, folded: 0});
    else ++out[out.length - 1].folded;
    library = !user;
  });
  return out;
}

export function callTree(sites: Sites, weight: Float64Array, all: boolean): Call {
  let id = 0;
  const root: Call = {id: id++, frame: null, weight: 0, net: 0, children: [], own: 0, folded: 0};
  const below = new Map<Call, Map<string | number, Call>>();
  sites.stacks.forEach((stack, s) => {
    const bytes = weight[s];
    if (!bytes) return;
    let at = root;
    root.weight += Math.abs(bytes);
    root.net += bytes;
    for (const step of all ? [...stack].reverse().map(k => ({id: k, folded: 0})) : condensed(sites, stack)) {
      const frame = sites.frames[step.id];
      // In a library the function tells enough; which of its lines called on tells nothing to a reader.
      const key = all || frame.user ? step.id : `${frame.file}|${frame.function}`;
      let next = below.get(at)?.get(key);
      if (!next) {
        next = {id: id++, frame, weight: 0, net: 0, children: [], own: 0, folded: 0};
        at.children.push(next);
        if (!below.has(at)) below.set(at, new Map());
        below.get(at)!.set(key, next);
      }
      next.weight += Math.abs(bytes);
      next.net += bytes;
      next.folded = Math.max(next.folded, step.folded);
      at = next;
    }
    at.own += Math.abs(bytes);
  });
  return root;
}

/** As a person knows it: "fit" of the user's own, "keras · fit" of a library, the file where there is no function. */
export function callName(frame: Frame): string {
  const file = baseName(frame.file);
  if (frame.user || frame.native) return frame.function === "<module>" ? `<module> ${file}` : frame.function || "?";
  const home = packageOf(frame.file);
  const name = frame.function === "<module>" ? `<module> ${file}` : frame.function || "?";
  return home ? `${home} · ${name}` : name;
}

export interface Rect {
  call: Call;
  x: number;
  width: number;
  depth: number;
  parent: number;
}

/** Rectangles of the calls below `focus` (itself included), widths as shares of 1; what is narrower than `least` is left out, and of more than `most` the narrowest. */
export function rectangles(focus: Call, least = 0.0015, most = 300): Rect[] {
  const root = hierarchy(focus, c => c.children.filter(k => k.weight >= least * focus.weight)).sum(c => c.own);
  // What was left out still takes its room.
  root.eachAfter(node => ((node as {value?: number}).value = node.data.weight));
  root.sort((a, b) => b.data.weight - a.data.weight);
  partition<Call>().size([1, root.height + 1])(root);
  const all = root.descendants().map(node => {
    const n = node as typeof node & {x0: number; x1: number};
    return {call: n.data, x: n.x0, width: n.x1 - n.x0, depth: n.depth, parent: n.parent ? n.parent.data.id : -1};
  });
  if (all.length <= most) return all;
  // A call is never wider than its caller, so the widest of all still hang together.
  return all.sort((a, b) => b.width - a.width || a.depth - b.depth).slice(0, most);
}

export interface Row {
  key: string;
  frame: Frame | null;
  label: string;
  user: boolean;
  /** alive at the moment that is looked at, at the end of a change, or in all */
  bytes: number;
  /** at the other end of a change */
  before: number;
  allocated: number;
  temporary: number;
  /** 95 %, of the bytes that are shown (of a change: of the change), of all that was allocated and of what lived for a moment */
  error: number;
  allocatedError: number;
  temporaryError: number;
  stacks: number;
  /** whose: -1: several; -2: not recorded */
  thread: number;
}

export function table(sites: Sites, look: Look, thread: number | null = null): Row[] {
  const rows = new Map<string, Row>();
  const now = weights(sites, isDifference(look) ? {at: look.to} : look, thread);
  const then = isDifference(look) ? weights(sites, {at: look.from}, thread) : null;
  sites.stacks.forEach((stack, s) => {
    if (thread !== null && sites.thread?.[s] !== thread) return;
    const place = placeOf(sites, stack);
    const of = sites.thread?.[s] ?? -2;
    let row = rows.get(place.key);
    if (!row)
      rows.set(place.key, (row = {key: place.key, frame: sites.frames[place.frame] ?? null, label: place.label, user: place.user, bytes: 0, before: 0, allocated: 0, temporary: 0, error: 0, allocatedError: 0, temporaryError: 0, stacks: 0, thread: of}));
    row.bytes += now[s];
    row.before += then?.[s] ?? 0;
    row.allocated += sites.allocated[s] ?? 0;
    row.temporary += sites.temporary?.[s] ?? 0;
    // Variances add up; roots are taken below.
    const doubt = sites.doubt[s] ?? 0;
    row.error += doubt * (now[s] + (then?.[s] ?? 0));
    row.allocatedError += doubt * (sites.allocated[s] ?? 0);
    row.temporaryError += doubt * (sites.temporary?.[s] ?? 0);
    row.stacks += 1;
    if (row.thread !== of) row.thread = -1;
  });
  for (const row of rows.values()) for (const key of ["error", "allocatedError", "temporaryError"] as const) row[key] = Math.sqrt(row[key]);
  const value = (r: Row) => (isDifference(look) ? Math.abs(r.bytes - r.before) : r.bytes);
  return [...rows.values()].filter(r => value(r) > 0).sort((a, b) => value(b) - value(a));
}

/** Every word of the query is somewhere in file, function or source of the place; letters of any case. */
export function matches(row: Row, query: string): boolean {
  const text = row.frame?.words ?? row.label.toLowerCase();
  return query.toLowerCase().split(/\s+/).filter(Boolean).every(word => text.includes(word));
}
