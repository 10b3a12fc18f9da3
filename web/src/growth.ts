/** The account of growth, ready to be drawn: what each part adds, one upon the other. */
import {baseName, signedBytes} from "./format";
import type {GrowthData, PartData, PartKind} from "./types";

/** What a part is, in words, and its colour: what stays, what comes back, what lies outside, and what is not known. */
export const kParts: Record<PartKind, {word: string; colour: string}> = {
  held: {word: "referenced", colour: "var(--band-4)"},
  native: {word: "native code", colour: "var(--band-5)"},
  garbage: {word: "garbage", colour: "var(--band-3)"},
  "in use": {word: "in use", colour: "var(--band-0)"},
  free: {word: "free", colour: "var(--band-2)"},
  pinned: {word: "pinned", colour: "var(--retained)"},
  stacks: {word: "stacks", colour: "var(--band-7)"},
  files: {word: "files", colour: "var(--band-1)"},
  shared: {word: "shared", colour: "var(--band-6)"},
  copied: {word: "copied pages", colour: "var(--band-6)"},
  gpu: {word: "GPU", colour: "var(--band-0)"},
  outside: {word: "seen from outside", colour: "var(--band-7)"},
  untouched: {word: "not written", colour: "var(--rest)"},
  unexplained: {word: "not explained", colour: "var(--rest)"},
};

export interface Fall {
  part: PartData;
  /** where its bar begins and ends: the sum before it, and with it */
  from: number;
  to: number;
  /** where its end may lie */
  low: number;
  high: number;
}

/** Each part begins where the one before it ended; the last one ends at the growth. */
export function waterfall(growth: GrowthData): {bars: Fall[]; low: number; high: number} {
  let sum = 0;
  const bars = growth.parts.map(part => {
    const from = sum;
    sum += part.bytes;
    return {part, from, to: sum, low: from + part.range[0], high: from + part.range[1]};
  });
  const edges = [0, growth.growth, growth.range[0], growth.range[1], ...bars.flatMap(b => [b.from, b.to, b.low, b.high])];
  const [low, high] = [Math.min(...edges), Math.max(...edges)];
  return {bars, low, high: high > low ? high : low + 1};
}

const kSpaces: Record<string, string> = {all: "all its memory", host: "its own memory and files", shared: "shared memory"};

/** "python3 4711: shared memory". */
export function growthName(g: GrowthData): string {
  if (g.tree) return "All processes together";
  const space = kSpaces[g.space] ?? g.space.replace(/^gpu:/, "GPU ");
  return g.pid === null ? space : `${g.process || "process"} ${g.pid}${g.main ? " (main)" : ""}: ${space}`;
}

/** "train.py:31", or the function where there is no line; empty: not known. */
export function bornAt(part: PartData): string {
  if (!part.born) return "";
  return part.born.line > 0 ? `${baseName(part.born.file)}:${part.born.line}` : part.born.function;
}

/** The account as a sentence, for those who do not see the drawing. */
export function spoken(g: GrowthData): string {
  return `${growthName(g)} grew by ${signedBytes(g.growth)}: ${g.parts.map(p => `${p.name}${bornAt(p) ? `, ${bornAt(p)}` : ""} ${signedBytes(p.bytes)}`).join("; ")}`;
}
