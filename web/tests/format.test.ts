import {describe, expect, it} from "vitest";
import {bytes, clock, duration, exact, plural, scriptFirst, shortPath, shown, signedBytes, thousands} from "../src/format";
import {byteTicks, timeTicks} from "../src/ticks";

describe("bytes read as in the terminal", () => {
  it.each([
    [0, "0 B"], [512, "512 B"], [1023, "1023 B"], [1024, "1.00 KiB"], [14541, "14.2 KiB"], [104857600, "100 MiB"], [1048051712, "1000 MiB"], [1073217536, "1.00 GiB"],
    [1299227607, "1.21 GiB"], [-2048, "-2.00 KiB"],
  ])("%d is %s", (n, text) => expect(bytes(n)).toBe(text));
  it("says when nothing was measured", () => expect(bytes(NaN)).toBe("not measured"));
  it("keeps every byte where it must", () => expect(exact(99323904)).toBe("99,323,904 B"));
  it("has signs", () => expect([signedBytes(2048), signedBytes(-2048), signedBytes(0)]).toEqual(["+2.00 KiB", "-2.00 KiB", "0 B"]));
});

describe("names of strangers", () => {
  it("cannot hide or turn text around", () => {
    expect(shown("a\u202eb\u200bc\u0007d\u001be\u009b")).toBe("a\ufffdb\ufffdc\u2407d\u241be\ufffd");
  });
  it("keep lines and tabs, and lone surrogates become marks", () => expect(shown("a\n\tb\ud800")).toBe("a\n\tb\ufffd"));
  it("are cut in the middle when very long", () => {
    const text = shown("x".repeat(100000), 100);
    expect(text.length).toBeLessThan(110);
    expect(text).toContain(" … ");
  });
  it("leave markup as it is: it is written as text", () => expect(shown("<script>alert(1)</script>")).toBe("<script>alert(1)</script>"));
});

describe("times and numbers", () => {
  it("reads moments", () => expect([clock(420), clock(14500), clock(187000), clock(3727000)]).toEqual(["0.42 s", "14.5 s", "3:07", "1:02:07"]));
  it("reads durations as the sentence does", () =>
    // the cases of "words: durations" in tests/verdict/words_test.cc
    expect([0.005, 0.42, 2, 90, 3000, 2.4 * 3600, 2 * 3600, 30 * 3600, 3.5 * 86400, 4000 * 86400].map(duration)).toEqual(
      ["5 ms", "0.4 s", "2 s", "90 s", "50 min", "2.4 h", "2 h", "30 h", "3.5 days", "4,000 days"]));
  it("groups digits", () => expect([thousands(1310), thousands(999), thousands(1234567)]).toEqual(["1,310", "999", "1,234,567"]));
  it("knows one from many", () => expect([plural(1, "epoch"), plural(2, "epoch"), plural(3, "batch")]).toEqual(["1 epoch", "2 epochs", "3 batches"]));
  it("shortens a path at a folder", () => expect(shortPath("project/a/work/project/very/long/folder/train.py", 24)).toBe("…/long/folder/train.py"));
  it("puts ticks on round binary numbers", () => expect(byteTicks(100 * 1024 ** 2)).toEqual([0, 20, 40, 60, 80, 100].map(n => n * 1024 ** 2)));
  it("puts ticks on whole seconds", () => expect(timeTicks(0, 10000, 5)).toEqual([0, 2000, 4000, 6000, 8000, 10000]));
  it("has ticks of nothing", () => expect(byteTicks(0)).toEqual([0]));
});

describe("a command", () => {
  it.each([
    ["/usr/bin/python3 -u -X dev /home/ann/train.py --epochs 3", "train.py --epochs 3"], ["python3.11 -m pytest -q", "pytest -q"], ["python -c print(1)", "python -c print(1)"],
    ["/opt/bin/trainer --fast", "trainer --fast"], ["train", "train"], ["", ""],
  ])("%s is called %s", (command, name) => expect(scriptFirst(command)).toBe(name));
});
