import {kVerdicts, threadLink} from "./answer";
import {Badge, Fix} from "./Answer";
import {isMain, processOf, type Run} from "./decode";
import {bytes, shown} from "./format";
import {processName} from "./series";
import {Cohorts, Probes, probesOf, roundsOf, Slope} from "./SmallCharts";
import type {FindingData, PlaceData} from "./types";
import {Empty, Words} from "./Words";

export function Source({place}: {place: PlaceData}) {
  const lines = place.source && !place.source.changed ? place.source : place.snippet ? {from: place.line, lines: [place.snippet]} : null;
  return (
    <div class="source">
      <div class="head">{shown(place.file)}:{place.line}{place.function && place.function !== "<module>" && <> in <code>{shown(place.function, 200)}</code></>}</div>
      {lines && (
        <ol tabIndex={0} aria-label={`Source around line ${place.line}`}>
          {lines.lines.map((text, i) => (
            <li key={i} class={lines.from + i === place.line ? "blamed" : ""} aria-current={lines.from + i === place.line ? "true" : undefined}>
              <span>{lines.from + i}</span>
              <span>{shown(text) || " "}</span>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

function Rate({finding}: {finding: FindingData}) {
  if (!(finding.rate > 0)) return <span class="muted">{bytes(finding.total)} in all</span>;
  return (
    <span class="muted">
      {bytes(finding.rate)} {shown(finding.each, 80)} ({bytes(Math.max(0, finding.rate_range[0]))} to {bytes(finding.rate_range[1])}), seen over {shown(finding.seen_over, 80)}, {bytes(finding.total)} in all
    </span>
  );
}

/** In which memory, where that is not the main process's own. */
function where(run: Run, f: FindingData): string {
  const process = processOf(run, f);
  const who = f.processes > 1 ? `in ${f.processes} processes` : isMain(run, f) ? "" : process ? `in ${shown(processName(process), 80)}` : "in another process";
  return [f.space === "host" ? "" : f.space === "shared" ? "in shared memory" : `on ${shown(f.space, 40)}`, who].filter(Boolean).join(", ");
}

function Card({run, finding}: {run: Run; finding: FindingData}) {
  const tone = (kVerdicts[finding.kind] ?? kVerdicts.unsure).tone;
  const f = finding.forecast;
  const first = run.data.findings.find(k => k.sets_verdict) === finding;
  return (
    <article class={`card finding tone-${tone}`}>
      <div class="head">
        <Badge kind={finding.kind} />
        <Rate finding={finding} />
        {where(run, finding) && <span class="muted">{where(run, finding)}</span>}
        <span class="muted">{finding.cause && `cause ${shown(finding.cause, 40)}`}</span>
      </div>
      <h3 class="title"><Words text={finding.title} /></h3>
      <div class="columns">
        <div>
          {finding.evidence.length > 0 && (
            <div class="block">
              <h4 class="label">Because</h4>
              <ul class="evidence">{finding.evidence.map((sentence, i) => <li key={i}><Words text={sentence} /></li>)}</ul>
            </div>
          )}
        </div>
        <div>
          {finding.blame && <div class="block"><Source place={finding.blame} /></div>}
          {(finding.holder || finding.chain.length > 0) && (
            <div class="block">
              <h4 class="label">Held by</h4>
              {finding.chain.length > 0 ? (
                <ol class="chain">
                  {finding.chain.map((step, i) => [
                    i > 0 ? <li class="arrow" aria-hidden="true" key={`a${i}`}>←</li> : null,
                    <li key={i}>{shown(step, 200)}</li>,
                  ])}
                </ol>
              ) : (
                <p><Words text={finding.holder} /></p>
              )}
            </div>
          )}
          {f && (
            <div class="block">
              <h4 class="label">Forecast</h4>
              <p>
                {shown(f.words, 400)}
              </p>
            </div>
          )}
          {finding.threads.length > 0 && (
            <div class="block">
              <h4 class="label">Others met it here</h4>
              <ul class="threads">
                {finding.threads.map(t => {
                  const link = threadLink(t);
                  return <li key={t}>{link ? <a href={link} rel="noreferrer noopener" target="_blank">{shown(t, 80)}</a> : shown(t, 80)}</li>;
                })}
              </ul>
            </div>
          )}
          {finding.fix && !first && <Fix finding={finding} level={4} />}
        </div>
      </div>
      <div class="small-charts">
        <Slope periods={roundsOf(run, finding)} finding={finding} />
        <Cohorts finding={finding} />
        <Probes all={probesOf(run, finding)} />
      </div>
    </article>
  );
}

export function Findings({run}: {run: Run}) {
  const {findings, advice} = run.data;
  const large = findings.filter(f => f.sets_verdict);
  const small = findings.filter(f => !f.sets_verdict);
  return (
    <section id="findings" aria-labelledby="findings-title">
      <div class="section-head"><h2 id="findings-title">What was found</h2></div>
      <div class="findings">
        {findings.length === 0 && (
          <div class="card"><Empty title={run.data.verdict === "flat" ? "Nothing to find: memory does not grow" : "No cause was named"}>{run.data.verdict === "flat" ? "Every round ends where the one before ended." : "What would settle it is said at the top."}</Empty></div>
        )}
        {large.map((f, i) => <Card key={i} run={run} finding={f} />)}
        {small.length > 0 && (
          <div class="card">
            <h3 class="label">Too small to count</h3>
            <ul class="evidence">{small.map((f, i) => <li key={i}>{(kVerdicts[f.kind] ?? kVerdicts.unsure).name}, {bytes(f.total)}: <Words text={f.title} /></li>)}</ul>
          </div>
        )}
        {advice.length > 0 && (
          <div class="card">
            <h3 class="label">Advice</h3>
            <ul class="evidence">{advice.map((a, i) => <li key={i}><Words text={a.text} />{a.place && <span class="muted mono"> {shown(a.place.file, 200)}:{a.place.line}</span>}</li>)}</ul>
          </div>
        )}
      </div>
    </section>
  );
}
