import type {ComponentChildren} from "preact";
import {useMemo} from "preact/hooks";
import {SaveTable} from "./Tools";
import {useView} from "./view";

export interface Col<R> {
  key: string;
  title: string;
  /** numbers stand to the right */
  n?: boolean;
  /** left out where there is little room */
  wide?: boolean;
  /** what is sorted by, and what leaves the page */
  value(row: R): number | string | null;
  cell?(row: R): ComponentChildren;
  tip?(row: R): string;
}

/** "-bytes": by bytes, the most first. */
export function parseSort<R>(text: string, columns: Col<R>[]): {key: string; down: boolean} | null {
  const down = text.startsWith("-");
  const key = down ? text.slice(1) : text;
  return columns.some(c => c.key === key) ? {key, down} : null;
}

export function sorted<R>(rows: R[], columns: Col<R>[], sort: {key: string; down: boolean} | null): R[] {
  const column = sort && columns.find(c => c.key === sort.key);
  if (!column) return rows;
  const order = (a: number | string | null, b: number | string | null) =>
    typeof a === "string" || typeof b === "string" ? String(a ?? "").localeCompare(String(b ?? ""), "en", {numeric: true}) : (a ?? -Infinity) - (b ?? -Infinity);
  // each value is asked once, and what is equal stays as it was
  const keyed = rows.map((row, i) => ({row, i, value: column.value(row)}));
  keyed.sort((a, b) => (sort.down ? order(b.value, a.value) : order(a.value, b.value)) || a.i - b.i);
  return keyed.map(k => k.row);
}

interface Props<R> {
  /** short: it stands in the address and in names of files */
  id: string;
  label: string;
  columns: Col<R>[];
  rows: R[];
  keyOf(row: R, i: number): string | number;
  /** how the rows come, as a sort; "" keeps them */
  usual?: string;
  most?: number;
  /** after the rows that are shown, how the others are told of */
  more?(left: R[]): ComponentChildren;
  className?: string;
  /** rows below the others, by key of the column: sums, and what they are compared with */
  foot?: Record<string, ComponentChildren>[];
  rowClass?(row: R): string;
  children?: ComponentChildren;
}

export function Table<R>({id, label, columns, rows, keyOf, usual = "", most = Infinity, more, className = "", foot, rowClass, children}: Props<R>) {
  const [choice, choose] = useView(`sort.${id}`);
  const [allText, setAll] = useView(`all.${id}`);
  const all = allText === "yes";
  const sort = parseSort(choice || usual, columns);
  const list = useMemo(() => sorted(rows, columns, sort), [rows, columns, sort?.key, sort?.down]);
  const shown = all ? list.slice(0, 2000) : list.slice(0, most);
  const press = (c: Col<R>) => {
    const firstDown = c.n === true;
    const next = sort?.key !== c.key ? (firstDown ? `-${c.key}` : c.key) : sort.down === firstDown ? (firstDown ? c.key : `-${c.key}`) : "";
    choose(next === usual ? "" : next);
  };
  return (
    <>
      <div class="table-tools">
        {children}
        <span class="push" />
        <SaveTable name={`millpond-${id}`} of={label} head={columns.map(c => c.title)} rows={() => list.slice(0, 20000).map(r => columns.map(c => c.value(r)))} />
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label={label}>
        <table class={className}>
          <thead>
            <tr>
              {columns.map(c => {
                const on = sort?.key === c.key;
                return (
                  <th key={c.key} class={`${c.n ? "n" : ""} ${c.wide ? "wide" : ""}`} aria-sort={on ? (sort!.down ? "descending" : "ascending") : undefined} scope="col">
                    <button class="sort" onClick={() => press(c)}>{c.title}<span class="arrow" aria-hidden="true">{on ? (sort!.down ? "▼" : "▲") : ""}</span></button>
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {shown.map((r, i) => (
              <tr key={keyOf(r, i)} class={rowClass?.(r)}>
                {columns.map(c => <td key={c.key} class={`${c.n ? "n" : ""} ${c.wide ? "wide" : ""}`} title={c.tip?.(r)}>{c.cell ? c.cell(r) : c.value(r)}</td>)}
              </tr>
            ))}
          </tbody>
          {foot && (
            <tfoot>
              {foot.map((row, i) => <tr key={i}>{columns.map(c => <td key={c.key} class={`${c.n ? "n" : ""} ${c.wide ? "wide" : ""}`}>{row[c.key]}</td>)}</tr>)}
            </tfoot>
          )}
        </table>
      </div>
      {list.length > shown.length && !all && (
        <p class="hint">{more?.(list.slice(shown.length))} <button class="plain-button" onClick={() => setAll("yes")}>Show all {Math.min(2000, list.length)}</button></p>
      )}
      {all && list.length > most && <p class="hint"><button class="plain-button" onClick={() => setAll("")}>Show fewer</button></p>}
    </>
  );
}
