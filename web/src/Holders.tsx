import {useEffect, useMemo, useRef, useState} from "preact/hooks";
import type {Run} from "./decode";
import {bytes, clock, exact, percent, plural, shortPath, shown, signedBytes, thousands} from "./format";
import {callTree, isDifference, matches, rectangles, snapshotAt, table, weights, type Call, type Look, type Rect} from "./tree";
import type {Moments} from "./Timeline";
import {Empty} from "./Words";

type Choice = "peak" | "end" | "a" | "b" | "difference" | "growth";
const kRow = 1.5; // rem
const kMostRows = 60;

export function Holders({run, moments: wanted}: {run: Run; moments: Moments | null}) {
  const sites = run.sites;
  // The chart answers first; the tree follows in a task of its own.
  const [moments, setMoments] = useState(wanted);
  useEffect(() => {
    const later = setTimeout(() => setMoments(wanted), 0);
    return () => clearTimeout(later);
  }, [wanted]);
  const [choice, setChoice] = useState<Choice>("peak");
  const [all, setAll] = useState(false);
  const [query, setQuery] = useState("");
  const last = sites ? sites.snapshots.length - 1 : 0;
  useEffect(() => setChoice(moments ? "difference" : "peak"), [moments]);
  const look = useMemo((): Look => {
    if (!sites) return {at: 0};
    const a = moments ? snapshotAt(run, moments.a) : 0;
    const b = moments ? snapshotAt(run, moments.b) : last;
    if (choice === "end") return {at: last};
    if (choice === "a") return {at: a};
    if (choice === "b") return {at: b};
    if (choice === "difference") return {from: a, to: b};
    if (choice === "growth") return {from: Math.min(last, Math.floor((last + 1) / 4)), to: sites.snapshots[last].kind === "end" && last > 1 ? last - 1 : last};
    return {at: sites.peak};
  }, [run, choice, moments]);
  const rows = useMemo(() => (sites ? table(sites, look) : []), [sites, look]);
  const tree = useMemo(() => (sites ? callTree(sites, weights(sites, look), all) : null), [sites, look, all]);

  if (!sites || !tree) {
    if (run.data.source === "engine") return null; // the plan says it, exactly
    return (
      <section class="card" id="holders"><h2>Who holds the memory</h2>
        <Empty title="No snapshot of live blocks was taken">Only a program that millpond watch started, and that is not linked statically, can be looked into.</Empty>
      </section>
    );
  }
  const at = (i: number) => {
    const s = sites.snapshots[i];
    return `${clock(s.t)}${s.kind && !["timer", "line", "end", "peak"].includes(s.kind) ? `, ${shown(s.kind, 30)} ${s.index}` : ""}`;
  };
  const shownRows = rows.filter(r => matches(r, query));
  const whole = rows.reduce((sum, r) => sum + (isDifference(look) ? Math.abs(r.bytes - r.before) : r.bytes), 0);
  const button = (key: Choice, text: string, off = false) => <button aria-pressed={choice === key} disabled={off} onClick={() => setChoice(key)}>{text}</button>;
  return (
    <section class="card long" id="holders" aria-labelledby="holders-title">
      <div class="section-head">
        <h2 id="holders-title">Who holds the memory</h2>
        <p>
          {isDifference(look)
            ? `What changed from ${at(look.from)} to ${at(look.to)}: ${signedBytes(tree.net)} in sampled blocks.`
            : `Alive at ${at(look.at)}: ${bytes(sites.snapshots[look.at].sum)} in sampled blocks, ${bytes(sites.snapshots[look.at].rss)} resident.`}
        </p>
      </div>
      <div class="tools">
        <div class="segments" role="group" aria-label="Which moment">
          {button("peak", "Peak")}
          {button("end", "End")}
          {button("growth", "Growth", last < 2)}
          {button("a", "A", !moments)}
          {button("b", "B", !moments)}
          {button("difference", "A to B", !moments)}
        </div>
        <label><input type="checkbox" checked={all} onChange={e => setAll(e.currentTarget.checked)} /> All frames of libraries</label>
      </div>
      {tree.weight === 0 ? (
        <Empty title="Nothing changed between these moments">Every place holds what it held before.</Empty>
      ) : (
        <Icicle key={`${choice}${all}${moments?.a}${moments?.b}`} tree={tree} difference={isDifference(look)} query={query} />
      )}
      <div class="keys" aria-hidden="true">
        {isDifference(look) ? (
          <><span><i class="swatch" style={{background: "var(--grow)"}} />holds more</span><span><i class="swatch" style={{background: "var(--shrink)"}} />holds less</span></>
        ) : (
          <><span><i class="swatch" style={{background: "var(--user)"}} />your code</span><span><i class="swatch" style={{background: "var(--library)"}} />Python libraries</span><span><i class="swatch" style={{background: "var(--native)"}} />native code</span></>
        )}
        <span>wider holds more; below is called by above</span>
      </div>
      <div class="tools">
        <label class="hidden" for="search">Search places</label>
        <input id="search" class="search" type="search" placeholder="Search file, function or source" value={query} onInput={e => setQuery(e.currentTarget.value)} />
        <span class="muted" role="status">{query ? `${thousands(shownRows.length)} of ${plural(rows.length, "place")}` : plural(rows.length, "place")}</span>
      </div>
      {shownRows.length === 0 ? (
        <Empty title="No place matches">Every word must be in the file, the function or the line.</Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Places">
          <table class="places">
            <thead>
              <tr>
                <th class="n">{isDifference(look) ? "Change" : "Bytes"}</th>
                <th class="wide">Share</th>
                {isDifference(look) && <><th class="n wide">Before</th><th class="n wide">After</th></>}
                <th>Place</th>
              </tr>
            </thead>
            <tbody>
              {shownRows.slice(0, kMostRows).map(r => {
                const value = isDifference(look) ? r.bytes - r.before : r.bytes;
                return (
                  <tr key={r.key}>
                    <td class="n" title={exact(value)}>{isDifference(look) ? signedBytes(value) : bytes(value)}</td>
                    <td class="wide number"><i class="bar" style={{width: `${Math.max(0.5, (Math.abs(value) / whole) * 64)}px`, background: isDifference(look) ? (value > 0 ? "var(--grow)" : "var(--shrink)") : r.user ? "var(--user)" : "var(--line-strong)"}} />{percent(Math.abs(value) / whole)}</td>
                    {isDifference(look) && <><td class="n wide">{bytes(r.before)}</td><td class="n wide">{bytes(r.bytes)}</td></>}
                    <td class="place">
                      {r.frame ? <>{shown(shortPath(r.frame.file, 56))}{r.frame.line > 0 && `:${r.frame.line}`} <span class="muted">{shown(r.frame.function, 120)}</span></> : shown(r.label)}
                      {r.frame?.text && <small>{shown(r.frame.text, 200)}</small>}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
          {shownRows.length > kMostRows && <p class="hint">{thousands(shownRows.length - kMostRows)} smaller places are not listed; search finds them.</p>}
        </div>
      )}
    </section>
  );
}

const nameOf = (call: Call) => (call.frame ? shown(call.frame.function || "?", 160) : "all");
const kindOf = (call: Call, difference: boolean) =>
  !call.frame ? "root" : difference ? (call.net >= 0 ? "grow" : "shrink") : call.frame.native ? "native" : call.frame.user ? "user" : "library";

function find(call: Call, id: number): Call | null {
  if (call.id === id) return call;
  for (const child of call.children) {
    const found = find(child, id);
    if (found) return found;
  }
  return null;
}

/** Calls from the outermost down, as wide as what is held below them. Arrow keys walk, Enter makes one the whole width, Escape goes back. */
function Icicle({tree, difference, query}: {tree: Call; difference: boolean; query: string}) {
  const [focus, setFocus] = useState<number[]>([tree.id]);
  const [current, setCurrent] = useState(tree.id);
  const host = useRef<HTMLDivElement>(null);
  const root = find(tree, focus[focus.length - 1]) ?? tree;
  const rects = useMemo(() => rectangles(root), [root]);
  const byId = useMemo(() => new Map(rects.map(r => [r.call.id, r])), [rects]);
  const depth = Math.max(...rects.map(r => r.depth)) + 1;
  const active = byId.has(current) ? current : root.id;
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const hit = (c: Call) => !words.length || !c.frame || words.every(w => c.frame!.words.includes(w));
  const text = (c: Call) => `${nameOf(c)}${c.frame ? `, ${shown(shortPath(c.frame.file, 80))}${c.frame.line > 0 ? `:${c.frame.line}` : ""}` : ""}: ${difference ? signedBytes(c.net) : bytes(c.weight)}, ${percent(c.weight / tree.weight)}`;
  const open = (c: Call) => {
    setFocus(c.id === root.id ? (focus.length > 1 ? focus.slice(0, -1) : focus) : [...focus, c.id]);
    setCurrent(c.id);
  };
  const go = (r: Rect | undefined) => {
    if (!r) return;
    setCurrent(r.call.id);
    host.current?.querySelector<HTMLElement>(`[data-call="${r.call.id}"]`)?.focus();
  };
  const onKey = (e: KeyboardEvent) => {
    const r = byId.get(active);
    if (!r) return;
    const row = rects.filter(k => k.depth === r.depth).sort((p, q) => p.x - q.x);
    const here = row.indexOf(r);
    const actions: Record<string, () => void> = {
      ArrowDown: () => go(rects.filter(k => k.parent === r.call.id).sort((p, q) => p.x - q.x)[0]),
      ArrowUp: () => go(byId.get(r.parent)),
      ArrowLeft: () => go(row[here - 1]),
      ArrowRight: () => go(row[here + 1]),
      Home: () => go(row[0]),
      End: () => go(row[row.length - 1]),
      Escape: () => { if (focus.length > 1) { setFocus(focus.slice(0, -1)); setCurrent(focus[focus.length - 2]); } },
    };
    if (actions[e.key]) {
      e.preventDefault();
      actions[e.key]();
    }
  };
  return (
    <>
      <div class="icicle" ref={host} role="tree" aria-label="Calls and what is held below them" style={{height: `${depth * kRow}rem`}} onKeyDown={onKey}>
        {rects.map(r => (
          <button
            key={r.call.id} role="treeitem" aria-level={r.depth + 1} aria-selected={r.call.id === active} data-call={r.call.id} tabIndex={r.call.id === active ? 0 : -1}
            class={`${kindOf(r.call, difference)} ${hit(r.call) ? "" : "faded"}`} aria-label={text(r.call)} title={text(r.call)}
            style={{left: `${r.x * 100}%`, width: `${r.width * 100}%`, top: `${r.depth * kRow}rem`, height: `${kRow}rem`, padding: r.width < 0.012 ? "0" : undefined}}
            onClick={() => open(r.call)} onFocus={() => setCurrent(r.call.id)}
          >
            {r.width > 0.025 ? (r.depth === 0 && !r.call.frame ? `all: ${difference ? signedBytes(r.call.net) : bytes(r.call.weight)}` : nameOf(r.call)) : ""}
          </button>
        ))}
      </div>
      <p class="hint" data-testid="icicle-now">
        {text(find(root, active) ?? root)}
        {focus.length > 1 && <> · <button class="plain-button" onClick={() => { setFocus([tree.id]); setCurrent(tree.id); }}>Show all</button></>}
      </p>
    </>
  );
}
