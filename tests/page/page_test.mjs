// The report page in a real browser: every kind of run, by mouse and by keyboard, in both themes and on a phone.
import assert from "node:assert/strict";
import {statSync} from "node:fs";
import {join} from "node:path";
import {after, before, describe, it} from "node:test";
import {axe, launch, makePage, makeRuns, open, query, run, shots, verdict, work} from "./support.mjs";

let browser;
const pages = {};
const texts = async (page, selector) => (await page.locator(selector).allInnerTexts()).map(t => t.trim());
const digits = text => Number(text.replace(/[^0-9-]/g, ""));
const chartBox = async page => {
  const over = page.locator(".chart .u-over");
  await over.scrollIntoViewIfNeeded();
  return over.boundingBox();
};
const clean = text => text.replaceAll("`", "").replace(/\s+/g, " ").trim();

before(async () => {
  for (const name of makeRuns()) pages[name] = makePage(name);
  pages.diff = makePage("diff", "leak.pond", "flat.pond");
  browser = await launch();
});
after(() => browser?.close());

describe("every page", () => {
  for (const name of ["leak", "flat", "cache", "cnn", "resnet", "diff"])
    it(`${name} opens from disk without a fault, small, with its answer as text, and axe finds nothing serious in either theme`, async () => {
      assert.ok(statSync(pages[name]).size < 500_000, `${statSync(pages[name]).size} bytes`);
      for (const theme of ["light", "dark"]) {
        const page = await open(browser, pages[name], {theme});
        assert.deepEqual(page.faults, []);
        const said = name === "diff" ? JSON.parse(run(process.env.MILLPOND, ["report", "leak.pond", "flat.pond", "--json", "-"])).sentence : verdict(name).sentence;
        assert.equal(clean(await page.locator("h1").innerText()), clean(said));
        assert.deepEqual(await axe(page), []);
        await page.screenshot({path: join(shots, `${name}-${theme}.png`), fullPage: true});
        await page.context().close();
      }
      const phone = await open(browser, pages[name], {width: 390, height: 844, scale: 2});
      assert.deepEqual(phone.faults, []);
      assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "nothing sticks out at the side");
      await phone.screenshot({path: join(shots, `${name}-phone.png`), fullPage: true});
      await phone.context().close();
    });

  it("says the verdict in words, not by colour alone", async () => {
    for (const [name, word] of [["leak", "Leak"], ["flat", "Flat"], ["cache", "Cache"], ["cnn", "Flat"]]) {
      const page = await open(browser, pages[name]);
      assert.match((await texts(page, ".answer .badge"))[0], new RegExp(word));
      await page.context().close();
    }
  });

  it("can be printed, and reads as text where scripts are off", async () => {
    const page = await open(browser, pages.leak);
    await page.emulateMedia({media: "print"});
    await page.screenshot({path: join(shots, "leak-print.png"), fullPage: true});
    assert.ok((await page.pdf({format: "A4"})).length > 10000);
    await page.context().close();
    const context = await browser.newContext({javaScriptEnabled: false});
    const bare = await context.newPage();
    await bare.goto(`file://${pages.leak}`);
    assert.match(await bare.locator("#plain").innerText(), /millpond: LEAK[\s\S]*self\.seen\.append\(batch\)/);
    await context.close();
  });
});

