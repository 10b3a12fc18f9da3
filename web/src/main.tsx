import {render} from "preact";
import {useEffect, useMemo, useState} from "preact/hooks";
import {Answer, runName} from "./Answer";
import {Code} from "./Code";
import {Compare} from "./Compare";
import {decodeRun, fromBase64, inflate, parseDocument} from "./decode";
import {Findings} from "./Findings";
import {download} from "./export";
import {duration, shown} from "./format";
import {Gpus} from "./Gpus";
import {Growth} from "./Growth";
import {Holders} from "./Holders";
import {follow, type Connection} from "./live";
import {Measured} from "./Measured";
import {PlanSection} from "./PlanMap";
import {Processes} from "./Processes";
import {Sizes} from "./Sizes";
import "./style.css";
import {Timeline, type Moments} from "./Timeline";
import {Action} from "./Tools";
import type {PageData} from "./types";
import {getView, goTo, parseRange, printRange, useView} from "./view";

type Theme = "light" | "dark";

function useTheme(): [Theme, () => void] {
  const media = window.matchMedia("(prefers-color-scheme: dark)");
  const kept = (() => {
    try {
      return localStorage.getItem("millpond-theme") as Theme | null;
    } catch {
      return null; // a page from disk may have no storage
    }
  })();
  const [theme, setTheme] = useState<Theme>(kept ?? (media.matches ? "dark" : "light"));
  document.documentElement.dataset.theme = theme;
  useEffect(() => {
    const changed = (e: MediaQueryListEvent) => setTheme(e.matches ? "dark" : "light");
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, []);
  return [
    theme,
    () => {
      const next = theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("millpond-theme", next);
      } catch {
        // then it holds for this visit
      }
      setTheme(next);
    },
  ];
}

function Brand() {
  return (
    <span class="brand">
      <svg viewBox="0 0 24 24" aria-hidden="true">
        <circle cx="12" cy="12" r="11" fill="var(--accent)" />
        <path d="M3.5 12.5c2 0 2-1.6 4.2-1.6s2.2 1.6 4.3 1.6 2.1-1.6 4.3-1.6 2.2 1.6 4.2 1.6M5.5 16.6c1.6 0 1.7-1.4 3.3-1.4s1.6 1.4 3.2 1.4 1.6-1.4 3.2-1.4 1.7 1.4 3.3 1.4" fill="none" stroke="var(--surface)" stroke-width="1.7" stroke-linecap="round" />
      </svg>
      Millpond
    </span>
  );
}

/** To a section: the address keeps the view, so this is no plain anchor, but it is a link all the same. */
function Go({to, children}: {to: string; children: string}) {
  return <a href={`#${to}`} onClick={e => { e.preventDefault(); goTo(to); }}>{children}</a>;
}

/** The page of a run that is over, as one file: its server goes with the command. */
async function savePage(sentence: string): Promise<boolean> {
  const [shell, data] = await Promise.all([fetch(location.pathname, {cache: "no-store"}), fetch(`${location.pathname}data`, {cache: "no-store"})]);
  if (!shell.ok || !data.ok) return false;
  const raw = new Uint8Array(await data.arrayBuffer());
  let text = "";
  for (let i = 0; i < raw.length; i += 0x8000) text += String.fromCharCode(...raw.subarray(i, i + 0x8000));
  const page = new DOMParser().parseFromString(await shell.text(), "text/html");
  page.getElementById("data")!.textContent = btoa(text);
  page.getElementById("plain")!.textContent = sentence;
  page.title = document.title;
  download("millpond-report.html", new Blob([`<!doctype html>\n${page.documentElement.outerHTML}`], {type: "text/html;charset=utf-8"}));
  return true;
}

