import {describe, expect, it} from "vitest";
import {codeChange, pieces, threadLink} from "../src/answer";
import {column, decodeRun, fromBase64, inflate, parseDocument, seenFrom} from "../src/decode";
import {forecastAt, forecastBand} from "../src/forecast";
import {aliveAt, bufferAt, layerOf, layers, liveBytes, peakCall} from "../src/plan";
import {accountStack, changes, chartData, isSampled, lineStack, momentName, mostOff, lineAt, nearest, processStack, treePeak, visibleMarks} from "../src/series";
import {callName, callTree, condensed, matches, rectangles, table, weights} from "../src/tree";
import {filesOf, listing} from "../src/Code";
import {csvCell, csvText} from "../src/export";
import {bornAt, growthName, spoken, waterfall} from "../src/growth";
import {named} from "../src/Measured";
import {className} from "../src/Sizes";
import {probesOf, roundsOf, sparkRange} from "../src/SmallCharts";
import {estimated, limitName, withError} from "../src/format";
import {usualProcess} from "../src/ProcessChoice";
import type {ProcessData} from "../src/types";
import {parseSort, sorted} from "../src/Table";
import {parseRange, parseView, printRange, printView} from "../src/view";
import {page, run} from "./made_up";

describe("the document", () => {
  it("is read back from what the program wrote", async () => {
    const text = JSON.stringify(page(run()));
    const packed = await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("deflate"))).arrayBuffer();
    const inPage = btoa(String.fromCharCode(...new Uint8Array(packed)));
    expect(parseDocument(await inflate(fromBase64(inPage)))).toEqual(page(run()));
  });
  it("of another format is refused", () => expect(() => parseDocument('{"format": 1}')).toThrow("format 2"));
  it("has columns of differences, and what was not measured is no number", () => {
    expect([...column([5, 1, null, -2])]).toEqual([5, 6, NaN, 4]);
    expect(column([]).length).toBe(0);
  });
  it("becomes names and numbers", () => {
    const r = decodeRun(run());
    expect(r.marks[2]).toEqual({t: 3000, kind: "epoch", name: "fit", index: 3, period: true, rss: 400});
    expect(r.phases[0]).toMatchObject({kind: "fit", start: 500, end: 4000});
    expect(r.sites!.frames[0]).toMatchObject({file: "train.py", function: "keep", line: 12, user: true, native: false, named: true});
    expect(r.sites!.frames[3]).toMatchObject({file: "/usr/lib/x.so", native: true, user: false});
    expect(r.sites!.peak).toBe(2);
  });
});

