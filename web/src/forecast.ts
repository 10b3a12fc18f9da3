/** How memory would go on: from the last point to the limit, as early and as late as the rate allows. */
import {leading} from "./answer";
import {processOf, type Run} from "./decode";

export interface ForecastBand {
  from: {t: number; bytes: number};
  limit: number;
  name: string;
  /** when the limit is reached, in milliseconds: at the earliest, most likely, at the latest */
  early: number;
  likely: number;
  late: number;
}

/** Of the process whose story the run tells: what another one, or a GPU, would reach is not in its line. */
export function forecastBand(run: Run): ForecastBand | null {
  const finding = leading(run.data.findings);
  if (!finding || finding.space !== "host" || processOf(run, finding) !== run.of) return null;
  const f = finding.forecast;
  const n = run.resident.t.length;
  if (!f || n === 0 || !(f.seconds > 0)) return null;
  // From the last round that was compared: as a program ends it gives much back, which says nothing of how it would have gone on.
  const last = run.periods ? run.periods.rss.findLastIndex(v => v > 0) : -1;
  const from = last >= 0 ? {t: run.periods!.t[last], bytes: run.periods!.rss[last]} : {t: run.end, bytes: run.resident.rss[n - 1]};
  const [a, b] = f.seconds_range;
  const low = a > 0 ? Math.min(a, f.seconds) : f.seconds;
  const high = b > 0 && Number.isFinite(b) ? Math.max(b, f.seconds) : f.seconds;
  return {from, limit: f.bytes, name: f.limit, early: run.end + low * 1000, likely: run.end + f.seconds * 1000, late: run.end + high * 1000};
}

/** Least, likely and most bytes at a moment after the end. */
export function forecastAt(band: ForecastBand, t: number): {low: number; likely: number; high: number} {
  const at = (end: number) => band.from.bytes + ((band.limit - band.from.bytes) * (t - band.from.t)) / (end - band.from.t);
  return {low: at(band.late), likely: at(band.likely), high: at(band.early)};
}
