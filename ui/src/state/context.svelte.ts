/** Tokens in the model's context before the next message: counted by the shell when they may have changed. */
import type { ContextUse } from "../bindings/ContextUse";
import type { Backend } from "../backend/backend";

const NOTHING: ContextUse = {
  used: { tokens: 0, exact: true },
  system_prompt: { tokens: 0, exact: true },
  attachments: { tokens: 0, exact: true },
};

export class Context {
  use = $state.raw<ContextUse>(NOTHING);

  #asked = 0;
  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Takes over what a reply under way has counted so far. */
  hold(tokens: number) {
    this.use = { ...this.use, used: { tokens, exact: true } };
  }

  /** Counts for this conversation, or for one that is about to begin. */
  async count(conversation: number | null) {
    const asked = (this.#asked += 1);
    // A conversation that was just deleted takes nothing.
    const use = await this.#backend.contextUse(conversation).catch(() => NOTHING);
    if (asked === this.#asked) this.use = use;
  }
}