describe("memory over time", () => {
  const r = decodeRun(run());
  it("stacks what is in use below what is retained, and keeps reserved apart", () => {
    const s = accountStack(r);
    expect(s.bands.map(b => b.kind)).toEqual(["rest", "use", "retained"]);
    expect([...s.reserved!]).toEqual([0, 0, 7]);
  });
  it("puts small accounts together and loses no byte", () => {
    const list = Array.from({length: 20}, (_, i) => ({name: `a${i}/x`, group: `a${i}`, kind: "use" as const, bytes: [i + 1, 0, 0]}));
    const s = accountStack(decodeRun(run({accounts: {t: [1000, 1000, 1000], resident: [0, 0, 0], list}})), 8);
    expect(s.bands.length).toBe(8);
    expect(s.bands.reduce((sum, b) => sum + b.bytes[0], 0)).toBe(210);
  });
  it("draws sums from the top band down, then resident memory", () => {
    const d = chartData(accountStack(r));
    expect(d.x).toEqual([0, 1000, 2000, 3000]);
    expect(d.rows[0]).toEqual([null, 200, 300, 400]);
    expect(d.rows[2]).toEqual([null, 50, 50, 50]);
    expect(d.rows[3]).toEqual([100, 200, 300, 400]);
  });
  it("finds the nearest moment", () => {
    expect([nearest([0, 10, 20], -5), nearest([0, 10, 20], 14), nearest([0, 10, 20], 16), nearest([0, 10, 20], 99), nearest([], 1)]).toEqual([0, 1, 2, 2, -1]);
  });
  it("says what changed between two moments, the largest first", () => {
    expect(changes(accountStack(r), 1000, 3000)[0]).toEqual({name: "Python objects", before: 100, after: 300});
    expect(lineAt(accountStack(r).line, 1900)).toBe(300);
  });
  it("names moments by the rounds of the loop", () => expect([momentName(r, 500), momentName(r, 2500)]).toEqual(["", "epoch 2"]));
  it("leaves out marks for which there is no room", () => {
    expect(visibleMarks(r, 0, 4000, 10).length).toBe(3);
    expect(visibleMarks(r, 0, 4000, 2).map(m => m.label)).toEqual(["epoch 2"]);
  });
  it("names rounds at round numbers, also where not every one was kept, and begins again with every fit", () => {
    const kept = [0, 8, 16, 24, 32, 40, 0, 8, 16];
    const long = decodeRun(run({
      marks: {t: kept.map(() => 1000), kind: kept.map((_, i) => (i ? 0 : 1)), name: kept.map(() => 0), index: kept.map((v, i) => v - (kept[i - 1] ?? 0)), period: kept.map((_, i) => (i ? 0 : 1)), rss: kept.map(() => null)},
    }));
    expect(visibleMarks(long, 0, 10000, 7)).toEqual([
      {t: 1000, label: "epoch 0"}, {t: 2250, label: "epoch 10"}, {t: 3500, label: "epoch 20"}, {t: 4750, label: "epoch 30"}, {t: 6000, label: "epoch 40"}, {t: 7000, label: "epoch 0"}, {t: 8250, label: "epoch 10"},
    ]);
  });
  it("stacks processes so that they add up to what the kernel says of all", () => {
    const one = (pid: number, main: boolean, t: number[], resident: number[], end: number | null) => ({process: pid, pid, parent: 1, name: "python3", command: "", start: t[0], end, seen: "inside" as const, main, peak: 0, t, resident, private: t.map(() => null), sites: null, sizes: null, story: null});
    const both = decodeRun(run({
      processes: [one(7, true, [0, 1000, 1000], [100, 0, 0], null), one(8, false, [1000, 1000], [30, 10], 2000)],
      tree: {t: [0, 1000, 1000], processes: [1, 1, 0], rss: [100, 30, 10], private_dirty: [null, null, null], pss: [null, null, null]},
    }));
    const s = processStack(both)!;
    const sums = Array.from(s.t, (_, i) => s.bands.reduce((all, band) => all + band.bytes[i], 0));
    expect(sums).toEqual([100, 130, 140]);
    expect([...s.line.bytes]).toEqual(sums);
    expect(s.bands.map(b => b.name)).toEqual(["python3 7 (main)", "python3 8"]);
    expect(treePeak(both)).toEqual({t: 2000, rss: 140, pss: 0, processes: 2});
    expect([processStack(r), treePeak(r)]).toEqual([null, null]);
  });
  it("stacks lines of code, the rest included", () => {
    const s = lineStack(r)!;
    expect(s.bands.map(b => b.name)).toContain("train.py:12 keep");
    expect(s.bands.reduce((sum, b) => sum + b.bytes[0], 0)).toBe(75);
  });
  it("tells how far a sampled sum may be off, and which accounts are sampled", () => {
    // 1,024 samples of small blocks, one for 64 KiB: one over the root of them, at 95 %
    expect(mostOff(64 * 1024 ** 2, 65536) / (64 * 1024 ** 2)).toBeCloseTo(1.96 / 32);
    expect([mostOff(0, 65536), mostOff(100, 0), mostOff(100, 65536)]).toEqual([0, 0, 100]);
    expect(["your code, sampled blocks", "libraries, sampled blocks", "not in sampled blocks", "Python objects"].map(isSampled)).toEqual([true, true, false, false]);
  });
  it("stays quick for ten thousand epochs", () => {
    const n = 10000;
    const ones = Array.from({length: n}, () => 1000);
    const big = decodeRun(run({
      resident: {t: ones, rss: ones, swap: ones.map(() => null)}, marks: {t: ones, kind: ones.map((_, i) => (i ? 0 : 1)), name: ones.map(() => 0), index: ones.map(() => 1), period: ones.map((_, i) => (i ? 0 : 1)), rss: ones},
    }));
    expect(visibleMarks(big, 0, 1e9, 40).length).toBeLessThanOrEqual(40);
    expect(chartData(accountStack(big)).x.length).toBe(n);
  });
});

