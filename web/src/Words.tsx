import {pieces} from "./answer";
import {shown} from "./format";

/** A sentence of the verdict: what stands in backticks is code. Always text, never markup. */
export function Words({text}: {text: string}) {
  return <>{pieces(shown(text)).map((piece, i) => (piece.code ? <code key={i}>{piece.text}</code> : piece.text))}</>;
}

export function Empty({title, children}: {title: string; children?: string}) {
  return (
    <p class="empty">
      <strong>{title}</strong>
      {children}
    </p>
  );
}
