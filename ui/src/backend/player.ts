/**
 * Backend in an ordinary browser, for work on the page without the shell, and for tests. Plays
 * recorded calls of the shell's commands; what a person changes is kept in memory. Options in the
 * address:
 *
 * - `?engine=loading` and `?engine=failed` keep the engine in that state.
 * - `?speed=1` plays at the recorded pace; the default is a twentieth of it, since the starter pair
 *   is too fast to watch.
 * - `?rate=2000` streams an endless synthetic reply of that many tokens per second, after
 *   `?rounds=100000` rounds at once.
 * - `?messages=500` adds a conversation of that many messages.
 * - `?downloads=sample` begins with a download in every state.
 * - `?trace=` and an address open an exported trace.
 */
import type { Commands } from "../bindings/commands";
import { BackendError, type Backend } from "./backend";
import { backendOver, type Call } from "./commands";
import { answered, type Args, type Handlers } from "./player/answers";
import { Comparisons } from "./player/comparisons";
import { Context } from "./player/context";
import { Drops } from "./player/drops";
import { Engine } from "./player/engine";
import { History } from "./player/history";
import { Hub } from "./player/hub";
import { Preferences } from "./player/preferences";
import { Replies } from "./player/replies";
import { Traces } from "./player/traces";

/** The backend of an ordinary browser; the engine is ready after `settleMs`. */
export function player(options: URLSearchParams, settleMs = 350): Backend {
  const handlers = handlersOf(options, settleMs);
  const call: Call = async <Name extends keyof Commands>(name: Name, args: Args<Name>) => {
    const handler = handlers[name];
    return (await (handler ? handler(args) : answered(name, args))) as Commands[Name]["returns"];
  };
  const trace = options.get("trace");
  return {
    ...backendOver(call, (onmessage) => ({ onmessage })),
    traceToOpen: () => (trace === null ? Promise.resolve(null) : fetched(trace)),
  };
}

function handlersOf(options: URLSearchParams, settleMs: number): Handlers {
  const engine = new Engine(options, settleMs);
  const hub = new Hub(options.get("downloads") === "sample", (model) => engine.addTarget(model));
  const drops = new Drops();
  const preferences = new Preferences(engine);
  const traces = new Traces();
  const history = new History(engine, traces);
  const context = new Context(engine, history);
  const replies = new Replies(options, { engine, history, traces, context, preferences });
  const comparisons = new Comparisons(engine, context, traces);
  const parts = [engine, hub, drops, preferences, traces, history, context, replies, comparisons];
  return Object.assign(
    { save_file: saved, show_preview: previewed, print },
    ...parts.map(({ handlers }) => handlers),
  ) as Handlers;
}

/** Saves a text as a download of the browser. */
function saved({ name, text }: Args<"save_file">): string {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  return name;
}

function previewed({ document }: Args<"show_preview">): string {
  return `data:text/html;charset=utf-8,${encodeURIComponent(document)}`;
}

function print(): null {
  window.print();
  return null;
}

async function fetched(address: string): Promise<File> {
  const refused = (reason: string) =>
    new BackendError("not_found", `${address} could not be fetched: ${reason}. Check the address.`);
  const answer = await fetch(address).catch((thrown: unknown) => {
    throw refused(thrown instanceof Error ? thrown.message : String(thrown));
  });
  if (!answer.ok) throw refused(`the answer was ${answer.status}`);
  return new File([await answer.blob()], address.split("/").at(-1) ?? address);
}