describe("where the growth went", () => {
  const part = (name: string, bytes: number) => ({kind: "held" as const, name, chain: [], born: null, bytes, range: [bytes - 5, bytes + 5] as [number, number]});
  const growth = {tree: false, pid: 7, process: "python3", main: true, space: "host", level: 900, growth: 60, range: [50, 70] as [number, number], rounds: 20, unit: "epoch", from: 0, to: 1, parts: [part("a", 80), part("b", 10), part("c", -30)]};
  it("falls from part to part, and the last one ends at what was measured", () => {
    const {bars, low, high} = waterfall(growth);
    expect(bars.map(b => [b.from, b.to])).toEqual([[0, 80], [80, 90], [90, 60]]);
    expect(bars[2].to).toBe(growth.growth);
    expect([low, high]).toEqual([0, 95]);
  });
  it("has room for nothing at all", () => {
    const {low, high} = waterfall({...growth, growth: 0, range: [0, 0], parts: []});
    expect(high).toBeGreaterThan(low);
  });
  it("is named by process and space, and can be heard", () => {
    expect(growthName(growth)).toBe("python3 7 (main): its own memory and files");
    expect(growthName({...growth, tree: true, pid: null, space: "all"})).toBe("All processes together");
    expect(growthName({...growth, space: "gpu:1"})).toBe("python3 7 (main): GPU 1");
    expect(bornAt({...part("a", 1), born: {file: "/x/train.py", line: 31, function: "main"}})).toBe("train.py:31");
    expect(bornAt({...part("a", 1), born: {file: "/x/lib.so", line: 0, function: "grow"}})).toBe("grow");
    expect(spoken(growth)).toBe("python3 7 (main): its own memory and files grew by +60 B: a +80 B; b +10 B; c -30 B");
  });
});

describe("who holds the memory", () => {
  const r = decodeRun(run());
  const s = r.sites!;
  it("keeps of a row of library frames the first and the one that allocates", () => {
    expect(condensed(s, [0, 2, 1]).map(k => k.id)).toEqual([1, 2, 0]);
    expect(condensed(s, [3])).toEqual([{id: 3, folded: 0}]);
    expect(condensed(s, [0, 2, 2, 2, 1])).toEqual([{id: 1, folded: 0}, {id: 2, folded: 2}, {id: 0, folded: 0}]);
  });
  it("sums calls from the outermost down", () => {
    const tree = callTree(s, weights(s, {at: 1}), true);
    expect(tree.weight).toBe(120);
    const main = tree.children.find(c => c.frame!.function === "main")!;
    expect([main.weight, main.children[0].weight]).toEqual([100, 100]);
  });
  it("calls functions what a person calls them", () => {
    const frame = {id: 0, line: 1, native: false, user: false, named: true, text: "", words: ""};
    expect(callName({...frame, file: "/x/lib/python3.11/site-packages/keras/src/trainer.py", function: "fit"})).toBe("keras · fit");
    expect(callName({...frame, file: "/usr/lib/python3.11/threading.py", function: "run"})).toBe("python · run");
    expect(callName({...frame, user: true, file: "/home/ann/train.py", function: "<module>"})).toBe("<module> train.py");
    expect(callName({...frame, user: true, file: "/home/ann/train.py", function: "fit"})).toBe("fit");
  });
  it("weighs one thread alone, all that was ever allocated, and what lived for a moment", () => {
    expect([...weights(s, {at: 1}, 1)]).toEqual([0, 40, 0]);
    expect([...weights(s, {at: 1}, -1)]).toEqual([0, 0, 20]);
    expect([...weights(s, {ever: "allocated"})]).toEqual([100, 400, 20]);
    expect([...weights(s, {ever: "temporary"}, 0)]).toEqual([0, 0, 0]);
    expect(table(s, {at: 1}, 1).map(q => [q.bytes, q.allocated, q.temporary, q.thread])).toEqual([[40, 400, 300, 1]]);
    expect(table(s, {ever: "temporary"}).reduce((sum, q) => sum + q.bytes, 0)).toBe(310);
  });
  it("has signs in a difference", () => {
    const tree = callTree(s, weights(s, {from: 1, to: 2}), true);
    expect([tree.net, tree.weight]).toEqual([-55, 55]);
  });
  it("makes rectangles that fill their parent and leave nothing over the edge", () => {
    const rects = rectangles(callTree(s, weights(s, {at: 1}), true));
    for (const q of rects) expect(q.x >= -1e-9 && q.x + q.width <= 1 + 1e-9).toBe(true);
    expect(rects.filter(q => q.depth === 1).reduce((sum, q) => sum + q.width, 0)).toBeCloseTo(1);
  });
  it("is a table too, and can be searched in every word", () => {
    const rows = table(s, {at: 1});
    expect(rows[0]).toMatchObject({label: "train.py:12 keep", bytes: 60, user: true});
    expect(rows.filter(q => matches(q, "TRAIN keep")).length).toBe(1);
    expect(rows.filter(q => matches(q, "kept.append")).length).toBe(1);
    expect(rows.filter(q => matches(q, "train nothing")).length).toBe(0);
  });
});

