// What the tests of the page share: run files that were really made, their pages, and a browser.
import {execFileSync, spawn} from "node:child_process";
import {existsSync, mkdirSync, readFileSync, rmSync} from "node:fs";
import {dirname, join, resolve} from "node:path";
import {fileURLToPath} from "node:url";
import {inflateSync} from "node:zlib";

export const here = dirname(fileURLToPath(import.meta.url));
export const source = resolve(process.env.MILLPOND_SOURCE_DIR ?? join(here, "../.."));
export const millpond = resolve(process.env.MILLPOND ?? join(source, "build/bin/millpond"));
export const work = join(resolve(process.env.MILLPOND_BUILD_DIR ?? join(source, "build")), "page");
export const shots = join(work, "screenshots");

const {chromium} = await import(join(source, "web/node_modules/playwright-core/index.mjs"));

export function run(command, args, options = {}) {
  return execFileSync(command, args, {cwd: work, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28, ...options});
}

/**
 * {name: run file}: a leak, a flat run, a cache, one with children and threads, one whose child alone leaks, one with a peak that no sample met, two that leak on a GPU (as they were
 * recorded there), and two of the engine. Made once for each run of the tests.
 */
export function makeRuns() {
  rmSync(work, {recursive: true, force: true});
  mkdirSync(shots, {recursive: true});
  const watch = (name, script) => run(millpond, ["watch", "--quiet", "-o", `${name}.pond`, "--", "python3", script]);
  watch("leak", join(source, "examples/leaky_training.py"));
  watch("flat", join(here, "programs/flat.py"));
  watch("cache", join(here, "programs/cache.py"));
  watch("family", join(here, "programs/family.py"));
  watch("worker", join(here, "programs/worker.py"));
  watch("spike", join(here, "programs/spike.py"));
  run("python3", ["-c", kUnmet]);
  for (const [name, recorded] of [["gpu", "gpu_two_processes"], ["device", "gpu_kept_hidden"]])
    run("python3", [join(here, "recorded.py"), join(source, `tests/verdict/recorded/${recorded}.json`), "leak.pond", `${name}.pond`]);
  run(millpond, ["train", "cnn_224", "--synthetic", "--epochs", "4", "--steps-per-epoch", "2", "--run", "cnn.pond"]);
  run(millpond, ["train", "resnet50", "--synthetic", "--epochs", "2", "--steps-per-epoch", "1", "--run", "resnet.pond"]);
  return ["leak", "flat", "cache", "family", "worker", "spike", "gpu", "device", "cnn", "resnet"];
}

// On a busy machine the program may be stopped in the middle of its moment, and a sample meets it: such samples go, so that none did.
const kUnmet = `
import sqlite3
db = sqlite3.connect("spike.pond")
for table, column in (("os_series", "rss"), ("process_series", "resident"), ("process_memory", "resident"), ("tree_series", "rss"), ("marks", "rss")):
    db.execute(f"DELETE FROM {table} WHERE {column} > 150 << 20")
db.commit()
`;

export function makePage(name, ...files) {
  run(millpond, ["report", ...(files.length ? files : [`${name}.pond`]), "-o", `${name}.html`]);
  return join(work, `${name}.html`);
}

export const verdict = name => JSON.parse(run(millpond, ["report", `${name}.pond`, "--json", "-"]));

/** Rows of a query on a run file, by another reader than ours. */
export function query(name, sql) {
  const script = "import json, sqlite3, sys; print(json.dumps(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall()))";
  return JSON.parse(run("python3", ["-c", script, `${name}.pond`, sql]));
}

export function chromiumPath() {
  for (const path of [process.env.CHROMIUM, join(source, ".deps/bin/chromium"), "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"])
    if (path && existsSync(path)) return path;
  return null;
}

export async function launch() {
  return chromium.launch({executablePath: chromiumPath(), args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"]});
}

/** A page from disk, ready. What it says on its console or asks of the network is in `faults`. */
export async function open(browser, file, {theme = "light", width = 1200, height = 900, scale = 1, hash = "", ...more} = {}) {
  const context = await browser.newContext({viewport: {width, height}, colorScheme: theme, deviceScaleFactor: scale, reducedMotion: "reduce", acceptDownloads: true, ...more});
  context.setDefaultTimeout(120000); // a busy machine takes its time
  const page = await context.newPage();
  page.faults = [];
  page.on("console", m => ["error", "warning"].includes(m.type()) && page.faults.push(`console: ${m.text()}`));
  page.on("pageerror", e => page.faults.push(`error: ${e.message}`));
  page.on("request", r => !/^(file|data|blob):/.test(r.url()) && !r.url().startsWith("http://127.0.0.1") && page.faults.push(`request: ${r.url()}`));
  page.on("dialog", d => {
    page.faults.push(`dialog: ${d.message()}`);
    d.dismiss();
  });
  await page.goto((file.startsWith("http") ? file : `file://${file}`) + hash);
  await page.waitForSelector("main[data-ready]");
  await page.waitForTimeout(80);
  return page;
}

const axeSource = readFileSync(join(source, "web/node_modules/axe-core/axe.min.js"), "utf8");

/** All that axe finds, whatever it calls it, one sentence each. */
export async function axe(page) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => window.axe.run(document, {resultTypes: ["violations"]}));
  return found.violations.flatMap(v => v.nodes.map(n => `${v.id} (${v.impact}): ${n.target.join(" ")}: ${n.any.concat(n.all, n.none).map(x => x.message).join("; ")}`));
}

/** The document in a page, as the page itself reads it. */
export function documentOf(file) {
  const packed = readFileSync(file, "utf8").match(/<script id="data"[^>]*>([^<]+)<\/script>/)[1];
  return JSON.parse(inflateSync(Buffer.from(packed, "base64")).toString());
}

export function start(args) {
  return spawn(millpond, args, {cwd: work, stdio: ["ignore", "pipe", "pipe"]});
}
