import {render} from "preact";
import {useEffect, useMemo, useRef, useState} from "preact/hooks";
import type {Run} from "./decode";
import {ProcessChoice, useProcess} from "./ProcessChoice";
import {bytes, clock, estimated, percent, plural, shortPath, shown, signedBytes, thousands, withError} from "./format";
import {Table, type Col} from "./Table";
import type {Moments} from "./Timeline";
import {SaveChart} from "./Tools";
import {callName, callTree, isDifference, isTotal, matches, packageOf, rectangles, snapshotAt, table, weights, type Call, type Look, type Rect, type Row} from "./tree";
import {useView} from "./view";
import {Empty} from "./Words";

const kChoices = ["peak", "end", "growth", "a", "b", "difference", "allocated", "temporary"] as const;
type Choice = (typeof kChoices)[number];
const kRow = 1.5; // rem
const kMostRows = 30;

export function Holders({run: whole, moments: wanted}: {run: Run; moments: Moments | null}) {
  // The chart answers first; the tree follows in a task of its own.
  const [moments, setMoments] = useState(wanted);
  useEffect(() => {
    const later = setTimeout(() => setMoments(wanted), 0);
    return () => clearTimeout(later);
  }, [wanted]);
  const [at, setAt] = useView("at");
  const [all, setAll] = useView("frames");
  const [query, setQuery] = useView("q");
  const [threadText, setThread] = useView("thread");
  const {run, chosen, choose} = useProcess(whole);
  const sites = run.sites;
  const last = sites ? sites.snapshots.length - 1 : 0;
  const threads = useMemo(() => [...new Set(sites?.thread ?? [])].sort((a, b) => a - b), [sites]);
  const thread = threads.length > 1 && threads.includes(Number(threadText)) && threadText !== "" ? Number(threadText) : null;
  const usual: Choice = moments ? "difference" : "peak";
  const asked = (kChoices as readonly string[]).includes(at) ? (at as Choice) : usual;
  const off = (c: Choice) => (c === "growth" ? last < 2 : c === "temporary" ? !sites?.temporary : c === "a" || c === "b" || c === "difference" ? !moments : false);
  const choice = off(asked) ? usual : asked;
  const look = useMemo((): Look => {
    if (!sites) return {at: 0};
    const a = moments ? snapshotAt(run, moments.a) : 0;
    const b = moments ? snapshotAt(run, moments.b) : last;
    const end = sites.snapshots[last].kind === "end" && last > 0 ? last - 1 : last; // after its last round a program is taken down
    if (choice === "end") return {at: end};
    if (choice === "a") return {at: a};
    if (choice === "b") return {at: b};
    if (choice === "difference") return {from: a, to: b};
    if (choice === "allocated" || choice === "temporary") return {ever: choice};
    if (choice === "growth") return {from: Math.min(last, Math.floor((last + 1) / 4)), to: end};
    return {at: sites.peak};
  }, [run, sites, choice, moments]);
  const rows = useMemo(() => (sites ? table(sites, look, thread) : []), [sites, look, thread]);
  const tree = useMemo(() => (sites ? callTree(sites, weights(sites, look, thread), all === "all") : null), [sites, look, all, thread]);
  const shownRows = useMemo(() => rows.filter(r => matches(r, query)), [rows, query]);
  const weight = rows.reduce((sum, r) => sum + (isDifference(look) ? Math.abs(r.bytes - r.before) : r.bytes), 0);
  const columns = useMemo(() => columnsOf(look, weight, threads.length > 1 ? run.data.threads : null, sites?.temporary != null), [look, weight, run, sites]);

  if (!sites || !tree) {
    if (run.data.source === "engine") return null; // the plan says it, exactly
    return (
      <section class="card" id="holders"><h2>Who holds the memory</h2>
        <Empty title="No snapshot of live blocks was taken">Only a program that millpond watch started, and that is not linked statically, can be looked into.</Empty>
      </section>
    );
  }
  const moment = (i: number) => {
    const s = sites.snapshots[i];
    return `${clock(s.t)}${s.kind && !["timer", "line", "end", "peak"].includes(s.kind) ? `, ${shown(s.kind, 30)} ${s.index}` : ""}`;
  };
  // What the calls are drawn of: the one that has the whole width belongs to these alone.
  const view = [choice, all, moments ? `${Math.round(moments.a)}-${Math.round(moments.b)}` : "", thread ?? "", chosen?.pid ?? ""].join(",");
  const part = thread === null ? "" : `, of ${threadName(run.data.threads, thread)}`;
  const about = isTotal(look)
    ? look.ever === "temporary"
      ? `Freed within 10 ms of being allocated, in the whole run: ${bytes(tree.weight)}${part}, estimated from samples. It is never seen in resident memory; it costs time.`
      : `Allocated in the whole run: ${bytes(tree.weight)}${part}, estimated from samples. Most of it was freed again.`
    : isDifference(look)
      ? `What changed from ${moment(look.from)} to ${moment(look.to)}: ${signedBytes(tree.net)} in sampled blocks${part}.`
      : `Alive at ${moment(look.at)}: ${bytes(thread === null ? sites.snapshots[look.at].sum : tree.weight)} in sampled blocks${part}, ${bytes(sites.snapshots[look.at].rss)} resident.`;
  const button = (key: Choice, text: string) => <button aria-pressed={choice === key} disabled={off(key)} onClick={() => setAt(key === usual ? "" : key)}>{text}</button>;
  return (
    <section class="card long" id="holders" aria-labelledby="holders-title">
      <div class="section-head">
        <h2 id="holders-title">Who holds the memory</h2>
        <p>{about}</p>
      </div>
      <div class="tools">
        <div class="segments" role="group" aria-label="Which moment">
          {button("peak", "Peak")}
          {button("end", "End")}
          {button("growth", "Growth")}
          {button("a", "A")}
          {button("b", "B")}
          {button("difference", "A to B")}
        </div>
        <div class="segments" role="group" aria-label="Of the whole run">
          {button("allocated", "Ever allocated")}
          {button("temporary", "Temporary")}
        </div>
        <ProcessChoice run={whole} chosen={chosen} choose={choose} />
        {threads.length > 1 && (
          <label class="choose">Thread{" "}
            <select aria-label="Thread" value={thread === null ? "" : String(thread)} onChange={e => setThread(e.currentTarget.value)}>
              <option value="">all</option>
              {threads.map(t => <option key={t} value={String(t)}>{threadName(run.data.threads, t)}</option>)}
            </select>
          </label>
        )}
        <label class="choose"><input type="checkbox" checked={all === "all"} onChange={e => setAll(e.currentTarget.checked ? "all" : "")} /> All frames of libraries</label>
      </div>
      {tree.weight === 0 ? (
        <Empty title={isDifference(look) ? "Nothing changed between these moments" : "Nothing was sampled here"}>{isDifference(look) ? "Every place holds what it held before." : "Choose another moment, thread or process."}</Empty>
      ) : (
        <Icicle key={view} view={view} tree={tree} difference={isDifference(look)} query={query} />
      )}
      <div class="table-tools">
        <label class="hidden" for="search">Search places</label>
        <input id="search" class="search" type="search" placeholder="Search file, function or source" value={query} onInput={e => setQuery(e.currentTarget.value)} />
        <span class="muted" role="status">{query ? `${thousands(shownRows.length)} of ${plural(rows.length, "place")}` : plural(rows.length, "place")}</span>
      </div>
      {shownRows.length === 0 ? (
        <Empty title="No place matches">Every word must be in the file, the function or the line.</Empty>
      ) : (
        <Table
          id="places" label="places" className="places" columns={columns} rows={shownRows} keyOf={r => r.key} most={kMostRows} foot={query ? undefined : footOf(look, rows, !isTotal(look) && !isDifference(look) && thread === null ? sites.snapshots[look.at].other : 0)} usual={isDifference(look) ? "" : "-bytes"}
          more={left => <>{plural(left.length, "place")} more, {isDifference(look) ? signedBytes(left.reduce((s, r) => s + r.bytes - r.before, 0)) : bytes(left.reduce((s, r) => s + r.bytes, 0))} together.</>}
        />
      )}
    </section>
  );
}