describe("the plan", () => {
  const program = {
    name: "train", calls: 4, planned: 100, lowerBound: 90, planSeconds: 0, method: "", leftOut: 0, ops: [{op: "conv", layer: "conv", workspace: 0}],
    buffers: [
      {name: "a", account: "activations/conv", layer: "conv", offset: 0, size: 60, first: 0, last: 2},
      {name: "b", account: "gradients/conv", layer: "conv", offset: 60, size: 30, first: 2, last: 3},
    ],
  };
  it("knows what is alive at every call, and the peak", () => {
    expect([...liveBytes(program)]).toEqual([60, 60, 90, 30]);
    expect(peakCall(program)).toBe(2);
    expect(aliveAt(program, 2).map(b => b.name)).toEqual(["a", "b"]);
  });
  it("finds the buffer under the pointer", () => {
    expect(bufferAt(program, 2, 70)!.name).toBe("b");
    expect(bufferAt(program, 0, 70)).toBe(null);
  });
  it("sums by layer, weights and slots from the accounts", () => {
    const r = decodeRun(run({accounts: {t: [0], resident: [0], list: [{name: "weights/conv/kernel", group: "weights", kind: "use", bytes: [8]}, {name: "slots/adam.m/conv/kernel", group: "slots", kind: "use", bytes: [16]}]}}));
    expect(layers(r, program)[0]).toEqual({layer: "conv", weights: 8, slots: 16, activations: 60, gradients: 30, workspace: 0, atPeak: 90});
    expect(layerOf("slots/adam.m/dense/kernel")).toBe("dense");
  });
});

describe("the answer", () => {
  it("knows what is code", () => expect(pieces("a `b` c")).toEqual([{text: "a ", code: false}, {text: "b", code: true}, {text: " c", code: false}]));
  it("leaves a lone backtick alone", () => expect(pieces("a ` b").map(p => p.text).join("")).toBe("a ` b"));
  it("knows code that has backticks itself", () => {
    expect(pieces("write ``f(\"`a`\")`` here")).toEqual([{text: "write ", code: false}, {text: "f(\"`a`\")", code: true}, {text: " here", code: false}]);
    expect(pieces("`` `a` ``")).toEqual([{text: "`a`", code: true}]);
    expect(codeChange("Write ``x.append(y.item())  # `all` `` instead of ``x.append(y)  # `all` ``: a number is kept.")).toEqual({remove: "x.append(y)  # `all` ", add: "x.append(y.item())  # `all` "});
  });
  it("turns a fix into a change of code", () => {
    expect(codeChange("Write `x.append(float(y))` instead of `x.append(y)`: keep a number.")).toEqual({remove: "x.append(y)", add: "x.append(float(y))"});
    expect(codeChange("Write `a.item()` (a number), or `a.detach().cpu()` if the values are needed, instead of `a`.")).toEqual({remove: "a", add: "a.item()"});
    expect(codeChange("Take out `x.append(y)`, keep a number.")).toEqual({remove: "x.append(y)", add: ""});
    expect(codeChange("Add `del x[:-3]` after `x.append(y)`: the newest 3 stay.")).toEqual({remove: "", add: "del x[:-3]"});
    expect(codeChange("Call `plt.close(fig)` when the figure is saved.")).toBe(null);
  });
  it("links threads, and nothing else", () => {
    expect(threadLink("tensorflow#24726")).toBe("https://github.com/tensorflow/tensorflow/issues/24726");
    expect(threadLink("rabbityl/lepard#12")).toBe("https://github.com/rabbityl/lepard/issues/12");
    for (const bad of ["javascript:alert(1)#1", "x#y", "a/b/c#1", "unknown#1", "a b#1"]) expect(threadLink(bad)).toBe(null);
  });
});

