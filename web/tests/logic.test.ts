import {describe, expect, it} from "vitest";
import {codeChange, pieces, threadLink} from "../src/answer";
import {column, decodeRun, fromBase64, inflate, parseDocument} from "../src/decode";
import {forecastAt, forecastBand} from "../src/forecast";
import {aliveAt, bufferAt, layerOf, layers, liveBytes, peakCall} from "../src/plan";
import {accountStack, changes, chartData, lineStack, momentName, nearest, residentAt, visibleMarks} from "../src/series";
import {callTree, condensed, matches, rectangles, table, weights} from "../src/tree";
import {page, run} from "./made_up";

describe("the document", () => {
  it("is read back from what the program wrote", async () => {
    const text = JSON.stringify(page(run()));
    const packed = await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("deflate"))).arrayBuffer();
    const inPage = btoa(String.fromCharCode(...new Uint8Array(packed)));
    expect(parseDocument(await inflate(fromBase64(inPage)))).toEqual(page(run()));
  });
  it("of another format is refused", () => expect(() => parseDocument('{"format": 2}')).toThrow("format 1"));
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
    const d = chartData(r, accountStack(r));
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
    expect(residentAt(r, 1900)).toBe(300);
  });
  it("names moments by the rounds of the loop", () => expect([momentName(r, 500), momentName(r, 2500)]).toEqual(["", "epoch 2"]));
  it("leaves out marks for which there is no room", () => {
    expect(visibleMarks(r, 0, 4000, 10).length).toBe(3);
    expect(visibleMarks(r, 0, 4000, 2).map(m => m.label)).toEqual(["epoch 1", "epoch 3"]);
  });
  it("stacks lines of code, the rest included", () => {
    const s = lineStack(r)!;
    expect(s.bands.map(b => b.name)).toContain("train.py:12 keep");
    expect(s.bands.reduce((sum, b) => sum + b.bytes[0], 0)).toBe(75);
  });
  it("stays quick for ten thousand epochs", () => {
    const n = 10000;
    const ones = Array.from({length: n}, () => 1000);
    const big = decodeRun(run({
      resident: {t: ones, rss: ones, swap: ones.map(() => null)}, marks: {t: ones, kind: ones.map((_, i) => (i ? 0 : 1)), name: ones.map(() => 0), index: ones.map(() => 1), period: ones.map((_, i) => (i ? 0 : 1)), rss: ones},
    }));
    expect(visibleMarks(big, 0, 1e9, 40).length).toBeLessThanOrEqual(40);
    expect(chartData(big, accountStack(big)).x.length).toBe(n);
  });
});

describe("who holds the memory", () => {
  const r = decodeRun(run());
  const s = r.sites!;
  it("keeps of a row of library frames the first and the one that allocates", () => {
    expect(condensed(s, [0, 2, 1])).toEqual([1, 2, 0]);
    expect(condensed(s, [3])).toEqual([3]);
  });
  it("sums calls from the outermost down", () => {
    const tree = callTree(s, weights(s, {at: 1}), true);
    expect(tree.weight).toBe(120);
    const main = tree.children.find(c => c.frame!.function === "main")!;
    expect([main.weight, main.children[0].weight]).toEqual([100, 100]);
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
    kind: "leak" as const, cause: "", title: "", unit: "epoch", rate: 1, rate_range: [1, 1] as [number, number], units_seen: 1, total: 1, confidence: 1, blame: null, holder: "", chain: [],
    evidence: [], fix: "", threads: [], forecast: {limit: "machine", bytes: 1400, seconds: 10, seconds_range: [8, 20] as [number, number], unit_index: 13}, sets_verdict: true, cohorts: null,
  };
  it("runs from the last round to the limit, between early and late", () => {
    const band = forecastBand(decodeRun(run({findings: [finding]})))!;
    expect(band.from).toEqual({t: 3000, bytes: 400});
    expect([band.early, band.likely, band.late]).toEqual([12000, 14000, 24000]);
    expect(forecastAt(band, 14000).likely).toBeCloseTo(1400);
    expect(forecastAt(band, 14000).low).toBeLessThan(forecastAt(band, 14000).high);
  });
  it("is not drawn where there is none", () => expect(forecastBand(decodeRun(run()))).toBe(null));
});
