// --live in a real browser: the page of a run that goes on, through a reload, to its end.
import assert from "node:assert/strict";
import {once} from "node:events";
import {mkdirSync, writeFileSync} from "node:fs";
import {request} from "node:http";
import {join} from "node:path";
import {after, before, it} from "node:test";
import {axe, launch, open, query, run, shots, start, verdict, work} from "./support.mjs";

let browser;
before(async () => {
  mkdirSync(shots, {recursive: true});
  browser = await launch();
});
after(() => browser?.close());

// They go on until the test has seen what it wants, because a busy browser takes its time; not forever, should the test fail before.
const slow = `
import os, time
kept, epoch = [], 0
while epoch < 24 or epoch < 600 and not os.path.exists("seen"):
    epoch += 1
    kept.append(b"x" * 2_000_000)
    time.sleep(0.4)
    print("epoch", epoch, flush=True)
`;
const silent = `
import os, time
end = time.monotonic() + 240
while time.monotonic() < end and not os.path.exists("seen"): time.sleep(0.05)
`;
const seen = () => writeFileSync(join(work, "seen"), "");
const patience = 120000; // ms: how long something that must come is waited for

/** The address that was told on standard error. */
function address(child) {
  return new Promise((told, failed) => {
    let text = "";
    child.stderr.on("data", part => {
      text += part;
      const found = text.match(/live at (http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/)/);
      if (found) told(found[1]);
    });
    child.stderr.on("end", () => failed(new Error(`no address in: ${text}`)));
  });
}

const get = (url, headers = {}) =>
  new Promise((done, failed) => {
    const q = request(url, {headers}, reply => {
      let body = "";
      reply.on("data", part => (body += part)).on("end", () => done({status: reply.statusCode, body, type: reply.headers["content-type"]}));
    });
    q.on("error", failed).end();
  });

it("watch --live: the page grows with the run, survives a reload, and ends with it", async () => {
  run("rm", ["-f", "live.pond", "seen"]);
  const child = start(["watch", "--quiet", "--live", "-o", "live.pond", "--", "python3", "-c", slow]);
  const ended = once(child, "exit");
  const url = await address(child);
  child.stdout.resume();
  const page = await open(browser, url);
  const seconds = async () => Number((await page.locator(".live-dot").innerText()).match(/live, ([\d.]+)/)?.[1] ?? NaN);
  const first = await seconds();
  await page.waitForFunction(t => Number(document.querySelector(".live-dot").textContent.match(/live, ([\d.]+)/)?.[1]) > t + 1, first, {timeout: patience});
  await page.reload();
  await page.waitForSelector("main[data-ready]");
  assert.ok((await seconds()) >= first);
  await page.screenshot({path: join(shots, "live.png")});
  assert.deepEqual(await axe(page), [], "while it goes on");
  // the server goes with the command: the page can be kept as a file, which needs neither
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", {name: "Save this page as one file"}).click()]);
  await saved.saveAs(join(work, "live-saved.html"));
  const kept = await open(browser, join(work, "live-saved.html"));
  assert.deepEqual(kept.faults, []);
  assert.deepEqual(await axe(kept), []);
  assert.match(await kept.locator("#time .at").innerText(), /resident/);
  await kept.context().close();
  const metrics = await get(`${url}metrics`);
  assert.equal(metrics.status, 200);
  assert.match(metrics.type, /openmetrics-text/);
  assert.match(metrics.body, /^millpond_resident_bytes \d+$/m);
  assert.ok(metrics.body.endsWith("# EOF\n"));
  // refused: wrong token, foreign host, foreign origin, traversal
  assert.equal((await get(url.replace(/[0-9a-f]{32}/, "0".repeat(32)))).status, 403);
  assert.equal((await get(`${url}data`, {host: "localhost:9000"})).status, 200); // what ssh -L 9000:localhost:PORT sends
  assert.equal((await get(url, {host: "evil.example"})).status, 403);
  assert.equal((await get(`${url}data`, {origin: "http://evil.example"})).status, 403);
  assert.equal((await get(`${url}..%2f..%2fetc/passwd`)).status, 404);
  seen();
  await page.waitForFunction(() => document.querySelector(".live-dot").textContent === "the run is over", null, {timeout: patience});
  assert.match(await page.locator(".answer .badge").innerText(), /Leak/);
  assert.match(await page.locator(".notice").innerText(), /The run is over\. This page can be loaded again until it is closed[\s\S]*millpond report live\.pond -o report\.html/);
  assert.deepEqual(await axe(page), [], "when it is over");
  assert.equal((await ended)[0], 0);
  assert.deepEqual(page.faults.filter(f => !f.includes("503")), []); // before the first look there is nothing to show yet
  assert.equal(verdict("live").verdict, "leak");
  assert.ok(query("live", "SELECT count(*) FROM marks")[0][0] > 10);
  // the command has ended, and the page can still be loaded again, until it is closed
  await page.reload();
  await page.waitForFunction(() => document.querySelector(".live-dot")?.textContent === "the run is over", null, {timeout: patience});
  assert.match(await page.locator(".answer .badge").innerText(), /Leak/);
  await page.context().close();
  const refused = () => get(url).then(() => false, () => true);
  const until = Date.now() + patience;
  while (!(await refused()) && Date.now() < until) await new Promise(done => setTimeout(done, 200));
  assert.ok(await refused(), "the server is gone");
});

it("watch --live: in its first seconds it says that it watches, not that it is unsure, and nothing is 0", async () => {
  run("rm", ["-f", "live-early.pond", "seen"]);
  const child = start(["watch", "--quiet", "--live", "-o", "live-early.pond", "--", "python3", "-c", silent]);
  const ended = once(child, "exit");
  const url = await address(child);
  child.stdout.resume();
  const page = await open(browser, url);
  assert.match(await page.locator(".answer .badge").innerText(), /Watching/);
  const said = await page.locator(".answer").innerText();
  assert.match(said, /Watching… .* so far/);
  assert.ok(!/Unsure|it may be a leak|\b0 B\b/.test(said), said);
  assert.deepEqual(await axe(page), [], "while it watches");
  seen();
  await page.context().close();
  assert.equal((await ended)[0], 0);
});

it("train --live: the same, and readers that do not read hold up nothing", async () => {
  run("rm", ["-f", "live-train.pond"]);
  const child = start(["train", "mlp_784", "--synthetic", "--epochs", "400", "--steps-per-epoch", "8", "--live", "--run", "live-train.pond"]);
  const ended = once(child, "exit");
  const url = await address(child);
  child.stdout.resume();
  // twenty that ask and never read an answer
  const holding = [];
  for (let i = 0; i < 20; ++i) {
    const q = request(`${url}${i % 2 ? "events" : ""}`, reply => reply.pause());
    q.on("error", () => {});
    q.end();
    holding.push(q);
  }
  const page = await open(browser, url);
  await page.waitForFunction(() => document.querySelector(".live-dot").textContent === "the run is over", null, {timeout: 240000});
  assert.equal((await ended)[0], 0);
  assert.match(await page.locator("h1").innerText(), /flat/);
  assert.equal(query("live-train", "SELECT value FROM meta WHERE key = 'status'")[0][0], "ended");
  await page.context().close();
  holding.forEach(q => q.destroy()); // the server stays as long as somebody holds its events open
});