describe("numbers", () => {
  it("of a watched run are those of its file", async () => {
    const page = await open(browser, pages.leak);
    const facts = Object.fromEntries(await page.locator("#measured .facts > div").evaluateAll(list => list.map(d => [d.children[0].textContent, d.children[1].textContent])));
    assert.equal(digits(facts["Peak, exactly"]), verdict("leak").peak_rss);
    assert.equal(digits(facts["Points of resident memory"]), query("leak", "SELECT count(*) FROM os_series WHERE rss > 0")[0][0]);
    // the table under the chart, at the peak of resident memory
    const [[, rss]] = query("leak", "SELECT t, rss FROM os_series WHERE rss > 0 ORDER BY rss DESC, t LIMIT 1");
    const rows = await page.locator("table.accounts tbody tr").evaluateAll(list => list.map(r => [r.children[0].textContent, r.children[2].textContent]));
    const table = Object.fromEntries(rows.map(([k, v]) => [k, digits(v)]));
    assert.equal(table["resident memory"], rss);
    const marks = query("leak", "SELECT rss, heap_in_use, heap_mapped, python_arenas, heap_free FROM marks WHERE heap_in_use IS NOT NULL");
    assert.ok(marks.some(m => m[1] === table["malloc, in use"] && m[2] === table["malloc, large blocks"] && m[3] === table["Python objects"] && m[4] === table["malloc, free but kept"]), JSON.stringify(table));
    // who holds it: the sum of live bytes at the snapshot with most resident memory
    const [[peak]] = query("leak", "SELECT mark FROM site_states JOIN marks ON marks.id = mark WHERE process = (SELECT process FROM marks WHERE kind = 'epoch' LIMIT 1) GROUP BY mark ORDER BY rss DESC, t LIMIT 1");
    const [[sum, largest]] = query("leak", `SELECT sum(bytes), max(bytes) FROM site_states WHERE mark = ${peak}`);
    const titles = await page.locator("table.places tbody td:first-child").evaluateAll(list => list.map(d => d.title));
    assert.equal(titles.reduce((all, t) => all + digits(t), 0), sum);
    assert.ok(digits(titles[0]) >= largest);
    await page.context().close();
  });

  it("of a run of the engine are those of its file, and the plan is the one that was made", async () => {
    const page = await open(browser, pages.resnet);
    const rows = await page.locator("table.accounts tbody tr").evaluateAll(list => list.map(r => [r.children[0].textContent, r.children[2].textContent]));
    const table = Object.fromEntries(rows.map(([k, v]) => [k, digits(v)]));
    for (const group of ["weights", "slots"]) {
      const [[bytes]] = query("resnet", `SELECT sum(bytes) FROM (SELECT max(series.rowid), bytes FROM series JOIN accounts ON accounts.id = account WHERE kind = 'current' AND name LIKE '${group}/%' GROUP BY account)`);
      assert.equal(table[group], bytes, group);
    }
    const [[id, planned, bound]] = query("resnet", "SELECT id, planned_bytes, lower_bound_bytes FROM programs ORDER BY id LIMIT 1");
    const buffers = query("resnet", `SELECT name, size, first, last FROM plan_buffers WHERE program = ${id}`);
    const live = call => buffers.filter(b => b[2] <= call && call <= b[3]).reduce((s, b) => s + b[1], 0);
    const call = Number((await page.locator("#call").inputValue()));
    const most = Math.max(...Array.from({length: Number(await page.locator("#call").getAttribute("max")) + 1}, (_, i) => live(i)));
    assert.equal(live(call), most, "the slider begins at the peak");
    const first = await page.locator("table.alive tbody tr").first().locator("td").allInnerTexts();
    const largest = buffers.filter(b => b[2] <= call && call <= b[3]).sort((a, b) => b[1] - a[1])[0];
    assert.equal(digits(first[2]), largest[1]);
    assert.ok(bound <= planned);
    await page.context().close();
  });
});

