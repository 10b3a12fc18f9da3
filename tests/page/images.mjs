// Makes the two pictures of the README again: node tests/page/images.mjs
import {mkdirSync, rmSync} from "node:fs";
import {join} from "node:path";
import {launch, makePage, millpond, open, run, source, work} from "./support.mjs";

mkdirSync(work, {recursive: true});
for (const name of ["readme-leak.pond", "readme-plan.pond"]) rmSync(join(work, name), {force: true});
run(millpond, ["watch", "--quiet", "-o", join(work, "readme-leak.pond"), "--", "python3", "examples/leaky_training.py"], {cwd: source});
run(millpond, ["train", "resnet50", "--synthetic", "--epochs", "2", "--steps-per-epoch", "1", "--run", "readme-plan.pond"]);
const browser = await launch();
const leak = await open(browser, makePage("readme-leak"), {width: 1000, height: 1040});
await leak.screenshot({path: join(source, "docs/images/report-leak.png")});
const plan = await open(browser, makePage("readme-plan"), {width: 1000, height: 900, theme: "dark"});
const box = await plan.locator("#plan").boundingBox();
const end = await plan.locator("#plan p.at").boundingBox();
await plan.screenshot({path: join(source, "docs/images/report-plan.png"), fullPage: true, clip: {x: box.x, y: box.y, width: box.width, height: end.y + end.height + 12 - box.y}});
await browser.close();
