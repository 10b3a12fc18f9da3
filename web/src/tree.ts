/** Who holds the memory: stacks and their bytes as a tree of calls, as rectangles, and as a table. */
import {hierarchy, partition} from "d3-hierarchy";
import type {Frame, Run, Sites} from "./decode";
import {nearest, placeOf} from "./series";

/** What is looked at: a snapshot, or the change from one to another. */
export type Look = {at: number} | {from: number; to: number};
export const isDifference = (look: Look): look is {from: number; to: number} => "from" in look;

/** Bytes by stack; for a change these may be below zero. */
export function weights(sites: Sites, look: Look): Float64Array {
  return Float64Array.from(sites.bytes, b => (isDifference(look) ? b[look.to] - b[look.from] : b[look.at]));
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
}

/**
 * Frames from the outermost in. Of a row of library frames only the first is kept, and the one that allocates: a stack of Keras has fifty.
 * The terminal's tree does the same.
 */
export function condensed(sites: Sites, stack: number[]): number[] {
  const named = stack.filter(id => sites.frames[id].named).reverse();
  const list = named.length ? named : stack.slice(0, 1);
  let library = false;
  return list.filter((id, i) => {
    const user = sites.frames[id].user;
    const keep = user || !library || i + 1 === list.length;
    library = !user;
    return keep;
  });
}

export function callTree(sites: Sites, weight: Float64Array, all: boolean): Call {
  let id = 0;
  const root: Call = {id: id++, frame: null, weight: 0, net: 0, children: [], own: 0};
  const below = new Map<Call, Map<number, Call>>();
  sites.stacks.forEach((stack, s) => {
    const bytes = weight[s];
    if (!bytes) return;
    let at = root;
    root.weight += Math.abs(bytes);
    root.net += bytes;
    for (const frame of all ? [...stack].reverse() : condensed(sites, stack)) {
      let next = below.get(at)?.get(frame);
      if (!next) {
        next = {id: id++, frame: sites.frames[frame], weight: 0, net: 0, children: [], own: 0};
        at.children.push(next);
        if (!below.has(at)) below.set(at, new Map());
        below.get(at)!.set(frame, next);
      }
      next.weight += Math.abs(bytes);
      next.net += bytes;
      at = next;
    }
    at.own += Math.abs(bytes);
  });
  return root;
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
  bytes: number;
  /** at the other end of a change */
  before: number;
  blocks: number;
  stacks: number;
}

export function table(sites: Sites, look: Look): Row[] {
  const rows = new Map<string, Row>();
  const to = isDifference(look) ? look.to : look.at;
  sites.stacks.forEach((stack, s) => {
    const place = placeOf(sites, stack);
    let row = rows.get(place.key);
    if (!row)
      rows.set(place.key, (row = {key: place.key, frame: sites.frames[place.frame] ?? null, label: place.label, user: place.user, bytes: 0, before: 0, blocks: 0, stacks: 0}));
    row.bytes += sites.bytes[s][to];
    if (isDifference(look)) row.before += sites.bytes[s][look.from];
    row.blocks += sites.blocks[s] ?? 0;
    row.stacks += 1;
  });
  const value = (r: Row) => (isDifference(look) ? Math.abs(r.bytes - r.before) : r.bytes);
  return [...rows.values()].filter(r => value(r) > 0).sort((a, b) => value(b) - value(a));
}

/** Every word of the query is somewhere in file, function or source of the place; letters of any case. */
export function matches(row: Row, query: string): boolean {
  const text = row.frame?.words ?? row.label.toLowerCase();
  return query.toLowerCase().split(/\s+/).filter(Boolean).every(word => text.includes(word));
}