/** What the rows add up to, with what is beyond them. */
function footOf(look: Look, rows: Row[], other: number) {
  const sum = rows.reduce((s, r) => s + r.bytes - r.before, 0);
  const error = Math.sqrt(rows.reduce((s, r) => s + r.error ** 2, 0));
  const difference = isDifference(look);
  const all = <span title={estimated(sum + other, error)}>{difference ? signedBytes(sum) : withError(sum + other, error)}</span>;
  return [{bytes: all, place: other > 0 ? `all places; ${bytes(other)} of it in smaller ones that are not listed` : "all places"}];
}

const threadName = (threads: string[], t: number) => (t < 0 ? "several threads" : shown(threads[t] ?? `thread ${t + 1}`, 60));

function columnsOf(look: Look, whole: number, threads: string[] | null, temporary: boolean): Col<Row>[] {
  const difference = isDifference(look);
  const value = (r: Row) => (difference ? r.bytes - r.before : r.bytes);
  const colour = (r: Row) => (difference ? (value(r) > 0 ? "var(--grow)" : "var(--shrink)") : r.user ? "var(--user)" : "var(--line-strong)");
  const list: Col<Row>[] = [
    {key: "bytes", title: difference ? "Change" : isTotal(look) ? (look.ever === "temporary" ? "Temporary" : "Allocated") : "Alive", n: true, value, tip: r => estimated(value(r), r.error), cell: r => (difference ? `${value(r) > 0 ? "+" : ""}${withError(value(r), r.error)}` : withError(value(r), r.error))},
    {
      key: "share", title: "Share", wide: true, n: false, value: r => Math.abs(value(r)) / whole,
      cell: r => <span class="number"><i class="bar" style={{width: `${Math.max(0.5, (Math.abs(value(r)) / whole) * 64)}px`, background: colour(r)}} />{percent(Math.abs(value(r)) / whole)}</span>,
    },
  ];
  if (difference)
    list.push({key: "before", title: "Before", n: true, wide: true, value: r => r.before, cell: r => bytes(r.before)}, {key: "after", title: "After", n: true, wide: true, value: r => r.bytes, cell: r => bytes(r.bytes)});
  if (!difference && !(isTotal(look) && look.ever === "allocated")) list.push({key: "allocated", title: "Ever allocated", n: true, wide: true, value: r => r.allocated, tip: r => estimated(r.allocated, r.allocatedError), cell: r => withError(r.allocated, r.allocatedError)});
  if (temporary && !difference && !isTotal(look)) list.push({key: "temporary", title: "Temporary", n: true, wide: true, value: r => r.temporary, tip: r => estimated(r.temporary, r.temporaryError), cell: r => (r.temporary ? withError(r.temporary, r.temporaryError) : <span class="muted">–</span>)});
  if (threads) list.push({key: "thread", title: "Thread", wide: true, value: r => (r.thread === -2 ? "" : threadName(threads, r.thread))});
  list.push({
    key: "place", title: "Place", value: r => (r.frame ? `${r.frame.file}${r.frame.line > 0 ? `:${r.frame.line}` : ""} ${r.frame.function}` : r.label),
    cell: r => (
      <span class="place">
        {r.frame ? <>{shown(shortPath(r.frame.file, 56))}{r.frame.line > 0 && `:${r.frame.line}`} <span class="muted">{shown(r.frame.function === "<module>" ? "" : r.frame.function, 120)}</span></> : shown(r.label)}
        {r.frame?.text && <small>{shown(r.frame.text, 200)}</small>}
      </span>
    ),
  });
  return list;
}

