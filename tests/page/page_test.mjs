// The report page in a real browser: every kind of run, by mouse and by keyboard, in both themes and on a phone.
import assert from "node:assert/strict";
import {readFileSync, statSync} from "node:fs";
import {join} from "node:path";
import {after, before, describe, it} from "node:test";
import {axe, documentOf, launch, makePage, makeRuns, open, query, run, shots, verdict, work} from "./support.mjs";

let browser;
const pages = {};
const texts = async (page, selector) => (await page.locator(selector).allInnerTexts()).map(t => t.trim());
/** The number in a text; of an estimate that without what it may be off. */
const digits = text => Number(text.split("±")[0].replace(/[^0-9-]/g, ""));
const amount = n => { // as the page writes bytes
  let unit = 0;
  for (; unit < 5 && Math.abs(n) >= 1023.5; ++unit) n /= 1024;
  return unit === 0 ? `${Math.round(n)} B` : `${n.toFixed(Math.abs(n) >= 99.95 ? 0 : Math.abs(n) >= 9.995 ? 1 : 2)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
};
const summed = column => column.reduce((out, d) => [...out, d === null ? null : (out.findLast(v => v !== null) ?? 0) + d], []);
const chartBox = async page => {
  for (let tries = 0;; ++tries) {
    const over = page.locator(".chart .u-over");
    try {
      await over.scrollIntoViewIfNeeded({timeout: 2000});
      return await over.boundingBox();
    } catch (error) {
      if (tries === 4) throw error; // a chart is drawn anew when its view changes
    }
  }
};
const clean = text => text.replaceAll("`", "").replace(/\s+/g, " ").trim();

before(async () => {
  for (const name of makeRuns()) pages[name] = makePage(name);
  pages.diff = makePage("diff", "leak.pond", "flat.pond");
  browser = await launch();
});
after(() => browser?.close());

describe("every page", () => {
  for (const name of ["leak", "flat", "cache", "family", "worker", "gpu", "cnn", "resnet", "diff"])
    it(`${name} opens from disk without a fault, small, with its answer as text, and axe finds nothing in either theme`, async () => {
      assert.ok(statSync(pages[name]).size < 500_000, `${statSync(pages[name]).size} bytes`);
      for (const theme of ["light", "dark"]) {
        const page = await open(browser, pages[name], {theme});
        assert.deepEqual(page.faults, []);
        const said = name === "diff" ? JSON.parse(run(process.env.MILLPOND, ["report", "leak.pond", "flat.pond", "--json", "-"])).sentence : verdict(name).sentence;
        assert.equal(clean(await page.locator("h1").innerText()), clean(said));
        assert.deepEqual(await axe(page), []);
        const ids = await page.locator("[id]").evaluateAll(list => list.map(e => e.id));
        assert.deepEqual(ids.filter((id, i) => ids.indexOf(id) !== i), [], "an id is given once");
        await page.screenshot({path: join(shots, `${name}-${theme}.png`), fullPage: true});
        await page.context().close();
      }
      for (const width of [320, 390, 768, 1920]) {
        const page = await open(browser, pages[name], {width, height: 900, theme: width % 3 ? "light" : "dark"});
        assert.deepEqual(page.faults, []);
        assert.deepEqual(await axe(page), []);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `nothing sticks out at the side of ${width} pixels`);
        await page.screenshot({path: join(shots, `${name}-${width}.png`), fullPage: true});
        await page.context().close();
      }
    });

  it("says the verdict in words, not by colour alone", async () => {
    for (const [name, word] of [["leak", "Leak"], ["flat", "Flat"], ["cache", "Cache"], ["cnn", "Flat"]]) {
      const page = await open(browser, pages[name]);
      assert.match((await texts(page, ".answer .badge"))[0], new RegExp(word));
      await page.context().close();
    }
  });

  it("reads as text where scripts are off", async () => {
    const context = await browser.newContext({javaScriptEnabled: false});
    const bare = await context.newPage();
    await bare.goto(`file://${pages.leak}`);
    assert.match(await bare.locator("#plain").innerText(), /millpond: LEAK[\s\S]*self\.seen\.append\(batch\)/);
    await context.close();
  });

  for (const name of ["leak", "family", "resnet", "diff"])
    it(`${name} printed from the dark theme is dark on white, its charts fit their cards, and no heading ends a page`, async () => {
      const page = await open(browser, pages[name], {theme: "dark", width: 760});
      await page.emulateMedia({media: "print"});
      await page.waitForTimeout(120);
      await page.screenshot({path: join(shots, `${name}-print.png`), fullPage: true});
      const found = await page.evaluate(() => {
        const channels = text => (text.match(/[\d.]+/g) ?? []).map(Number);
        const light = ([r, g, b]) => [r, g, b].map(v => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
        const ground = element => {
          for (let at = element; at; at = at.parentElement) {
            const c = channels(getComputedStyle(at).backgroundColor);
            if (c.length === 3 || (c.length === 4 && c[3] > 0.99)) return c;
          }
          return [255, 255, 255];
        };
        const faults = [];
        const seen = e => e.getClientRects().length > 0 && !e.closest(".hidden, .on-screen");
        for (const element of document.querySelectorAll("body *")) {
          if (!seen(element) || ![...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
          const style = getComputedStyle(element);
          const svg = element instanceof SVGElement;
          const [a, b] = [light(channels(svg ? style.fill : style.color)), svg ? 1 : light(ground(element))];
          const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          if (contrast < 4.4) faults.push(`${element.tagName}.${element.className?.baseVal ?? element.className} "${element.textContent.slice(0, 30)}" has ${contrast.toFixed(1)}`);
        }
        for (const card of document.querySelectorAll("body, .card")) if (light(ground(card)) < 0.95) faults.push(`${card.className || "body"} is not white`);
        for (const chart of document.querySelectorAll(".card svg, .card canvas")) {
          if (!seen(chart)) continue;
          const [inner, outer] = [chart.getBoundingClientRect(), chart.closest(".card").getBoundingClientRect()];
          if (inner.left < outer.left - 1 || inner.right > outer.right + 1) faults.push("a chart is wider than its card");
        }
        if ([...document.querySelectorAll(".chart canvas, .map canvas")].some(seen)) faults.push("a canvas keeps the colours of the screen");
        for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
          if (!seen(heading)) continue;
          const row = heading.closest(".section-head, .head");
          if (![heading, row].some(e => e && getComputedStyle(e).breakAfter === "avoid")) faults.push(`"${heading.textContent}" may stand alone`);
        }
        return faults;
      });
      assert.deepEqual(found, []);
      assert.ok((await page.pdf({format: "A4", path: join(shots, `${name}.pdf`)})).length > 10000);
      await page.context().close();
    });

  it("has its colours, and what is chosen, where colours are forced", async () => {
    const page = await open(browser, pages.leak, {forcedColors: "active"});
    assert.deepEqual(page.faults, []);
    assert.deepEqual(await axe(page), []);
    const [chosen, other] = await page.locator("#time .segments button").evaluateAll(list => list.slice(0, 2).map(b => getComputedStyle(b).backgroundColor));
    assert.notEqual(chosen, other);
    assert.notEqual(await page.locator("#time .swatch").first().evaluate(e => getComputedStyle(e).backgroundColor), await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    await page.screenshot({path: join(shots, "leak-forced.png"), fullPage: true});
    await page.context().close();
  });
});

describe("numbers", () => {
  it("of a watched run are those of its file", async () => {
    const page = await open(browser, pages.leak);
    const facts = Object.fromEntries(await page.locator("#measured .facts > div").evaluateAll(list => list.map(d => [d.children[0].textContent, d.children[1].textContent])));
    assert.equal(digits(facts["Peak, exactly"]), verdict("leak").peak_rss);
    assert.equal(digits(facts["Points of resident memory"]), query("leak", "SELECT count(*) FROM os_series WHERE rss > 0")[0][0]);
    // the table under the chart: its rows add up to its foot, which is resident memory at a mark of the file
    const rows = await page.locator("table.accounts tbody tr").evaluateAll(list => list.map(r => r.children[2].textContent));
    const foot = digits(await page.locator("table.accounts tfoot tr").first().locator("td").nth(2).innerText());
    assert.equal(rows.reduce((sum, t) => sum + digits(t), 0), foot);
    assert.ok(query("leak", "SELECT rss FROM marks WHERE heap_in_use IS NOT NULL").some(([rss]) => rss === foot));
    // who holds it: the sum of live bytes at the snapshot with most resident memory
    const [[peak]] = query("leak", "SELECT mark FROM site_states JOIN marks ON marks.id = mark WHERE process = (SELECT process FROM marks WHERE kind = 'epoch' LIMIT 1) GROUP BY mark ORDER BY rss DESC, t LIMIT 1");
    const [[sum, largest]] = query("leak", `SELECT sum(bytes), max(bytes) FROM site_states WHERE mark = ${peak}`);
    if (await page.locator("#holders").getByRole("button", {name: /^Show all/}).count()) await page.locator("#holders").getByRole("button", {name: /^Show all/}).click();
    const titles = await page.locator("table.places tbody td:first-child").evaluateAll(list => list.map(d => d.title));
    assert.equal(titles.reduce((all, t) => all + digits(t), 0), sum);
    assert.equal(digits(await page.locator("table.places tfoot td span").first().getAttribute("title")), sum);
    assert.ok(digits(titles[0]) >= largest);
    // two peaks are two things: what was sampled, and what the kernel counted
    const [[sampled]] = query("leak", "SELECT max(rss) FROM os_series");
    const said = await page.locator("#time .at").innerText();
    assert.ok(said.includes(sampled.toLocaleString("en-US")), said);
    assert.match(said, verdict("leak").peak_rss > sampled * 1.002 ? /At the highest that was sampled[\s\S]*the kernel counted up to/ : /^At the peak/);
    await page.context().close();
  });

  it("of a run of the engine are those of its file, and the plan is the one that was made", async () => {
    const page = await open(browser, pages.resnet);
    const rows = await page.locator("table.accounts tbody tr").evaluateAll(list => list.map(r => [r.children[0].textContent, r.children[2].textContent]));
    const table = Object.fromEntries(rows.map(([k, v]) => [k, digits(v)]));
    assert.equal(digits(await page.locator("table.accounts tfoot tr").first().locator("td").nth(2).innerText()), Object.values(table).reduce((a, b) => a + b, 0));
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

describe("what is said at the top and in tables", () => {
  it("is what the document has: the answer's numbers", async () => {
    for (const name of ["leak", "family", "worker"]) {
      const page = await open(browser, pages[name]);
      const d = documentOf(pages[name]).runs[0];
      const told = Object.fromEntries(await page.locator(".answer .numbers > div").evaluateAll(list => list.map(e => [e.children[0].textContent, [e.children[1].firstChild.textContent, e.querySelector("small")?.textContent ?? ""]])));
      const several = name !== "leak"; // there a shell or shim may have started it, no more
      assert.equal(told[several ? "Peak of the main process" : "Peak"][0], amount(d.facts.peak));
      const finding = d.findings.find(f => f.sets_verdict);
      assert.deepEqual(told[`Grows, ${finding.each}`], [`+${amount(finding.rate)}`, `seen over ${finding.seen_over}`]);
      const end = d.facts.last_round?.rss ?? d.facts.end;
      assert.deepEqual(told[d.facts.last_round ? `After the last ${d.facts.last_round.name}` : "At the end"], [amount(end), `${end > d.facts.baseline ? "+" : ""}${amount(end - d.facts.baseline)} since the start`]);
      if (finding.forecast) assert.equal(told[`Limit of ${amount(finding.forecast.bytes)}`][1], finding.forecast.round || "what this machine has free");
      if (several) {
        const [[t]] = query(name, "SELECT max(rss) FROM tree_series WHERE processes > 1");
        const key = Object.keys(told).find(k => k.startsWith("Peak of all"));
        assert.equal(told[key][0], amount(t));
      }
      await page.context().close();
    }
  });

  it("is what the file has: peaks of processes", async () => {
    const page = await open(browser, pages.family);
    const rows = await page.locator("table.processes tbody tr").evaluateAll(list => list.map(r => [Number(r.children[0].textContent.match(/ (\d+)/)[1]), r.children[1].title]));
    assert.equal(rows.length, 3);
    for (const [pid, tip] of rows) {
      const [[peak]] = query("family", `SELECT max(b) FROM (SELECT sum(resident) b FROM process_series JOIN processes p ON p.id = process JOIN spaces s ON s.id = space WHERE pid = ${pid} AND s.name IN ('host', 'shared') GROUP BY t)`);
      assert.equal(digits(tip), peak);
    }
    await page.context().close();
  });

  it("is what the JSON has: two runs compared", async () => {
    const told = JSON.parse(run(process.env.MILLPOND, ["report", "leak.pond", "flat.pond", "--json", "-"]));
    const page = await open(browser, pages.diff);
    const rows = Object.fromEntries(await page.locator("table.both tbody tr").evaluateAll(list => list.map(r => [r.children[0].textContent, [...r.children].slice(1).map(c => c.title || c.firstElementChild?.title || c.textContent)])));
    assert.deepEqual(rows.Peak.map(digits), [told.before.peak_rss, told.after.peak_rss, told.after.peak_rss - told.before.peak_rss]);
    assert.deepEqual(rows["After the last round"].slice(0, 2).map(digits), [told.before.last_round_rss, told.after.last_round_rss]);
    assert.deepEqual(rows.Verdict.slice(0, 2), [told.before.verdict, told.after.verdict]);
    const changes = (await page.locator("table.places").first().locator("tbody tr td:first-child span").evaluateAll(list => list.map(e => e.title))).map(digits);
    assert.deepEqual(changes.slice(0, 10), told.places.slice(0, 10).map(p => Math.trunc(p.bytes_after - p.bytes_before)));
    await page.context().close();
  });

  it("has what may be off beside every estimate, and digits alone nowhere", async () => {
    const page = await open(browser, pages.leak);
    const d = documentOf(pages.leak).runs[0];
    assert.ok(d.sites.doubt.some(v => v > 0));
    const cells = await page.locator("table.places tbody tr").evaluateAll(list => list.map(r => [r.children[0].title, r.children[0].textContent]));
    assert.ok(cells.some(([tip, text]) => /±.*estimated/.test(tip) && /±/.test(text)), JSON.stringify(cells.slice(0, 5)));
    const gutter = await page.locator("#code td.amount").evaluateAll(list => list.map(e => [e.title, e.textContent]).filter(([, text]) => text));
    assert.ok(gutter.some(([tip, text]) => /± .*estimated/.test(tip) && /±/.test(text)), JSON.stringify(gutter.slice(0, 5)));
    await page.locator("#sizes summary").click();
    const sizes = await page.locator("table.sizes tbody tr td:nth-child(3)").evaluateAll(list => list.map(e => e.title));
    assert.deepEqual(sizes.map(t => t.includes("±")), d.sizes.bytes.map((b, i) => [b, d.sizes.error[i]]).slice(d.sizes.bytes.findIndex(b => b > 0), d.sizes.bytes.findLastIndex(b => b > 0) + 1).map(([, e]) => e >= 1));
    await page.context().close();
  });
});

describe("two runs", () => {
  it("have a chart that is walked by keyboard and leaves the page", async () => {
    const page = await open(browser, pages.diff);
    await page.locator("#both .chart").focus();
    await page.keyboard.press("End");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    assert.match(await page.locator("#both p.at").innerText(), /^At [\d.]+ s: before [\d.]+ [KM]iB, after [\d.]+ [KM]iB$/);
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", {name: "Save the chart of both as SVG"}).click()]);
    const text = readFileSync(await file.path()).toString();
    assert.match(text, /<polyline/);
    assert.ok(!/var\(|<script/.test(text));
    assert.deepEqual(page.faults, []);
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
    await page.locator("button[aria-pressed=true]", {hasText: "A to B"}).waitFor();
    await page.locator(".icicle .grow").first().waitFor();
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
    // samples are estimates: none of their digits is called exact
    assert.match(await page.locator("table.accounts thead").innerText(), /Give or take/i);
    for (const cell of await texts(page, "table.accounts tbody td:nth-child(3)")) assert.match(cell, /^(± .* at most|0 B)$/);
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
    assert.equal(await page.getByRole("button", {name: "Show all", exact: true}).count(), 1);
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
    await page.locator("#plan").getByRole("button", {name: /^Show all/}).last().click();
    assert.ok((await page.locator("table.layers tbody tr").count()) > 50);
    await page.context().close();
  });
});

describe("a program with children and threads", () => {
  it("shows every process, and all of them together", async () => {
    const page = await open(browser, pages.family);
    assert.equal(await page.locator("#time button[aria-pressed=true]").first().innerText(), "By process");
    const rows = (await page.locator("table.accounts tbody tr td:nth-child(3)").allInnerTexts()).map(digits);
    assert.equal(rows.length, 3);
    assert.equal(rows.reduce((a, b) => a + b, 0), digits(await page.locator("table.accounts tfoot td").nth(2).innerText()));
    const [[most]] = query("family", "SELECT max(rss) FROM tree_series WHERE processes = 3");
    assert.ok((await page.locator("#measured").innerText()).includes(most.toLocaleString("en-US")));
    assert.match(await page.locator(".answer .numbers").innerText(), /Peak of all 3 together/);
    const table = await texts(page, "table.processes tbody tr");
    for (const [pid] of query("family", "SELECT pid FROM processes WHERE name = 'python3' AND command IS NOT NULL")) assert.ok(table.some(t => t.includes(String(pid))), `${pid} is listed`);
    const choice = page.locator("#holders").getByLabel("Process", {exact: true});
    await choice.selectOption({index: 1});
    assert.match((await texts(page, "table.places tbody tr"))[0], /family\.py:\d+ hold/);
    // one choice for all that is told of one process
    const told = documentOf(pages.family).runs[0].processes[1];
    for (const section of ["#code", "#sizes"]) assert.equal(await page.locator(section).getByLabel("Process", {exact: true}).inputValue(), String(told.pid));
    const kept = (await page.locator("#code td:nth-child(3)[title]").evaluateAll(list => list.map(d => d.title))).map(digits);
    assert.equal(kept.reduce((a, b) => a + b, 0), summed(told.story.lines.kept).reduce((a, b) => a + b, 0));
    await page.locator("#sizes summary").click();
    const sizes = (await page.locator("table.sizes tbody td:nth-child(3)").evaluateAll(list => list.map(d => d.title))).map(digits);
    const [[all]] = query("family", `SELECT sum(bytes) FROM sizes WHERE process = ${told.process}`);
    assert.equal(sizes.reduce((a, b) => a + b, 0), all);
    await page.getByRole("button", {name: "By account"}).click();
    assert.equal(await page.locator("#time").getByLabel("Process", {exact: true}).inputValue(), String(told.pid));
    const foot = digits(await page.locator("table.accounts tfoot tr").first().locator("td").nth(2).innerText());
    assert.ok(query("family", `SELECT rss FROM marks WHERE process = ${told.process}`).some(([rss]) => rss === foot), "the accounts are the child's");
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });

  it("can be looked at by thread, and by what lived for a moment", async () => {
    const page = await open(browser, pages.family);
    await page.getByRole("group", {name: "Of the whole run"}).getByRole("button", {name: "Temporary"}).click();
    assert.match((await texts(page, "table.places tbody tr"))[0], /churn/);
    await page.getByLabel("Thread", {exact: true}).selectOption({label: "main thread"});
    assert.ok(!(await texts(page, "table.places tbody tr")).some(t => /churn/.test(t)));
    await page.getByRole("group", {name: "Which moment"}).getByRole("button", {name: "Peak"}).click();
    assert.match((await texts(page, "table.places tbody tr"))[0], /hold/);
    await page.locator("#sizes summary").click();
    const shown = (await page.locator("table.sizes tbody td:nth-child(3)").evaluateAll(list => list.map(d => d.title))).map(digits);
    const [[bytes]] = query("family", "SELECT sum(bytes) FROM sizes");
    assert.equal(shown.reduce((a, b) => a + b, 0), bytes);
    await page.context().close();
  });
});

describe("a program whose child leaks, itself flat", () => {
  it("is shown by process, and every chart of the finding is the child's", async () => {
    const page = await open(browser, pages.worker);
    const data = documentOf(pages.worker).runs[0];
    const finding = data.findings.find(f => f.sets_verdict);
    const child = data.processes.find(p => p.process === finding.process);
    assert.ok(!child.main && data.verdict === "leak", data.sentence);
    const tree = Math.max(...summed(data.tree.rss));
    assert.ok(tree < 1.25 * data.facts.peak, `all together hold little more: ${tree} of ${data.facts.peak}`);
    assert.equal(await page.locator("#time button[aria-pressed=true]").first().innerText(), "By process");
    // memory after every round: from the child's first to its last
    const live = summed(child.story.periods.live).some(v => v > 0) ? summed(child.story.periods.live) : summed(child.story.periods.rss);
    const known = live.filter(v => v !== null);
    assert.ok(known.at(-1) - known[0] > 24 * 2 ** 20);
    const label = await page.locator("#findings article").first().locator("figure svg").first().getAttribute("aria-label");
    assert.ok(label.startsWith(`From ${amount(known[0])} to ${amount(known.at(-1))} over`), label);
    assert.match(await page.locator("#findings article").first().innerText(), new RegExp(`in python3 ${child.pid}`));
    const cohorts = page.locator("#findings article").first().locator("svg[aria-label^='Live bytes by age']");
    assert.equal(await cohorts.getAttribute("aria-label"), `Live bytes by age, oldest first: ${finding.cohorts.bytes.map(amount).join(", ")}`);
    // its own line, with the forecast of its own
    await page.getByRole("button", {name: "By account"}).click();
    assert.equal(await page.locator("#time").getByLabel("Process", {exact: true}).inputValue(), String(child.pid));
    assert.equal(await page.getByRole("button", {name: "Up to the limit"}).count(), finding.forecast ? 1 : 0);
    assert.match((await texts(page, "table.places tbody tr"))[0], /worker\.py/);
    // of the main process no forecast is drawn: it is flat
    const main = data.processes.find(p => p.main);
    await page.locator("#time").getByLabel("Process", {exact: true}).selectOption(String(main.pid));
    assert.equal(await page.getByRole("button", {name: "Up to the limit"}).count(), 0);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
});

describe("a run on a GPU", () => {
  for (const name of ["gpu", "device"])
    it(`${name} draws what pools had of it, and the finding's rounds are the pool's`, async () => {
      const page = await open(browser, pages[name]);
      const data = documentOf(pages[name]).runs[0];
      const finding = data.findings.find(f => f.sets_verdict);
      assert.equal(finding.space, "gpu:0");
      const pool = data.pools.find(p => p.process === finding.process && p.space === finding.space);
      const used = summed(pool.in_use);
      const text = await page.locator("#gpu").innerText();
      assert.ok(!text.includes("not told by line"), text);
      assert.equal(await page.locator("#gpu figure").count(), data.pools.length);
      const captions = await texts(page, "#gpu figcaption");
      assert.ok(captions.some(c => c.includes(`${pool.pool} on gpu:0 in ${pool.name} ${pool.pid}`) && c.includes(`${amount(used.at(-1))} in use in the end, ${amount(pool.peak)} at most`)), captions.join("; "));
      const rounds = summed(pool.periods.rss);
      const slope = page.locator("#findings article").first().locator("figure svg").first();
      assert.ok((await slope.getAttribute("aria-label")).startsWith(`From ${amount(rounds[0])} to ${amount(rounds.at(-1))} over`));
      assert.match(await page.locator("#findings article").first().locator("figcaption").first().innerText(), /^In use of gpu:0 after every/);
      // the line of the host's memory has no forecast of the GPU's
      assert.equal(await page.getByRole("button", {name: "Up to the limit"}).count(), 0);
      assert.match(await page.locator(".answer .numbers").innerText(), new RegExp(`Most in use of gpu:0\\s+${amount(pool.peak)}`, "i"));
      const shown = (await page.locator("table.gpus tbody td:nth-child(4)").evaluateAll(list => list.map(d => d.title))).map(digits);
      assert.deepEqual(shown, query(name, "SELECT coalesce(by_tree_peak, used_peak) FROM gpus ORDER BY device").map(([v]) => v));
      assert.deepEqual(page.faults, []);
      await page.locator("#gpu").screenshot({path: join(shots, `${name}-pools.png`)});
      await page.context().close();
    });

  it("of which the driver alone tells says so", async () => {
    run("python3", ["-c", `
import shutil, sqlite3
shutil.copy("device.pond", "driver.pond")
db = sqlite3.connect("driver.pond")
db.execute("DELETE FROM pool_series")
db.commit()
`]);
    const page = await open(browser, makePage("driver"));
    assert.match(await page.locator("#gpu").innerText(), /Totals from the driver: what grows on a GPU is not told by line/);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
});

describe("where the growth went", () => {
  it("is drawn and written: the rows of the table add up to its foot, which is what the JSON says", async () => {
    for (const name of ["leak", "family"]) {
      const page = await open(browser, pages[name]);
      const told = verdict(name).accounts[0];
      const rows = (await page.locator("table.growth tbody tr td:nth-child(4)").evaluateAll(list => list.map(d => d.title))).map(digits);
      assert.equal(rows.length, told.parts.length);
      assert.equal(rows.reduce((a, b) => a + b, 0), digits(await page.locator("table.growth tfoot td span").getAttribute("title")));
      assert.equal(digits(await page.locator("table.growth tfoot td span").getAttribute("title")), Math.round(told.growth));
      // a bar for each part and one for all, and the drawing can be heard
      assert.equal(await page.locator("#growth svg rect").count(), told.parts.length + 1);
      assert.match(await page.locator("#growth svg").getAttribute("aria-label"), /grew by \+/);
      await page.locator("#growth").screenshot({path: join(shots, `${name}-growth.png`)});
      assert.deepEqual(page.faults, []);
      await page.context().close();
    }
  });

  it("can be chosen by process and space, by keyboard, and the choice is in the address", async () => {
    const page = await open(browser, pages.family);
    const list = page.locator("#growth select");
    assert.match(await page.locator("#growth .section-head").innerText(), /All processes together grew by/);
    await list.focus();
    await page.keyboard.press("ArrowDown");
    assert.match(await page.locator("#growth .section-head").innerText(), /\(main\): its own memory and files grew by/);
    await page.waitForFunction(() => location.hash.includes("growth=1"));
    await page.context().close();
  });
});

describe("your code", () => {
  it("is there as it was recorded, with what each line allocated, freed and kept", async () => {
    const page = await open(browser, pages.leak);
    const line = page.locator("#code tr.blamed");
    assert.match(await line.innerText(), /19[\s\S]*self\.seen\.append\(batch\)/);
    const lines = documentOf(pages.leak).runs[0].lines;
    const kept = (await page.locator("#code td:nth-child(3)[title]").evaluateAll(list => list.map(d => d.title))).map(digits);
    const told = lines.kept.reduce((out, d) => [...out, (out[out.length - 1] ?? 0) + d], []);
    assert.equal(kept.reduce((a, b) => a + b, 0), told.reduce((a, b) => a + b, 0));
    await page.context().close();
  });
});

describe("tables", () => {
  it("sort by any column, by mouse and by keyboard, and say so", async () => {
    const page = await open(browser, pages.leak);
    const head = page.locator("table.places th", {hasText: "Ever allocated"});
    await head.getByRole("button").click();
    assert.equal(await head.getAttribute("aria-sort"), "descending");
    const column = async () => (await page.locator("table.places tbody tr td:nth-child(3)").evaluateAll(list => list.map(d => d.title))).map(digits);
    const down = await column();
    assert.deepEqual(down, [...down].sort((a, b) => b - a));
    await head.getByRole("button").focus();
    await page.keyboard.press("Enter");
    assert.equal(await head.getAttribute("aria-sort"), "ascending");
    const up = await column();
    assert.deepEqual(up, [...up].sort((a, b) => a - b));
    await page.context().close();
  });

  it("of buffers are searched and sorted", async () => {
    const page = await open(browser, pages.resnet);
    await page.getByRole("button", {name: "All buffers"}).click();
    const [[count]] = query("resnet", "SELECT count(*) FROM plan_buffers WHERE program = 1");
    const told = page.locator("#plan [role=status]", {hasText: "buffer"}).last();
    assert.equal(digits(await told.innerText()), count);
    await page.getByLabel("Search buffers").fill("gradients conv");
    const [[matching]] = query("resnet", "SELECT count(*) FROM plan_buffers b JOIN accounts a ON a.id = account WHERE program = 1 AND (lower(b.name || ' ' || a.name || ' ' || layer) LIKE '%gradients%') AND (lower(b.name || ' ' || a.name || ' ' || layer) LIKE '%conv%')");
    assert.equal(digits(await told.innerText()), matching);
    await page.locator("table.alive th", {hasText: "Calls alive"}).getByRole("button").click();
    const life = (await page.locator("table.alive tbody td:nth-child(7)").allInnerTexts()).map(Number);
    assert.deepEqual(life, [...life].sort((a, b) => b - a));
    await page.context().close();
  });
});

describe("what leaves the page", () => {
  const saved = async (page, act) => {
    const [file] = await Promise.all([page.waitForEvent("download"), act()]);
    return {name: file.suggestedFilename(), bytes: readFileSync(await file.path())};
  };
  it("is the chart as SVG and PNG, the calls, and tables as CSV and text", async () => {
    const page = await open(browser, pages.leak, {theme: "dark", permissions: ["clipboard-read", "clipboard-write"]});
    const svg = await saved(page, () => page.getByRole("button", {name: "Save the chart as SVG"}).click());
    assert.equal(svg.name, "millpond-memory.svg");
    const text = svg.bytes.toString();
    assert.ok(!/var\(|<script|<foreignObject/.test(text), "it needs neither our style sheet nor anything else");
    assert.match(text, /malloc, in use/);
    const png = await saved(page, () => page.getByRole("button", {name: "Save the chart as PNG"}).click());
    assert.deepEqual([...png.bytes.subarray(1, 4)], [...Buffer.from("PNG")]);
    assert.ok(png.bytes.length > 10000);
    const calls = await saved(page, () => page.getByRole("button", {name: "Save the calls as SVG"}).click());
    assert.match(calls.bytes.toString(), /leaky_training\.py/);
    const csv = await saved(page, () => page.getByRole("button", {name: "Save places as CSV"}).click());
    const lines = csv.bytes.toString().trim().split("\r\n");
    assert.match(lines[0], /^Alive,Share,Ever allocated/);
    const sum = lines.slice(1).reduce((all, l) => all + Number(l.split(",")[0]), 0);
    assert.equal(sum, digits(await page.locator("table.places tfoot td span").first().getAttribute("title")));
    await page.getByRole("button", {name: "Copy the fix"}).click();
    assert.ok((await page.evaluate(() => navigator.clipboard.readText())).length > 5);
    await page.getByRole("button", {name: "Copy places"}).click();
    assert.equal((await page.evaluate(() => navigator.clipboard.readText())).split("\n").length, lines.length);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
});

describe("the view", () => {
  it("is in the address, and a reload or a link shows the same", async () => {
    const page = await open(browser, pages.leak);
    await page.getByRole("button", {name: "By line of code"}).click();
    const box = await chartBox(page);
    await page.mouse.move(box.x + box.width * 0.3, box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 80, {steps: 6});
    await page.mouse.up();
    await page.getByRole("button", {name: "Peak", exact: true}).click();
    await page.getByLabel("Search places").fill("leaky");
    await page.locator("table.places th", {hasText: "Ever allocated"}).getByRole("button").click();
    await page.waitForFunction(() => location.hash.includes("sort.places=-allocated"));
    const seen = async p => ({
      by: await p.locator("#time .segments").first().locator("button[aria-pressed=true]").innerText(), zoomed: await p.locator(".chart").getAttribute("data-zoomed"),
      at: await p.locator("#holders .segments").first().locator("button[aria-pressed=true]").innerText(), rows: await texts(p, "table.places tbody tr"), q: await p.getByLabel("Search places").inputValue(),
    });
    const before = await seen(page);
    assert.deepEqual([before.by, before.zoomed, before.at, before.q], ["By line of code", "true", "Peak", "leaky"]);
    const hash = await page.evaluate(() => location.hash);
    await page.reload();
    await page.waitForSelector("main[data-ready]");
    assert.deepEqual(await seen(page), before);
    await page.context().close();
    const other = await open(browser, pages.leak, {hash});
    assert.deepEqual(await seen(other), before);
    await other.getByRole("link", {name: "Measured"}).click();
    await other.waitForFunction(() => location.hash.includes("s=measured"));
    assert.ok((await other.evaluate(() => location.hash)).includes("q=leaky"), "going to a section keeps the view");
    await other.context().close();
  });

  it("keeps what is compared, the way to the limit, what dragging does, the call that is opened, and lists that are shown whole", async () => {
    const page = await open(browser, pages.leak);
    await page.getByRole("button", {name: "Up to the limit"}).click();
    await page.getByRole("button", {name: "Drag to compare"}).click();
    await page.locator("#time .chart").focus();
    for (let i = 0; i < 4; ++i) await page.keyboard.press("ArrowRight");
    await page.keyboard.press("a");
    await page.locator("#holders").getByRole("button", {name: "Peak", exact: true}).click();
    const all = page.locator("#holders").getByRole("button", {name: /^Show all \d/});
    const more = (await all.count()) > 0;
    if (more) await all.click();
    await page.locator(".icicle button.user").nth(1).click();
    await page.waitForFunction(() => ["far=limit", "drag=compare", "ab=", "focus="].every(k => location.hash.includes(k)));
    const seen = async p => ({
      far: await p.getByRole("button", {name: "Up to the limit"}).getAttribute("aria-pressed"), drag: await p.getByRole("button", {name: "Drag to compare"}).getAttribute("aria-pressed"),
      between: await p.locator(".between").innerText(), root: await p.locator(".icicle button").first().innerText(), rows: await p.locator("table.places tbody tr").count(),
    });
    const before = await seen(page);
    assert.deepEqual([before.far, before.drag], ["true", "true"]);
    assert.ok(!/^all/.test(before.root), before.root);
    await page.reload();
    await page.waitForSelector("main[data-ready]");
    await page.waitForTimeout(80);
    assert.deepEqual(await seen(page), before);
    await page.context().close();
  });

  it("keeps process, thread, file, call and the buffers that are searched for", async () => {
    const page = await open(browser, pages.family);
    await page.locator("#holders").getByLabel("Process", {exact: true}).selectOption({index: 2});
    const pid = await page.locator("#holders").getByLabel("Process", {exact: true}).inputValue();
    await page.waitForFunction(() => location.hash.includes("process="));
    await page.reload();
    await page.waitForSelector("main[data-ready]");
    for (const section of ["#holders", "#code", "#sizes"]) assert.equal(await page.locator(section).getByLabel("Process", {exact: true}).inputValue(), pid);
    const first = documentOf(pages.family).runs[0].processes[0].pid;
    await page.locator("#holders").getByLabel("Process", {exact: true}).selectOption(String(first));
    await page.getByLabel("Thread", {exact: true}).selectOption({label: "main thread"});
    const thread = await page.getByLabel("Thread", {exact: true}).inputValue();
    await page.waitForFunction(() => location.hash.includes("thread="));
    await page.reload();
    await page.waitForSelector("main[data-ready]");
    assert.equal(await page.getByLabel("Thread", {exact: true}).inputValue(), thread);
    await page.context().close();

    // of two files the second
    run("python3", ["-c", `
import shutil, sqlite3
shutil.copy("family.pond", "files.pond")
db = sqlite3.connect("files.pond")
db.execute("UPDATE frames SET file = '/elsewhere/churning.py' WHERE user AND function = 'churn'")
db.commit()
`]);
    const files = await open(browser, makePage("files"));
    const list = files.getByLabel("File", {exact: true});
    await list.selectOption({index: 1});
    const file = await list.inputValue();
    await files.waitForFunction(() => location.hash.includes("file="));
    await files.reload();
    await files.waitForSelector("main[data-ready]");
    assert.equal(await list.inputValue(), file);
    await files.context().close();

    const plan = await open(browser, pages.resnet);
    await plan.locator("#call").focus();
    await plan.keyboard.press("Home");
    await plan.getByRole("button", {name: "All buffers"}).click();
    await plan.getByLabel("Search buffers").fill("gradients conv");
    await plan.waitForFunction(() => ["call=", "bq=", "buffers="].every(k => location.hash.includes(k)));
    const shown = async () => [await plan.locator("#call").inputValue(), await plan.getByLabel("Search buffers").inputValue(), await plan.locator("#plan [role=status]", {hasText: "buffer"}).last().innerText()];
    const before = await shown();
    await plan.reload();
    await plan.waitForSelector("main[data-ready]");
    assert.deepEqual(await shown(), before);
    await plan.context().close();
  });

  it("of a stranger's address is only ever a choice or text", async () => {
    const page = await open(browser, pages.leak, {hash: "#focus=peak:1.2.x&far=limit&drag=1&q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&by=nothing&z=9-1&at=%3Cscript%3E&thread=__proto__&process=99&sort.places=-constructor&call=1e9&file=/etc/passwd"});
    assert.deepEqual(page.faults, []);
    assert.equal(await page.locator("main img").count(), 0);
    assert.match(await page.locator("#holders .empty").innerText(), /No place matches/);
    await page.context().close();
  });

  it("can be changed by a finger: sideways it zooms, a tap reads", async () => {
    const page = await open(browser, pages.leak, {width: 390, height: 844, hasTouch: true, isMobile: true});
    const box = await chartBox(page);
    const touch = await page.context().newCDPSession(page);
    const at = x => [{x: box.x + box.width * x, y: box.y + 90}];
    await touch.send("Input.dispatchTouchEvent", {type: "touchStart", touchPoints: at(0.3)});
    for (const x of [0.35, 0.45, 0.55, 0.65]) await touch.send("Input.dispatchTouchEvent", {type: "touchMove", touchPoints: at(x)});
    await touch.send("Input.dispatchTouchEvent", {type: "touchEnd", touchPoints: []});
    await page.waitForFunction(() => document.querySelector(".chart").dataset.zoomed === "true");
    const [from, to] = (await page.evaluate(() => new Promise(done => setTimeout(() => done(location.hash), 400)))).match(/z=(\d+)-(\d+)/).slice(1).map(Number);
    assert.ok(to > from);
    await page.touchscreen.tap(box.x + box.width * 0.5, box.y + 90);
    await page.waitForFunction(() => document.querySelector(".at").textContent.startsWith("At ") && !document.querySelector(".at").textContent.startsWith("At the "));
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
});

describe("a peak that no sample met", () => {
  it("is a line of its own with the kernel's number, on the screen's drawing for paper too", async () => {
    const d = documentOf(pages.spike).runs[0];
    const [[sampled]] = query("spike", "SELECT max(rss) FROM os_series");
    assert.ok(d.facts.peak > 300 * 2 ** 20 && sampled < d.facts.peak * 0.9, `${sampled} of ${d.facts.peak}`);
    const page = await open(browser, pages.spike);
    assert.match(await page.locator("#time .at").innerText(), new RegExp(`At the highest that was sampled[\\s\\S]*the kernel counted up to ${amount(d.facts.peak)}`));
    const label = page.locator("#time .on-paper svg text", {hasText: "as the kernel counted"});
    await label.waitFor({state: "attached"});
    assert.equal(await label.textContent(), `peak, as the kernel counted: ${amount(d.facts.peak)}`);
    await page.context().close();
  });
});

describe("the chart tells what is ours", () => {
  it("marks where Millpond itself tried gc.collect and malloc_trim", async () => {
    const probed = ["leak", "flat", "cache", "family"].find(name => documentOf(pages[name]).runs[0].probes.length > 0); // a quick machine may be through the first before there is one
    assert.ok(probed);
    const probes = documentOf(pages[probed]).runs[0].probes;
    const page = await open(browser, pages[probed]);
    assert.match(await page.locator("#time").innerText(), new RegExp(`${probes.length} times? Millpond itself tried`));
    assert.equal(await page.locator("#time .on-paper path[fill='var(--probe)']").count(), probes.length);
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
    db.execute("INSERT INTO os_series (t, phase, space, rss, heap_in_use, heap_free, explained) VALUES (?, ?, 1, ?, ?, ?, ?)", (t + 0.19, phase, row[0] + i % 7 * 4096, *row[1:]))
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