function App({first, live}: {first: PageData; live: boolean}) {
  const [data, setData] = useState(first);
  const [state, setState] = useState<Connection>("live");
  const [theme, toggle] = useTheme();
  const [between, setBetween] = useView("ab");
  const moments = useMemo((): Moments | null => {
    const found = parseRange(between);
    return found && {a: found[0], b: found[1]};
  }, [between]);
  const setMoments = (m: Moments | null) => setBetween(m && m.b > m.a ? printRange(m.a, m.b) : "");
  const [which, setWhich] = useView("run");
  // The answer and the chart are painted first, the rest in the frame after.
  const [rest, setRest] = useState(false);
  useEffect(() => {
    const later = setTimeout(() => setRest(true), 0);
    return () => clearTimeout(later);
  }, []);
  useEffect(() => {
    if (rest && getView("s")) document.getElementById(getView("s"))?.scrollIntoView({block: "start"});
  }, [rest]);
  useEffect(() => (live ? follow(location.pathname, setData, setState) : undefined), [live]);
  const runs = useMemo(() => data.runs.map(decodeRun), [data]);
  const two = data.compare !== null && runs.length === 2;
  const shownRun = two && which === "after" ? 1 : 0;
  const run = runs[shownRun];
  if (!run) return <main class="wrap"><p class="empty">Watching …</p></main>;
  const name = shown(runName(run), 400);
  return (
    <>
      <a class="skip" href="#answer" onClick={e => { e.preventDefault(); goTo("answer"); }}>To the answer</a>
      <header class="top">
        <div class="wrap">
          <Brand />
          <span class="what" title={shown(run.data.facts.command || name, 400)}>{name}</span>
          {live && (
            <span class={`live-dot ${state === "live" ? "" : "over"}`} role="status">{state === "live" ? `live, ${duration(run.data.facts.seconds)}` : state === "over" ? "the run is over" : "connection lost"}</span>
          )}
          {live && state === "live" && <Action name="Save" label="Save this page as one file" run={() => savePage(run.data.sentence)} />}
          <nav aria-label="Sections">
            <Go to="time">Memory</Go>
            {run.data.growth.length > 0 && <Go to="growth">Growth</Go>}
            <Go to="findings">Findings</Go>
            {run.sites && <Go to="holders">Holders</Go>}
            {run.lines.length > 0 && <Go to="code">Code</Go>}
            {(run.pools.length > 0 || run.data.gpu.length > 0) && <Go to="gpu">GPU</Go>}
            {run.programs.length > 0 && <Go to="plan">Plan</Go>}
            <Go to="measured">Measured</Go>
          </nav>
          <button class="plain-button" onClick={toggle} aria-label={theme === "dark" ? "Light theme" : "Dark theme"}>{theme === "dark" ? "Light" : "Dark"}</button>
        </div>
      </header>
      <main class="wrap" data-ready={rest ? "true" : undefined}>
        {live && state !== "live" && (
          <p class="notice" role="status">
            {state === "over" ? "The run is over. This page can be loaded again until it is closed." : "The connection is lost."} What is shown stays. To have it later: <code>millpond report {shown(run.data.name, 120)} -o report.html</code>
          </p>
        )}
        {two ? <Compare compare={data.compare!} runs={runs} theme={theme} /> : <Answer run={run} live={live && state !== "over"} />}
        {two && (
          <div class="segments" role="group" aria-label="Which run is shown below" style={{justifySelf: "start"}}>
            {runs.map((r, i) => <button key={i} aria-pressed={shownRun === i} onClick={() => { setWhich(i ? "after" : ""); setMoments(null); }}>{i ? "After" : "Before"}: {shown(r.data.name, 60)}</button>)}
          </div>
        )}
        <Timeline key={`t${shownRun}`} run={run} theme={theme} moments={moments} setMoments={setMoments} />
        {rest && (
          <>
            <Processes run={run} />
            <Growth key={`g${shownRun}`} run={run} />
            <Findings run={run} />
            <Gpus run={run} />
            {run.programs.length > 0 && <PlanSection key={`p${shownRun}`} run={run} theme={theme} />}
            <Holders key={`h${shownRun}`} run={run} moments={moments} />
            <Code key={`c${shownRun}`} run={run} />
            <Sizes run={run} />
            <Measured run={run} />
          </>
        )}
      </main>
      <footer><div class="wrap">Made by Millpond {shown(data.version, 40)} from {shown(data.runs.map(r => r.name).join(" and "), 300)}. Nothing on this page was fetched, and nothing of it is sent anywhere.</div></footer>
    </>
  );
}

/** Of a run that goes on; right after its start the server has not looked at it yet. */
async function liveDocument(): Promise<PageData> {
  for (;;) {
    const reply = await fetch(`${location.pathname}data`, {cache: "no-store"});
    if (reply.ok) return parseDocument(await inflate(new Uint8Array(await reply.arrayBuffer())));
    if (reply.status !== 503) throw new Error(`the server said ${reply.status}`);
    await new Promise(again => setTimeout(again, 300));
  }
}

async function start() {
  const app = document.getElementById("app")!;
  const text = document.getElementById("data")?.textContent?.trim() ?? "";
  try {
    const live = text === "" || text.startsWith("<!--");
    const data = live ? await liveDocument() : parseDocument(await inflate(fromBase64(text)));
    app.textContent = "";
    render(<App first={data} live={live} />, app);
  } catch (error) {
    // The answer as text stays where it is.
    const note = document.createElement("p");
    note.className = "empty";
    note.textContent = `The charts could not be drawn: ${error instanceof Error ? error.message : String(error)}`;
    app.prepend(note);
  }
}
start();