describe("the chart", () => {
  it("tells exact bytes under the pointer, and they are a point of the file", async () => {
    const page = await open(browser, pages.leak);
    const box = await chartBox(page);
    await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
    await page.waitForFunction(() => document.querySelector(".at").textContent.startsWith("At ") && !document.querySelector(".at").textContent.startsWith("At the peak"));
    const bytes = digits((await page.locator(".at .muted").innerText()));
    assert.ok(query("leak", "SELECT rss FROM os_series").some(([rss]) => rss === bytes));
    await page.screenshot({path: join(shots, "leak-hover.png")});
    await page.context().close();
  });

  it("zooms by dragging and goes back by a double click", async () => {
    const page = await open(browser, pages.leak);
    const chart = page.locator(".chart");
    const box = await chartBox(page);
    await page.mouse.move(box.x + box.width * 0.3, box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 80, {steps: 6});
    await page.mouse.up();
    assert.equal(await chart.getAttribute("data-zoomed"), "true");
    await page.screenshot({path: join(shots, "leak-zoomed.png")});
    await page.mouse.dblclick(box.x + box.width * 0.5, box.y + 80);
    assert.equal(await chart.getAttribute("data-zoomed"), "false");
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });

  it("compares two moments that are brushed, and the tree shows the difference", async () => {
    const page = await open(browser, pages.leak);
    await page.getByRole("button", {name: "Drag to compare"}).click();
    const box = await chartBox(page);
    await page.mouse.move(box.x + box.width * 0.42, box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.78, box.y + 80, {steps: 6});
    await page.mouse.up();
    const between = await page.locator(".between").innerText();
    const [, a, b] = between.match(/resident ([\d.]+) MiB → ([\d.]+) MiB/).map(Number);
    assert.ok(b > a, between);
    await page.locator("button[aria-pressed=true]", {hasText: "A to B"}).waitFor({timeout: 2000});
    assert.ok((await page.locator(".icicle .grow").count()) > 0);
    assert.match((await texts(page, "table.places tbody tr"))[0], /\+.*MiB[\s\S]*leaky_training\.py:24/);
    assert.deepEqual(await axe(page), []);
    await page.screenshot({path: join(shots, "leak-compared.png"), fullPage: true});
    await page.getByRole("button", {name: "Clear A and B"}).click();
    assert.equal(await page.locator(".between").count(), 0);
    await page.context().close();
  });

  it("does all of it by keyboard", async () => {
    const page = await open(browser, pages.leak);
    const chart = page.locator(".chart");
    await chart.focus();
    for (let i = 0; i < 4; ++i) await page.keyboard.press("ArrowRight");
    await page.keyboard.press("a");
    const heard = await page.locator("#time p[role=status]").innerText();
    assert.match(heard, /resident [\d.]+ [KM]iB/);
    await page.keyboard.press("End");
    for (let i = 0; i < 3; ++i) await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("b");
    assert.match(await page.locator(".between").innerText(), /From A[\s\S]*to B/);
    await page.keyboard.press("+");
    assert.equal(await chart.getAttribute("data-zoomed"), "true");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".between").count(), 0);
    await page.keyboard.press("Escape");
    assert.equal(await chart.getAttribute("data-zoomed"), "false");
    await page.context().close();
  });

  it("stacks by line of code too, and shows the way to the limit", async () => {
    const page = await open(browser, pages.leak);
    await page.getByRole("button", {name: "By line of code"}).click();
    assert.match((await texts(page, "table.accounts")).join(), /leaky_training\.py:24/);
    await page.getByRole("button", {name: "Up to the limit"}).click();
    await page.waitForTimeout(60);
    await page.screenshot({path: join(shots, "leak-limit.png")});
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
});

describe("who holds the memory", () => {
  it("can be walked by keyboard and opened by mouse", async () => {
    const page = await open(browser, pages.leak);
    const now = page.getByTestId("icicle-now");
    await page.locator(".icicle [tabindex='0']").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.match(await now.innerText(), /main/);
    await page.keyboard.press("Enter");
    assert.equal(await page.locator(".icicle button").first().getAttribute("aria-level"), "1");
    assert.match(await page.locator(".icicle button").first().innerText(), /main/);
    await page.keyboard.press("Escape");
    assert.match(await page.locator(".icicle button").first().innerText(), /all/);
    await page.locator(".icicle button.user").nth(2).click();
    assert.equal(await page.getByRole("button", {name: "Show all"}).count(), 1);
    await page.context().close();
  });

  it("can be searched", async () => {
    const page = await open(browser, pages.leak);
    const all = await page.locator("table.places tbody tr").count();
    await page.getByLabel("Search places").fill("leaky make_batch");
    assert.ok((await page.locator("table.places tbody tr").count()) < all);
    assert.match((await texts(page, "table.places tbody tr"))[0], /make_batch/);
    await page.getByLabel("Search places").fill("no such thing anywhere");
    assert.match(await page.locator("#holders .empty").innerText(), /No place matches/);
    await page.screenshot({path: join(shots, "leak-search.png"), fullPage: true});
    await page.context().close();
  });
});