describe("the forecast", () => {
  const finding = {
    kind: "leak" as const, cause: "", title: "", unit: "epoch", each: "every epoch", seen_over: "1 epoch", rate: 1, rate_range: [1, 1] as [number, number], units_seen: 1, total: 1, blame: null, holder: "", chain: [],
    evidence: [], fix: "", threads: [], forecast: {limit: "machine", bytes: 1400, seconds: 10, seconds_range: [8, 20] as [number, number], unit_index: 13, round: "epoch 13", words: "At this rate it is reached in epoch 13."}, sets_verdict: true, process: null, processes: 1, space: "host", cohorts: null,
  };
  it("runs from the last round to the limit, between early and late", () => {
    const band = forecastBand(decodeRun(run({findings: [finding]})))!;
    expect(band.from).toEqual({t: 3000, bytes: 400});
    expect([band.early, band.likely, band.late]).toEqual([12000, 14000, 24000]);
    expect(forecastAt(band, 14000).likely).toBeCloseTo(1400);
    expect(forecastAt(band, 14000).low).toBeLessThan(forecastAt(band, 14000).high);
  });
  it("of a child or of a GPU is drawn with that one's line, never with the main process's", () => {
    const process = (row: number, main: boolean): ProcessData => ({
      process: row, pid: 70 + row, parent: 1, name: "python3", command: "", start: 0, end: null, seen: "inside", main, peak: 0, t: [0, 4000], resident: [10, 90], private: [null, null], sites: null, sizes: null,
      story: main ? null : {
        peak: 120, accounts: {t: [], resident: [], list: []}, marks: {t: [], kind: [], name: [], index: [], period: [], rss: []}, probes: [], lines: null,
        periods: {unit: "round", kind: "timer", warm: 0, seconds: 1, t: [500, 500, 500], x: [1, 2, 3], index: [1, 1, 1], rss: [10, 40, 40], live: [null, null, null]},
      },
    });
    const inChild = {...finding, process: 2};
    const r = decodeRun(run({findings: [inChild], processes: [process(1, true), process(2, false)]}));
    expect(forecastBand(r)).toBe(null);
    expect(forecastBand(seenFrom(r, r.processes[1])!)!.from).toEqual({t: 1500, bytes: 90});
    expect([...roundsOf(r, inChild)!.rss]).toEqual([10, 50, 90]);
    expect(usualProcess(r)!.pid).toBe(72);
    expect(roundsOf(r, {...finding, process: 3})).toBe(null);
    const onGpu = {...finding, process: 1, space: "gpu:0"};
    const periods = {unit: "epoch", kind: "epoch", warm: 0, seconds: 1, t: [1, 1, 1], x: [1, 2, 3], index: [1, 1, 1], rss: [5, 5, 5], live: [5, 5, 5]};
    const g = decodeRun(run({
      findings: [onGpu], processes: [process(1, true), process(2, false)],
      pools: [{process: 1, name: "python3", pid: 71, space: "gpu:0", pool: "torch", peak: 15, retries: 0, t: [0, 1], in_use: [5, 10], reserved: [20, 0], in_use_peak: [5, 10], periods}],
    }));
    expect(forecastBand(g)).toBe(null);
    expect([...roundsOf(g, onGpu)!.rss]).toEqual([5, 10, 15]);
    expect(probesOf(g, onGpu)).toEqual([]);
  });
  it("is not drawn where there is none", () => expect(forecastBand(decodeRun(run()))).toBe(null));
});

describe("the view in the address", () => {
  it("is read back as it was written", () => {
    const view = new Map([["q", "a b&c=d#e"], ["z", "10-20"], ["sort.places", "-bytes"]]);
    expect(parseView(`#${printView(view)}`)).toEqual(new Map([...view].sort()));
  });
  it("of a stranger is bounded, and a plain section is one too", () => {
    expect(parseView("#time")).toEqual(new Map([["s", "time"]]));
    expect(parseView("#<script>").size).toBe(0);
    expect(parseView(`#q=${"x".repeat(400)}&__proto__=1&A=2&ok=1`)).toEqual(new Map([["ok", "1"]]));
    expect(parseView("#" + Array.from({length: 200}, (_, i) => `k${"abcdefghij"[i % 10]}${"abcdefghijklmnopqrst"[Math.floor(i / 10)]}=1`).join("&")).size).toBe(40);
  });
  it("has stretches of time", () => {
    expect(parseRange(printRange(12.4, 99.6))).toEqual([12, 100]);
    for (const bad of ["", "1", "9-3", "-1-3", "1e9-2e9", "a-b"]) expect(parseRange(bad)).toBe(null);
  });
});

