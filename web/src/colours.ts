/** The colours of the theme that is on, for what is drawn on a canvas. */
import type {Band} from "./series";

export interface Colours {
  surface: string;
  sunken: string;
  ink: string;
  ink3: string;
  line: string;
  lineStrong: string;
  accent: string;
  accentSoft: string;
  bad: string;
  probe: string;
  resident: string;
  rest: string;
  retained: string;
  band: string[];
  sans: string;
}

export function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    surface: get("surface"), sunken: get("sunken"), ink: get("ink"), ink3: get("ink-3"), line: get("line"), lineStrong: get("line-strong"), accent: get("accent"),
    accentSoft: get("accent-soft"), bad: get("bad"), probe: get("probe"), resident: get("resident"), rest: get("rest"), retained: get("retained"), sans: get("sans"),
    band: Array.from({length: 8}, (_, i) => get(`band-${i}`)),
  };
}

/** Grey for what is the program itself, the palette for what it holds. */
export function bandColour(c: Colours, bands: Band[], i: number): string {
  const kind = bands[i].kind;
  if (kind === "retained") return c.retained;
  const before = bands.slice(0, i).filter(b => b.kind === kind).length;
  if (kind === "rest") return before === 0 ? c.rest : `color-mix(in srgb, ${c.rest} ${100 - 18 * Math.min(4, before)}%, ${c.surface})`;
  return c.band[before % c.band.length];
}

const patterns = new Map<string, CanvasPattern>();

/** Slanted lines: for what is free but kept, so that it is told from what is in use without its colour. */
export function hatch(colour: string, ground: string): CanvasPattern | string {
  const key = colour + ground;
  const known = patterns.get(key);
  if (known) return known;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const ctx = tile.getContext("2d")!;
  ctx.fillStyle = ground;
  ctx.fillRect(0, 0, 8, 8);
  ctx.fillStyle = colour;
  ctx.globalAlpha = 0.35;
  ctx.fillRect(0, 0, 8, 8);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2;
  ctx.beginPath();
  for (const o of [-8, 0, 8]) {
    ctx.moveTo(o, 8);
    ctx.lineTo(o + 8, 0);
  }
  ctx.stroke();
  const made = ctx.createPattern(tile, "repeat");
  if (!made) return colour;
  patterns.set(key, made);
  return made;
}
