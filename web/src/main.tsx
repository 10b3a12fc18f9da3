import {render} from "preact";
import {useEffect, useMemo, useState} from "preact/hooks";
import {Answer, runName} from "./Answer";
import {Compare} from "./Compare";
import {decodeRun, fromBase64, inflate, parseDocument} from "./decode";
import {Findings} from "./Findings";
import {duration, shown} from "./format";
import {Holders} from "./Holders";
import {follow, type Connection} from "./live";
import {Measured} from "./Measured";
import {PlanSection} from "./PlanMap";
import "./style.css";
import {Timeline, type Moments} from "./Timeline";
import type {PageData} from "./types";

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

function App({first, live}: {first: PageData; live: boolean}) {
  const [data, setData] = useState(first);
  const [state, setState] = useState<Connection>("live");
  const [theme, toggle] = useTheme();
  const [moments, setMoments] = useState<Moments | null>(null);
  const [which, setWhich] = useState(0);
  // The answer and the chart are painted first, the rest in the frame after.
  const [rest, setRest] = useState(false);
  useEffect(() => {
    const later = setTimeout(() => setRest(true), 0);
    return () => clearTimeout(later);
  }, []);
  useEffect(() => (live ? follow(location.pathname, setData, setState) : undefined), [live]);
  const runs = useMemo(() => data.runs.map(decodeRun), [data]);
  const run = runs[Math.min(which, runs.length - 1)];
  if (!run) return <main class="wrap"><p class="empty">Waiting for the first look at the program …</p></main>;
  const two = data.compare && runs.length === 2;
  return (
    <>
      <a class="skip" href="#answer">To the answer</a>
      <header class="top">
        <div class="wrap">
          <Brand />
          <span class="what" title={shown(runName(run), 400)}>{shown(runName(run), 400)}</span>
          {live && <span class={`live-dot ${state === "live" ? "" : "over"}`} role="status">{state === "live" ? `live, ${duration(run.data.facts.seconds)}` : state === "over" ? "the run is over" : "connection lost"}</span>}
          <nav aria-label="Sections">
            <a href="#time">Memory</a>
            <a href="#findings">Findings</a>
            {run.sites && <a href="#holders">Holders</a>}
            {run.programs.length > 0 && <a href="#plan">Plan</a>}
            <a href="#measured">Measured</a>
          </nav>
          <button class="plain-button" onClick={toggle} aria-label={theme === "dark" ? "Light theme" : "Dark theme"}>{theme === "dark" ? "Light" : "Dark"}</button>
        </div>
      </header>
      <main class="wrap" data-ready={rest ? "true" : undefined}>
        {two ? <Compare compare={data.compare!} runs={runs} theme={theme} /> : <Answer run={run} live={live} />}
        {two && (
          <div class="segments" role="group" aria-label="Which run is shown below" style={{justifySelf: "start"}}>
            {runs.map((r, i) => <button key={i} aria-pressed={which === i} onClick={() => { setWhich(i); setMoments(null); }}>{i ? "After" : "Before"}: {shown(r.data.name, 60)}</button>)}
          </div>
        )}
        <Timeline key={`t${which}`} run={run} theme={theme} moments={moments} setMoments={setMoments} />
        {rest && (
          <>
            <Findings run={run} />
            {run.programs.length > 0 && <PlanSection key={`p${which}`} run={run} theme={theme} />}
            <Holders key={`h${which}`} run={run} moments={moments} />
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
