// First paint and the time of frames while a person works with the page, from Chromium's own trace: browser.mjs PAGE.html. Prints JSON.
import {existsSync} from "node:fs";
import {join} from "node:path";

const source = process.env.MILLPOND_SOURCE_DIR;
if (!existsSync(join(source, "web/node_modules/playwright-core/index.mjs"))) process.exit(77);
const {chromiumPath, launch} = await import(join(source, "tests/page/support.mjs"));
if (!chromiumPath()) process.exit(77);
const file = process.argv[2];
const browser = await launch();
const context = await browser.newContext({viewport: {width: 1200, height: 900}});

const paints = [];
for (let i = 0; i < 3; ++i) {
  const page = await context.newPage();
  await page.goto(`file://${file}`);
  await page.waitForSelector("#answer h1");
  await page.waitForSelector(".uplot canvas");
  paints.push(await page.evaluate(() => new Promise(done => requestAnimationFrame(() => done(performance.now()))))); // from navigation to the frame with the chart in it
  await page.close();
}

const page = await context.newPage();
await page.goto(`file://${file}`);
await page.waitForSelector("main[data-ready] .uplot canvas");
await page.waitForTimeout(500);

/** Times of the tasks of the page's own thread while something is done, by tracing. */
async function traced(act) {
  await browser.startTracing(page, {categories: ["devtools.timeline", "toplevel"]});
  await act();
  await page.waitForTimeout(100);
  const {traceEvents} = JSON.parse((await browser.stopTracing()).toString());
  const main = traceEvents.filter(e => e.name === "thread_name" && e.args?.name === "CrRendererMain").map(e => `${e.pid}/${e.tid}`);
  const tasks = traceEvents.filter(e => e.ph === "X" && e.name.endsWith("RunTask") && main.includes(`${e.pid}/${e.tid}`)).map(e => e.dur / 1000).filter(ms => ms > 0.5).sort((a, b) => a - b);
  if (tasks.length === 0) throw new Error("the trace has no tasks: nothing was measured");
  return {longest: tasks.at(-1) ?? 0, median: tasks[tasks.length >> 1] ?? 0, tasks: tasks.length};
}

const over = page.locator("#time .u-over");
await over.scrollIntoViewIfNeeded();
let box = await over.boundingBox();
const drag = async (from, to) => {
  await page.mouse.move(box.x + box.width * from, box.y + 90);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, box.y + 90, {steps: 12});
  await page.mouse.up();
};
const frames = {};
frames["hover"] = await traced(async () => {
  for (let i = 0; i <= 40; ++i) await page.mouse.move(box.x + (box.width * i) / 40, box.y + 90);
});
frames["zoom"] = await traced(() => drag(0.3, 0.7));
frames["whole run again"] = await traced(() => page.getByRole("button", {name: "Whole run"}).click());
await page.getByRole("button", {name: "Drag to compare"}).click();
frames["brush"] = await traced(() => drag(0.2, 0.8));
frames["search"] = await traced(() => page.getByLabel("Search places").fill("function12"));
await browser.close();
paints.sort((a, b) => a - b);
console.log(JSON.stringify({first_paint_ms: paints[1], frames_ms: frames}));
