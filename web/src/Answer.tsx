import {codeChange, kVerdicts, leading} from "./answer";
import type {Run} from "./decode";
import {baseName, bytes, duration, limitName, scriptFirst, shown, signedBytes} from "./format";
import type {FindingData, Kind} from "./types";
import {copyText} from "./export";
import {treePeak} from "./series";
import {Action} from "./Tools";
import {Words} from "./Words";

export function Badge({kind}: {kind: Kind}) {
  const v = kVerdicts[kind] ?? kVerdicts.unsure;
  return (
    <span class={`badge tone-${v.tone}`}>
      <span class="sign" aria-hidden="true">{v.sign}</span>
      {v.name}
    </span>
  );
}

/** The fix: as a change of code where it is one, and in words. */
export function Fix({finding, level}: {finding: FindingData; level: 2 | 4}) {
  const Heading = `h${level}` as const;
  const change = codeChange(finding.fix);
  const place = finding.blame;
  return (
    <div class="fix">
      <Heading class="label">Fix</Heading>
      {change && (
        <div class="change">
          <span class="in-corner"><Action name="Copy" label="Copy the fix" run={() => copyText(change.add || change.remove)} /></span>
          {place && <div class="head">{shown(place.file)}, line {place.line}</div>}
          {change.remove && <div class="row minus"><span class="hidden">take out: </span><span aria-hidden="true">- </span>{shown(change.remove)}</div>}
          {change.add && <div class="row plus"><span class="hidden">write: </span><span aria-hidden="true">+ </span>{shown(change.add)}</div>}
        </div>
      )}
      <p><Words text={finding.fix} /></p>
    </div>
  );
}

function Number({name, value, more}: {name: string; value: string; more?: string}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}{more && <small>{more}</small>}</dd>
    </div>
  );
}

function ending(run: Run, live: boolean): string | undefined {
  const f = run.data.facts;
  if (f.signal) return `ended by signal ${f.signal}`;
  if (f.exit_code) return `exit code ${f.exit_code}`;
  if (!f.ended) return live ? "and goes on" : "it had not ended";
  return undefined;
}

export function Answer({run, live}: {run: Run; live: boolean}) {
  const {data} = run;
  const verdict = kVerdicts[data.verdict] ?? kVerdicts.unsure;
  const finding = leading(data.findings);
  const facts = data.facts;
  const last = facts.last_round;
  const end = last?.rss ?? facts.end;
  const tree = treePeak(run);
  const pool = finding && run.pools.find(p => p.space === finding.space && p.process === finding.process);
  const early = live && data.early;
  return (
    <section class={`card answer tone-${early ? "info" : verdict.tone}`} aria-label="The answer" id="answer">
      {early ? <span class="badge tone-info"><span class="sign" aria-hidden="true">◌</span>Watching …</span> : <Badge kind={data.verdict} />}
      <span class="means">{early ? "nothing is said before its loop has gone round a few times" : verdict.means}</span>
      <h1><Words text={data.sentence} /></h1>
      {data.would_settle && !data.sentence.includes(data.would_settle) && <p class="settle">What would settle it: <Words text={data.would_settle} /></p>}
      {finding?.fix && <Fix finding={finding} level={2} />}
      <dl class="numbers">
        {facts.peak > 0 && <Number name={tree ? "Peak of the main process" : "Peak"} value={bytes(facts.peak)} more={facts.planned ? `of it planned: ${bytes(facts.planned)}` : undefined} />}
        {tree && <Number name={`Peak of all ${tree.processes} together`} value={bytes(tree.rss)} more={tree.pss > 0 ? `${bytes(tree.pss)} with shared pages once` : "shared pages count in each"} />}
        {pool && <Number name={`Most in use of ${shown(pool.space, 40)}`} value={bytes(pool.peak)} more={`by ${shown(pool.pool, 40)}`} />}
        {finding && finding.rate > 0 && finding.kind === "leak" && (
          <Number name={`Grows, ${shown(finding.each, 80)}`} value={signedBytes(finding.rate)} more={`seen over ${shown(finding.seen_over, 80)}`} />
        )}
        {end > 0 && <Number name={last ? `After the last ${shown(last.name, 40)}` : "At the end"} value={bytes(end)} more={facts.baseline > 0 ? `${signedBytes(end - facts.baseline)} since the start` : undefined} />}
        {finding?.forecast && (
          <Number
            name={`Limit of ${bytes(finding.forecast.bytes)}`}
            value={`in ${duration(finding.forecast.seconds)}`}
            more={finding.forecast.round || limitName(finding.forecast.limit)}
          />
        )}
        <Number name="Ran for" value={duration(facts.seconds)} more={ending(run, live)} />
      </dl>
    </section>
  );
}

export function runName(run: Run): string {
  return scriptFirst(run.data.facts.command) || run.data.title || baseName(run.data.name);
}
