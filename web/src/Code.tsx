import {useMemo} from "preact/hooks";
import type {CodeLine, Run} from "./decode";
import {baseName, bytes, clock, estimated, plural, shown, withError} from "./format";
import {ProcessChoice, useProcess} from "./ProcessChoice";
import {SaveTable} from "./Tools";
import {useView} from "./view";
import {Empty} from "./Words";

const kMostLines = 600;

interface Shown {
  line: number;
  text: string | null;
  amounts: CodeLine | null;
}

/** The stored pieces of a file in order, and lines with amounts whose text was not stored; null between what does not follow on. */
export function listing(run: Run, file: string): (Shown | null)[] {
  const lines = new Map<number, Shown>();
  for (const piece of run.sources) if (piece.file === file) piece.lines.forEach((text, i) => lines.set(piece.first + i, {line: piece.first + i, text, amounts: null}));
  // What was found has its lines with it, also where no source is stored.
  for (const {blame} of run.data.findings) {
    if (blame?.file !== file) continue;
    const around = blame.source && !blame.source.changed ? blame.source : blame.snippet ? {from: blame.line, lines: [blame.snippet]} : {from: 0, lines: []};
    around.lines.forEach((text, i) => lines.has(around.from + i) || lines.set(around.from + i, {line: around.from + i, text, amounts: null}));
  }
  for (const amounts of run.lines) {
    if (amounts.file !== file) continue;
    lines.set(amounts.line, {line: amounts.line, text: lines.get(amounts.line)?.text ?? null, amounts});
  }
  const out: (Shown | null)[] = [];
  for (const entry of [...lines.values()].sort((a, b) => a.line - b.line)) {
    const last = out[out.length - 1];
    if (last && entry.line > last.line + 1) out.push(null);
    out.push(entry);
  }
  return out;
}

/** Files of the user's own, what each of them allocated, the most first. */
export function filesOf(run: Run): {file: string; allocated: number; freed: number; kept: number}[] {
  const files = new Map<string, {file: string; allocated: number; freed: number; kept: number}>();
  for (const l of run.lines) {
    const f = files.get(l.file) ?? {file: l.file, allocated: 0, freed: 0, kept: 0};
    files.set(l.file, f);
    f.allocated += l.allocated;
    f.freed += l.freed;
    f.kept += l.kept;
  }
  return [...files.values()].sort((a, b) => b.kept - a.kept || b.allocated - a.allocated);
}

/** The user's file with a gutter: what each line allocated, what of it was freed again, and what is kept. */
export function Code({run: whole}: {run: Run}) {
  const {run, chosen: process, choose} = useProcess(whole);
  const files = useMemo(() => filesOf(run), [run]);
  const [wanted, setFile] = useView("file");
  const [allText, setAll] = useView("all.code");
  const all = allText === "yes";
  const chosen = files.find(f => f.file === wanted) ?? files[0];
  const rows = useMemo(() => (chosen ? listing(run, chosen.file) : []), [run, chosen]);
  if (!chosen) {
    if (whole.lines.length === 0) return null;
    return (
      <section class="card" id="code"><h2>Your code</h2>
        <div class="table-tools"><ProcessChoice run={whole} chosen={process} choose={choose} /></div>
        <Empty title="No line of your own allocated in this process">Choose another process.</Empty>
      </section>
    );
  }
  const blamed = new Set(run.data.findings.filter(f => f.blame?.file === chosen.file).map(f => f.blame!.line));
  const here = run.lines.filter(l => l.file === chosen.file);
  const most = {allocated: Math.max(1, ...here.map(l => l.allocated)), kept: Math.max(1, ...here.map(l => l.kept))};
  const stored = rows.some(r => r?.text != null);
  const shownRows = all ? rows.slice(0, 5000) : rows.slice(0, kMostLines);
  const cell = (value: number, error: number, top: number, kind: string) => (
    <td class="n amount" title={estimated(value, error)}>{value > 0 ? <><i class={`tape ${kind}`} style={{width: `${Math.max(2, Math.round((value / top) * 100))}%`}} /><span>{withError(value, error)}</span></> : null}</td>
  );
  return (
    <section class="card long" id="code" aria-labelledby="code-title">
      <div class="section-head">
        <h2 id="code-title">Your code</h2>
        <p>
          {stored ? "As it was when the run was recorded." : "The source was not stored in this run: lines by their numbers."} What each line allocated in the whole run, what of it was freed again, and what was kept at {clock(run.linesAt)}; estimates from samples.
        </p>
      </div>
      <div class="table-tools">
        <ProcessChoice run={whole} chosen={process} choose={choose} />
        {files.length > 1 ? (
          <label class="choose">File{" "}
            <select aria-label="File" value={chosen.file} onChange={e => setFile(e.currentTarget.value === files[0].file ? "" : e.currentTarget.value)}>
              {files.map(f => <option key={f.file} value={f.file}>{shown(baseName(f.file), 80)}, kept {bytes(f.kept)}</option>)}
            </select>
          </label>
        ) : <strong class="mono">{shown(baseName(chosen.file), 80)}</strong>}
        <span class="muted">allocated {bytes(chosen.allocated)}, freed {bytes(chosen.freed)}, kept {bytes(chosen.kept)}</span>
        <span class="push" />
        <SaveTable name={`millpond-${baseName(chosen.file)}`} of="the lines" head={["Line", "Allocated", "Freed", "Kept", "Source"]} rows={() => rows.filter(r => r !== null).map(r => [r.line, r.amounts?.allocated ?? null, r.amounts?.freed ?? null, r.amounts?.kept ?? null, r.text])} />
      </div>
      <div class="scroll code" tabIndex={0} role="region" aria-label={`Source of ${shown(baseName(chosen.file), 80)}`}>
        <table>
          <thead><tr><th class="n" scope="col">Allocated</th><th class="n" scope="col">Freed</th><th class="n" scope="col">Kept</th><th class="n" scope="col">Line</th><th scope="col">Source</th></tr></thead>
          <tbody>
            {shownRows.map((r, i) =>
              r === null ? (
                <tr key={`gap${i}`} class="gap"><td colSpan={3} /><td class="n">⋯</td><td /></tr>
              ) : (
                <tr key={r.line} class={blamed.has(r.line) ? "blamed" : r.amounts ? "used" : ""} aria-current={blamed.has(r.line) ? "true" : undefined}>
                  {cell(r.amounts?.allocated ?? 0, r.amounts?.allocatedError ?? 0, most.allocated, "allocated")}
                  {cell(r.amounts?.freed ?? 0, r.amounts?.allocatedError ?? 0, most.allocated, "freed")}
                  {cell(r.amounts?.kept ?? 0, r.amounts?.keptError ?? 0, most.kept, "kept")}
                  <td class="n number muted">{r.line}</td>
                  <td class="text">{r.text === null ? <span class="muted">not stored</span> : shown(r.text, 400) || " "}</td>
                </tr>
              ),
            )}
          </tbody>
        </table>
      </div>
      {rows.length > shownRows.length && <p class="hint"><button class="plain-button" onClick={() => setAll("yes")}>Show all {plural(rows.length, "line")}</button></p>}
    </section>
  );
}