const nameOf = (call: Call) => (call.frame ? shown(callName(call.frame), 160) : "all");
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
function Icicle({tree, view, difference, query}: {tree: Call; view: string; difference: boolean; query: string}) {
  // The way to the call that has the whole width, in the address with what it was found in: numbers of calls are of one such tree.
  const [focusText, setFocusText] = useView("focus");
  const focus = useMemo(() => {
    const [of, way] = focusText.split(":");
    const ids = of === view && way ? way.split(".").map(Number) : [];
    return [tree.id, ...ids.filter(id => find(tree, id) !== null && id !== tree.id)];
  }, [focusText, view, tree]);
  const setFocus = (way: number[]) => setFocusText(way.length > 1 ? `${view}:${way.slice(1).join(".")}` : "");
  const [current, setCurrent] = useState(tree.id);
  const host = useRef<HTMLDivElement>(null);
  const root = find(tree, focus[focus.length - 1]) ?? tree;
  const rects = useMemo(() => rectangles(root), [root]);
  const byId = useMemo(() => new Map(rects.map(r => [r.call.id, r])), [rects]);
  const depth = Math.max(...rects.map(r => r.depth)) + 1;
  const active = byId.has(current) ? current : root.id;
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const hit = (c: Call) => !words.length || !c.frame || words.every(w => c.frame!.words.includes(w));
  const amount = (c: Call) => (difference ? signedBytes(c.net) : bytes(c.weight));
  const text = (c: Call) =>
    `${nameOf(c)}${c.frame ? `, ${shown(shortPath(c.frame.file, 80))}${c.frame.line > 0 ? `:${c.frame.line}` : ""}` : ""}: ${amount(c)}, ${percent(c.weight / tree.weight)}${c.folded ? `; ${plural(c.folded, "frame")} of ${packageOf(c.frame!.file) || "libraries"} folded below it` : ""}`;
  const label = (r: Rect) => (r.width <= 0.025 ? "" : r.depth === 0 && !r.call.frame ? `all: ${amount(r.call)}` : `${nameOf(r.call)}${r.call.folded ? " …" : ""}`);
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
  /** The same as a drawing, made when it is asked for. */
  const drawing = () => {
    const box = document.createElement("div");
    box.className = "hidden";
    host.current!.append(box);
    render(
      <svg viewBox={`0 0 1040 ${depth * 24}`} font-family="ui-sans-serif, system-ui, sans-serif" font-size="12">
        {rects.map(r => {
          const kind = kindOf(r.call, difference);
          const [w, room] = [r.width * 1040, Math.floor((r.width * 1040 - 8) / 6.6)];
          const name = label(r);
          return (
            <g key={r.call.id}>
              <rect x={r.x * 1040} y={r.depth * 24} width={Math.max(0.5, w - 1)} height={23} rx={2} fill={kind === "root" ? "var(--ink-2)" : `var(--${kind})`}><title>{text(r.call)}</title></rect>
              {room > 2 && <text x={r.x * 1040 + 5} y={r.depth * 24 + 16} fill={kind === "root" ? "var(--surface)" : `var(--${kind}-ink)`}>{name.length > room ? `${name.slice(0, room - 1)}…` : name}</text>}
            </g>
          );
        })}
      </svg>,
      box,
    );
    setTimeout(() => box.remove(), 5000);
    return box.querySelector("svg");
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
            {label(r)}
          </button>
        ))}
      </div>
      <div class="under">
        <p class="hint" data-testid="icicle-now">
          {text(find(root, active) ?? root)}
          {focus.length > 1 && <> · <button class="plain-button" onClick={() => { setFocus([tree.id]); setCurrent(tree.id); }}>Show all</button></>}
        </p>
        <SaveChart name="millpond-calls" of="the calls" find={drawing} />
      </div>
      <div class="keys" aria-hidden="true">
        {difference ? (
          <><span><i class="swatch" style={{background: "var(--grow)"}} />holds more</span><span><i class="swatch" style={{background: "var(--shrink)"}} />holds less</span></>
        ) : (
          <><span><i class="swatch" style={{background: "var(--user)"}} />your code</span><span><i class="swatch" style={{background: "var(--library)"}} />Python libraries</span><span><i class="swatch" style={{background: "var(--native)"}} />native code</span></>
        )}
        <span>wider holds more; below is called by above; … is folded</span>
      </div>
    </>
  );
}
