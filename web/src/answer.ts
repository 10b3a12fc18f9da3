/** The words at the top: what is code in a sentence, the fix as a change of code, and where others met the same. */
import type {FindingData, Kind} from "./types";

export interface Piece {
  text: string;
  code: boolean;
}

/** Backticks mark code; code that has some itself stands in longer runs of them, as in Markdown. A run that is not closed is text. */
export function pieces(text: string): Piece[] {
  const runs = [...text.matchAll(/`+/g)];
  const found: Piece[] = [];
  let at = 0;
  for (let i = 0; i < runs.length; ++i) {
    const fence = runs[i][0].length;
    const close = runs.findIndex((run, k) => k > i && run[0].length === fence);
    if (close < 0) continue;
    const begin = runs[i].index!;
    const inner = text.slice(begin + fence, runs[close].index);
    const padded = fence > 1 && inner.startsWith(" ") && inner.endsWith(" ");
    found.push({text: text.slice(at, begin), code: false}, {text: padded ? inner.slice(1, -1) : inner, code: true});
    at = runs[close].index! + fence;
    i = close;
  }
  found.push({text: text.slice(at), code: false});
  return found.filter(piece => piece.text !== "");
}

export interface CodeChange {
  remove: string;
  add: string;
}

/** "Write `a` instead of `b`", "Take out `b`" and "Add `a` after …" as lines with - and +; null where the fix is no such change. */
export function codeChange(fix: string): CodeChange | null {
  const parts = pieces(fix);
  const at = parts.findIndex((part, i) => !part.code && part.text.endsWith("instead of ") && i > 0 && parts[i + 1]?.code);
  if (at > 0) return {remove: parts[at + 1].text, add: parts.find(part => part.code)!.text};
  if (parts[0]?.text === "Take out " && parts[1]?.code) return {remove: parts[1].text, add: ""};
  if (parts[0]?.text === "Add " && parts[1]?.code && parts[2]?.text.startsWith(" after ")) return {remove: "", add: parts[1].text};
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