describe("what leaves the page", () => {
  it("is CSV that no spreadsheet takes for a formula", () => {
    expect(csvText(["a", "b"], [["=cmd()", 1], ['say "x", y', null], ["plain", NaN]])).toBe('a,b\r\n\'=cmd(),1\r\n"say ""x"", y",\r\nplain,\r\n');
    expect([csvCell("-1"), csvCell(-1), csvCell("@x")]).toEqual(["'-1", "-1", "'@x"]);
  });
});

describe("a table", () => {
  const columns = [{key: "name", title: "Name", value: (r: {n: string; v: number | null}) => r.n}, {key: "v", title: "V", n: true, value: (r: {n: string; v: number | null}) => r.v}];
  const rows = [{n: "b10", v: 1}, {n: "b9", v: null}, {n: "a", v: 1}, {n: "c", v: 7}];
  it("is sorted by any column, both ways, and equals keep their order", () => {
    expect(sorted(rows, columns, parseSort("-v", columns)).map(r => r.n)).toEqual(["c", "b10", "a", "b9"]);
    expect(sorted(rows, columns, parseSort("name", columns)).map(r => r.n)).toEqual(["a", "b9", "b10", "c"]);
  });
  it("stays as it came where the address names no column of it", () => expect(sorted(rows, columns, parseSort("-nothing", columns))).toEqual(rows));
});

describe("what has a name of resident memory", () => {
  const x = {t: 0, explained: null, with_line: 0, with_line_error: null};
  it("is not cut where it is more than is resident: the overlap is told", () => {
    const found = named({...x, resident: 267, in_use: 221, free: 84, files: 23});
    expect([found.sum, found.over, found.without]).toEqual([328, 61, 0]);
  });
  it("leaves what has no name", () => expect(named({...x, resident: 100, in_use: 60, free: 10, files: 10}).without).toBe(20));
});

describe("a small line", () => {
  it("of a flat run is flat: noise is not drawn as growth", () => {
    const {low, high} = sparkRange([1000, 1004, 1001]);
    expect(4 / (high - low)).toBeLessThan(0.05);
  });
  it("of growth fills its height", () => expect(sparkRange([100, 200])).toEqual({low: 100, high: 200}));
});

describe("your code", () => {
  const r = decodeRun(run({
    sources: [{file: 3, function: 4, first: 11, lines: ["def keep(x):", "    kept.append(x)"]}],
    lines: {file: [3, 0], line: [12, 28], allocated: [100, -40], freed: [40, 0], kept: [60, -40], temporary: [0, 0], kept_error: [5, 0], allocated_error: [7, 0], t: 3000},
  }));
  it("is listed with what each line allocated, freed and kept, and gaps between pieces", () => {
    expect(listing(r, "train.py").map(l => l && [l.line, l.text, l.amounts?.kept ?? null])).toEqual([[11, "def keep(x):", null], [12, "    kept.append(x)", 60], null, [40, null, 20]]);
    expect(filesOf(r)).toEqual([{file: "train.py", allocated: 160, freed: 80, kept: 80}]);
  });
});

describe("amounts from samples", () => {
  it("have what 95 % lie within, and digits alone only where every block was taken", () => {
    const rows = table(decodeRun(run()).sites!, {at: 1});
    const keep = rows.find(r => r.frame?.function === "keep")!;
    expect(keep.bytes).toBe(60);
    expect(keep.error).toBeCloseTo(Math.sqrt(4 * 60));
    expect(withError(60, keep.error)).toBe("60 B ± 15 B");
    expect(estimated(60, keep.error)).toBe("60 B ± 15 B, estimated from samples");
    expect([withError(1000, 0), estimated(1000, 0)]).toEqual(["1000 B", "1,000 B"]);
  });
});

describe("limits", () => {
  it("are told by what they are", () => {
    expect(limitName("machine")).toBe("what this machine has free");
    expect(limitName("RLIMIT_AS")).toBe("RLIMIT_AS");
  });
});

describe("blocks by size", () => {
  it("begin and end where there are any, and have names", () => {
    const r = decodeRun(run({sizes: {from: [0, 32, 64, 128, 256], blocks: [0, 1, 0, 2, 0], bytes: [0, 40, 0, 400, 0], freed: [0, 0, 0, 300, 0], temporary: [0, 0, 0, 100, 0], error: [0, 1, 0, 20, 0]}}));
    expect(r.sizes.map(c => className(c))).toEqual(["32 B to 64 B", "64 B to 128 B", "128 B to 256 B"]);
  });
});
