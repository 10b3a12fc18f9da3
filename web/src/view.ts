/**
 * What a reader has chosen (zoom, tab, moment, process, thread, sort, search) as text in the address: a link or a reload shows the same again.
 *
 *   report.html#by=lines&z=1200-4800&at=growth&q=append&sort.places=-allocated
 *
 * What is in an address is a stranger's: keys are few and short, values are only ever compared, parsed as numbers, or shown as text.
 */
import {useEffect, useState} from "preact/hooks";

const kMostKeys = 40;
const kMostText = 300;
const chosen = new Map<string, string>();
const listeners = new Set<() => void>();

export function parseView(hash: string): Map<string, string> {
  const found = new Map<string, string>();
  const text = hash.replace(/^#/, "");
  if (!text.includes("=")) return /^[a-z]{1,24}$/.test(text) ? found.set("s", text) : found;
  for (const [key, value] of new URLSearchParams(text)) if (found.size < kMostKeys && /^[a-z.]{1,32}$/.test(key) && value.length <= kMostText) found.set(key, value);
  return found;
}

export function printView(view: Map<string, string>): string {
  const words = new URLSearchParams([...view].sort(([a], [b]) => (a < b ? -1 : 1)));
  return words.toString().replace(/%2C/g, ",");
}

function read() {
  chosen.clear();
  for (const [key, value] of parseView(location.hash)) chosen.set(key, value);
}

let writing = 0;
/** Browsers refuse many changes of the address in a short time: one for all of a quarter of a second. */
function write() {
  clearTimeout(writing);
  writing = window.setTimeout(() => {
    const text = printView(chosen);
    try {
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    } catch {
      // a page in a frame without rights: then the address stays as it is
    }
  }, 250);
}

if (typeof window !== "undefined") {
  read();
  window.addEventListener("hashchange", () => {
    read();
    listeners.forEach(tell => tell());
  });
}

export const getView = (key: string): string => chosen.get(key) ?? "";

export function setView(key: string, value: string) {
  if ((chosen.get(key) ?? "") === value) return;
  if (value === "" || value.length > kMostText) chosen.delete(key);
  else chosen.set(key, value);
  write();
  listeners.forEach(tell => tell());
}

/** A choice that is kept in the address; "" is the one that needs no words. */
export function useView(key: string): [string, (value: string) => void] {
  const [value, setValue] = useState(() => getView(key));
  useEffect(() => {
    const tell = () => setValue(getView(key));
    tell();
    listeners.add(tell);
    return () => void listeners.delete(tell);
  }, [key]);
  return [value, next => setView(key, next)];
}

/** "1200-4800": a stretch of time in milliseconds. */
export function parseRange(text: string): [number, number] | null {
  const found = /^(\d{1,12})-(\d{1,12})$/.exec(text);
  const [from, to] = found ? [Number(found[1]), Number(found[2])] : [0, 0];
  return found && to > from ? [from, to] : null;
}
export const printRange = (from: number, to: number): string => `${Math.max(0, Math.round(from))}-${Math.round(to)}`;

/** To a section by its name: the address stays that of the view. */
export function goTo(section: string) {
  setView("s", section);
  const place = document.getElementById(section);
  place?.scrollIntoView({block: "start"});
  const heading = place?.querySelector<HTMLElement>("h1, h2");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus({preventScroll: true});
  }
}
