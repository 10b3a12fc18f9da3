/** The plan of an engine's run: which buffers are alive at a call, where the peak is, and what each layer takes. */
import type {Buffer, Program, Run} from "./decode";

/** Bytes alive at every call. */
export function liveBytes(program: Program): Float64Array {
  const change = new Float64Array(program.calls + 1);
  for (const b of program.buffers) {
    change[Math.min(b.first, program.calls)] += b.size;
    if (b.last + 1 <= program.calls) change[b.last + 1] -= b.size;
  }
  const live = new Float64Array(program.calls);
  let sum = 0;
  for (let i = 0; i < program.calls; ++i) live[i] = sum += change[i];
  return live;
}

export function peakCall(program: Program): number {
  const live = liveBytes(program);
  return live.reduce((best, bytes, i) => (bytes > live[best] ? i : best), 0);
}

export function aliveAt(program: Program, call: number): Buffer[] {
  return program.buffers.filter(b => b.first <= call && call <= b.last).sort((a, b) => b.size - a.size);
}

/** "activations" of "activations/conv2d". */
export function groupOf(account: string): string {
  const slash = account.indexOf("/");
  return slash < 0 ? account : account.slice(0, slash);
}

/** "conv2d" of "activations/conv2d"; slots have the optimizer between. */
export function layerOf(account: string): string {
  const parts = account.split("/");
  return (parts[0] === "slots" ? parts[2] : parts[1]) ?? "";
}

export interface LayerRow {
  layer: string;
  weights: number;
  slots: number;
  activations: number;
  gradients: number;
  workspace: number;
  /** of the arena at the moment of the peak */
  atPeak: number;
}

/** What each layer takes: weights and slots for as long as the model lives, the others within a step. In the order of the calls. */
export function layers(run: Run, program: Program): LayerRow[] {
  const rows = new Map<string, LayerRow>();
  const row = (layer: string) => {
    let found = rows.get(layer);
    if (!found) rows.set(layer, (found = {layer, weights: 0, slots: 0, activations: 0, gradients: 0, workspace: 0, atPeak: 0}));
    return found;
  };
  for (const op of program.ops) if (op.layer) row(op.layer);
  for (const account of run.accounts.list) {
    const group = groupOf(account.name);
    const layer = layerOf(account.name);
    const bytes = account.bytes[account.bytes.length - 1] ?? 0;
    if (!layer || (group !== "weights" && group !== "slots")) continue;
    row(layer)[group] += bytes;
  }
  const peak = peakCall(program);
  for (const b of program.buffers) {
    if (!b.layer) continue;
    const group = groupOf(b.account);
    const r = row(b.layer);
    if (group === "activations" || group === "gradients" || group === "workspace") r[group] += b.size;
    if (b.first <= peak && peak <= b.last) r.atPeak += b.size;
  }
  return [...rows.values()].filter(r => r.weights + r.slots + r.activations + r.gradients + r.workspace + r.atPeak > 0);
}

/** The buffer under a point of the map: the smallest that covers it. */
export function bufferAt(program: Program, call: number, address: number): Buffer | null {
  let best: Buffer | null = null;
  for (const b of program.buffers)
    if (b.first <= call && call <= b.last && b.offset <= address && address < b.offset + b.size && (!best || b.size < best.size)) best = b;
  return best;
}
