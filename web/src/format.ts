/** Numbers and names as people read them. Bytes read as they do in the terminal (src/base: to_string(Bytes)). */

const kUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** "512 B", "14.2 KiB", "1.21 GiB": three digits, units of 1024. */
export function bytes(n: number): string {
  if (!Number.isFinite(n)) return "not measured";
  let v = Math.abs(n);
  let unit = 0;
  while (unit < 5 && v >= 1023.5) {
    v /= 1024;
    ++unit;
  }
  const sign = n < 0 ? "-" : "";
  if (unit === 0) return `${sign}${Math.round(v)} B`;
  return `${sign}${v.toFixed(v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2)} ${kUnits[unit]}`;
}

export function signedBytes(n: number): string {
  return n > 0 ? `+${bytes(n)}` : bytes(n);
}

/** Every byte: "104,333,312 B". */
export function exact(n: number): string {
  return Number.isFinite(n) ? `${thousands(n)} B` : "not measured";
}

export function thousands(n: number): string {
  const text = String(Math.trunc(Math.abs(n)));
  return (n < 0 ? "-" : "") + text.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** An amount that was estimated from samples, with what 95 % lie within; as the terminal has it (src/report/text: with_error). */
export function withError(n: number, error: number): string {
  return error >= 0.005 * Math.abs(n) && error > 0 ? `${bytes(n)} ± ${bytes(error)}` : bytes(n);
}

/** The same to the byte; digits alone only where nothing was left to chance. */
export function estimated(n: number, error: number): string {
  return error >= 1 ? `${exact(n)} ± ${exact(Math.round(error))}, estimated from samples` : exact(n);
}

/** Limits by what they are (src/watch/limits). */
export function limitName(name: string): string {
  const words: Record<string, string> = {machine: "what this machine has free", cgroup: "the container's (cgroup)", "--limit": "as asked with --limit"};
  return words[name] ?? shown(name, 40);
}

/** A moment of the run, from milliseconds: "0.42 s", "3:07", "1:02:07". */
export function clock(ms: number): string {
  const s = ms / 1000;
  if (s < 100) return `${s.toFixed(s < 10 ? 2 : 1)} s`;
  const whole = Math.round(s);
  const two = (n: number) => String(n).padStart(2, "0");
  const h = Math.floor(whole / 3600);
  const m = Math.floor((whole % 3600) / 60);
  return h ? `${h}:${two(m)}:${two(whole % 60)}` : `${m}:${two(whole % 60)}`;
}

function tenths(n: number): string {
  const rounded = Math.round(n * 10) / 10;
  return rounded >= 10 || rounded === Math.floor(rounded) ? thousands(Math.round(n)) : rounded.toFixed(1);
}

/** As the sentence says it (src/verdict/numbers: duration): one time has one number on the page. */
export function duration(seconds: number): string {
  if (seconds < 0.0995) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 0.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${tenths(seconds / 3600)} h`;
  return `${tenths(seconds / 86400)} days`;
}

export function percent(share: number): string {
  if (!Number.isFinite(share)) return "";
  const p = share * 100;
  return `${p >= 99.95 || p === 0 ? Math.round(p) : p >= 10 ? p.toFixed(1) : p.toFixed(p < 0.1 ? 2 : 1)} %`;
}

/**
 * Text of a stranger, as text: control characters, and those that are unseen or turn the direction of writing, become marks that can be seen.
 * Preact writes text nodes, so nothing in it is ever markup; this keeps it from misleading the eye.
 */
export function shown(text: string, most = 2000): string {
  let out = "";
  for (const c of text.length > most ? `${text.slice(0, most / 2)} … ${text.slice(-most / 2)}` : text) {
    const code = c.codePointAt(0)!;
    const control = (code < 0x20 && c !== "\n" && c !== "\t") || (code >= 0x7f && code < 0xa0);
    const unseen =
      (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code === 0xfeff || code === 0x61c ||
      code === 0xad || (code >= 0xe0000 && code <= 0xe0fff) || (code >= 0xd800 && code <= 0xdfff);
    out += control && code < 0x20 ? String.fromCodePoint(0x2400 + code) : control || unseen ? "\ufffd" : c;
  }
  return out;
}

/** The last part of a path. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}

/** The end of a long path, at a folder where possible. */
export function shortPath(path: string, most = 48): string {
  if (path.length <= most) return path;
  const tail = path.slice(path.length - most + 1);
  const slash = tail.indexOf("/");
  return `…${slash > 0 && slash < most / 2 ? tail.slice(slash) : tail}`;
}

export function plural(n: number, word: string): string {
  return `${thousands(n)} ${word}${n === 1 ? "" : /(?:tch|sh|s|x)$/.test(word) ? "es" : "s"}`;
}

/** Of "/usr/bin/python3 -u -X dev /home/ann/train.py --epochs 3" what a person calls it: "train.py --epochs 3". */
export function scriptFirst(command: string): string {
  const words = command.split(" ");
  if (!/^python[\d.]*$/.test(baseName(words[0]))) return words[0].includes("/") ? [baseName(words[0]), ...words.slice(1)].join(" ") : command;
  let i = 1;
  while (i < words.length && words[i].startsWith("-")) {
    if (words[i] === "-m") return words.slice(i + 1).join(" ") || command;
    if (words[i] === "-c") return ["python", ...words.slice(i)].join(" ");
    i += words[i] === "-X" || words[i] === "-W" ? 2 : 1;
  }
  return i < words.length ? [baseName(words[i]), ...words.slice(i + 1)].join(" ") : command;
}
