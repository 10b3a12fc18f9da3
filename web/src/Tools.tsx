import {useRef, useState} from "preact/hooks";
import {copyText, csvText, download, savePng, saveSvg} from "./export";

/** A small button that says what came of it for a moment. */
export function Action({name, label, run}: {name: string; label: string; run(): boolean | Promise<boolean>}) {
  const [said, setSaid] = useState("");
  const later = useRef(0);
  const click = async () => {
    const good = await Promise.resolve().then(run).catch(() => false);
    setSaid(good ? "done" : "refused");
    clearTimeout(later.current);
    later.current = window.setTimeout(() => setSaid(""), 1600);
  };
  return (
    <button class="small-button" aria-label={label} title={label} onClick={click}>
      {said === "done" ? "✓" : said === "refused" ? "✕" : name}
      <span class="hidden" role="status">{said === "done" ? `${label}: done` : said === "refused" ? `${label}: the browser refused` : ""}</span>
    </button>
  );
}

/** SVG and PNG of the drawing that `find` gives. */
export function SaveChart({name, of, find}: {name: string; of: string; find(): SVGSVGElement | null | undefined}) {
  const save = async (how: typeof savePng | typeof saveSvg) => {
    const svg = find();
    if (!svg) return false;
    await how(svg, name);
    return true;
  };
  return (
    <span class="save" role="group" aria-label={`Save ${of}`}>
      <Action name="SVG" label={`Save ${of} as SVG`} run={() => save(saveSvg)} />
      <Action name="PNG" label={`Save ${of} as PNG`} run={() => save(savePng)} />
    </span>
  );
}

export function SaveTable({name, of, head, rows}: {name: string; of: string; head: string[]; rows(): (string | number | null)[][]}) {
  return (
    <span class="save" role="group" aria-label={`Take ${of} along`}>
      <Action name="Copy" label={`Copy ${of}`} run={() => copyText([head, ...rows()].map(r => r.map(v => (v === null ? "" : String(v).replace(/[\t\n\r]/g, " "))).join("\t")).join("\n"))} />
      <Action
        name="CSV" label={`Save ${of} as CSV`}
        run={() => {
          download(`${name}.csv`, new Blob([csvText(head, rows())], {type: "text/csv;charset=utf-8"}));
          return true;
        }}
      />
    </span>
  );
}
