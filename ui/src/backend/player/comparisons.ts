/** Comparisons of the player: checks of replies, and arenas. */
import type { Arena } from "../../bindings/Arena";
import type { ReplyCheck } from "../../bindings/ReplyCheck";
import { BackendError } from "../backend";
import type { Handlers } from "./answers";
import type { Context } from "./context";
import type { Engine } from "./engine";
import type { Traces } from "./traces";

const NO_TRACE =
  "the trace of this reply was not kept, and without it there is nothing to compare with. Settings > Data keeps the traces of later replies.";

export class Comparisons {
  readonly handlers: Handlers;
  #arenas: Arena[] = [];
  #nextId = 1;

  constructor(engine: Engine, context: Context, traces: Traces) {
    this.handlers = {
      check_reply: async ({ message, onProgress }) => {
        if (!traces.has(message)) throw new BackendError("not_found", NO_TRACE);
        engine.refuseUnready();
        return (await engine.run("check_reply", onProgress)) as ReplyCheck;
      },
      run_arena: async ({ request, onEvents }) => {
        const { prompt, max_tokens } = request;
        context.refusePrompt(prompt);
        const answer = (await engine.run("run_arena", onEvents)) as Arena;
        const created = { id: this.#nextId++, created_at: Date.now() };
        const arena: Arena = { ...answer, ...created, prompt, max_tokens };
        this.#arenas = [arena, ...this.#arenas];
        return arena;
      },
      arenas: () => this.#arenas,
      delete_arena: ({ id }) => (this.#arenas = this.#arenas.filter((arena) => arena.id !== id)),
    };
  }
}
