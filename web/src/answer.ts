/** The words at the top: what is code in a sentence, the fix as a change of code, and where others met the same. */
import type {FindingData, Kind} from "./types";

export interface Piece {
  text: string;
  code: boolean;
}

/** Backticks mark code. One that is not closed is a backtick. */
export function pieces(text: string): Piece[] {
  const parts = text.split("`");
  if (parts.length % 2 === 0) {
    const last = parts.pop()!;
    parts[parts.length - 1] += `\`${last}`;
  }
  return parts.map((part, i) => ({text: part, code: i % 2 === 1})).filter(piece => piece.text !== "");
}

export interface CodeChange {
  remove: string;
  add: string;
}

/** "Write `a` instead of `b`" and "Take out `b`" as lines with - and +; null where the fix is no such change. */
export function codeChange(fix: string): CodeChange | null {
  const written = fix.match(/`([^`]+)`[^`]*(?:`[^`]+`[^`]*)?instead of `([^`]+)`/);
  if (written) return {remove: written[2], add: written[1]};
  const taken = fix.match(/^Take out `([^`]+)`/);
  if (taken) return {remove: taken[1], add: ""};
  return null;
}

const kHomes: Record<string, string> = {
  tensorflow: "tensorflow/tensorflow", keras: "keras-team/keras", "tf-keras": "keras-team/tf-keras", pytorch: "pytorch/pytorch", jax: "jax-ml/jax",
  transformers: "huggingface/transformers", "vllm-omni": "vllm-project/vllm-omni", sglang: "sgl-project/sglang", numpy: "numpy/numpy", matplotlib: "matplotlib/matplotlib",
  cpython: "python/cpython", oneDNN: "uxlfoundation/oneDNN",
};

/** The address of a thread such as "tensorflow#24726" or "owner/name#12"; null where it is not one. */
export function threadLink(thread: string): string | null {
  const found = thread.match(/^([\w.-]+(?:\/[\w.-]+)?)#(\d+)$/);
  if (!found) return null;
  const home = found[1].includes("/") ? found[1] : kHomes[found[1]];
  return home ? `https://github.com/${home}/issues/${found[2]}` : null;
}

/** What a reader should know of each verdict, beside its colour. */
export const kVerdicts: Record<Kind, {name: string; sign: string; tone: "bad" | "warn" | "info" | "good"; means: string}> = {
  leak: {name: "Leak", sign: "▲", tone: "bad", means: "bytes still referenced, more every round, and nothing gives them back"},
  fragmentation: {name: "Fragmentation", sign: "▦", tone: "warn", means: "freed, but a few survivors pin whole pages"},
  retention: {name: "Retention", sign: "◧", tone: "warn", means: "freed by the program, kept by the allocator"},
  cache: {name: "Cache", sign: "◔", tone: "info", means: "fills, then stops by itself"},
  reserve: {name: "Reserve", sign: "▣", tone: "info", means: "taken once, and it stays"},
  flat: {name: "Flat", sign: "●", tone: "good", means: "memory does not grow"},
  unsure: {name: "Unsure", sign: "?", tone: "warn", means: "it may be a leak, and nothing proves it"},
};

/** The finding that the sentence at the top speaks of. */
export function leading(findings: FindingData[]): FindingData | null {
  return findings.find(f => f.sets_verdict) ?? null;
}
