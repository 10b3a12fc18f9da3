/** The page of a run that goes on: news by server-sent events, the document fetched again when there is some. */
import {inflate, parseDocument} from "./decode";
import type {PageData} from "./types";

export type Connection = "live" | "lost" | "over";

/** `from` is the address of the page, with the token in it. */
export function follow(from: string, onData: (data: PageData) => void, onState: (state: Connection) => void): () => void {
  let seen = "";
  let busy = false;
  let over = false;
  const load = async (version: string) => {
    if (busy || version === seen) return;
    busy = true;
    try {
      const reply = await fetch(`${from}data`, {cache: "no-store"});
      if (!reply.ok) throw new Error(`the server said ${reply.status}`);
      onData(parseDocument(await inflate(new Uint8Array(await reply.arrayBuffer()))));
      seen = version;
    } finally {
      busy = false;
    }
  };
  const events = new EventSource(`${from}events`);
  events.addEventListener("news", e => {
    onState("live");
    load((e as MessageEvent<string>).data).catch(() => onState("lost"));
  });
  events.addEventListener("over", e => {
    over = true; // the stream stays: it says that this page is open, for which the server stays too
    load((e as MessageEvent<string>).data).catch(() => {}).then(() => onState("over"));
  });
  events.onerror = () => {
    if (over) events.close();
    else onState("lost"); // the browser tries again by itself
  };
  return () => events.close();
}