describe("the plan", () => {
  it("answers to slider, pointer and layers", async () => {
    const page = await open(browser, pages.resnet);
    const said = page.locator("#plan p.at");
    const peak = await said.innerText();
    assert.match(peak, /the peak/);
    await page.locator("#call").focus();
    await page.keyboard.press("Home");
    assert.notEqual(await said.innerText(), peak);
    assert.match(await said.innerText(), /At call 1,/);
    const box = await page.locator(".map canvas").boundingBox();
    await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.8);
    assert.match(await page.locator(".map .tip").innerText(), /calls \d+ to \d+/);
    await page.locator("#plan").screenshot({path: join(shots, "resnet-plan.png")});
    assert.ok((await page.locator("table.layers tbody tr").count()) > 5);
    await page.getByRole("button", {name: /Show all \d+ layers/}).click();
    assert.ok((await page.locator("table.layers tbody tr").count()) > 50);
    await page.context().close();
  });
});

describe("strings of strangers", () => {
  it("are shown as text, whatever they hold", async () => {
    // as a program with such names would have been recorded
    run("python3", ["-c", `
import shutil, sqlite3
shutil.copy("leak.pond", "hostile.pond")
db = sqlite3.connect("hostile.pond")
bad = '<img src=x onerror=alert(1)></script><script>alert(2)</script>\\u202e\\x07' + chr(27) + '[2J'
db.execute("UPDATE frames SET function = ?, file = ? WHERE id % 3 = 0", (bad, "/tmp/" + bad))
db.execute("UPDATE frames SET function = ? WHERE id % 3 = 1", ("long" * 15000,))
db.execute("UPDATE frames SET function = CAST(x'fffe3c623e' AS TEXT) WHERE id % 3 = 2")
db.execute("UPDATE marks SET name = ?", (bad,))
db.execute("UPDATE meta SET value = ? WHERE key IN ('command', 'remarks', 'host.cpu')", (bad,))
db.execute("INSERT OR REPLACE INTO meta VALUES ('remarks', ?)", (bad,))
db.commit()
`]);
    const page = await open(browser, makePage("hostile"));
    assert.deepEqual(page.faults, []);
    assert.equal(await page.locator("main img").count(), 0);
    assert.equal(await page.locator("script").count(), 2);
    assert.match(await page.locator("#measured").innerText(), /<img src=x onerror=alert\(1\)><\/script>/);
    const text = await page.locator("body").innerText();
    // eslint-disable-next-line no-control-regex
    assert.ok(!/[\u0007\u001b\u202e]/.test(text));
    assert.match(await page.title(), /<img src=x onerror/);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "a long name does not push the page apart");
    await page.screenshot({path: join(shots, "hostile.png"), fullPage: true});
    await page.context().close();
  });

  it("in the data cannot end the script block, and the policy lets no other script run", async () => {
    const page = await open(browser, join(work, "hostile.html"));
    const ran = await page.evaluate(() => {
      const s = document.createElement("script");
      s.textContent = "window.intruder = 1";
      document.body.append(s);
      return window.intruder === 1;
    });
    assert.equal(ran, false);
    await page.context().close();
  });
});

describe("a long run", () => {
  it("of ten thousand epochs stays small and smooth", async () => {
    run("python3", ["-c", `
import shutil, sqlite3
shutil.copy("cnn.pond", "long.pond")
db = sqlite3.connect("long.pond")
row = db.execute("SELECT rss, heap_in_use, heap_free, explained FROM os_series ORDER BY t DESC LIMIT 1").fetchone()
fit = db.execute("SELECT id FROM phases WHERE kind = 'fit'").fetchone()[0]
for i in range(4, 10000):
    t = 0.2 * i
    phase = db.execute("INSERT INTO phases (kind, name, 'index', parent, t_start, t_end) VALUES ('epoch', '', ?, ?, ?, ?)", (i, fit, t, t + 0.19)).lastrowid
    db.execute("INSERT INTO os_series (t, phase, rss, heap_in_use, heap_free, explained) VALUES (?, ?, ?, ?, ?, ?)", (t + 0.19, phase, row[0] + i % 7 * 4096, *row[1:]))
db.commit()
`]);
    const file = makePage("long");
    assert.ok(statSync(file).size < 700_000, `${statSync(file).size} bytes`);
    const page = await open(browser, file);
    assert.deepEqual(page.faults, []);
    const box = await chartBox(page);
    for (let i = 0; i <= 20; ++i) await page.mouse.move(box.x + (box.width * i) / 20, box.y + 60);
    await page.screenshot({path: join(shots, "long.png")});
    assert.match(await page.locator("h1").innerText(), /10,000 seen/);
    await page.context().close();
  });
});
