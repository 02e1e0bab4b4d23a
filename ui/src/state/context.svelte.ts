/** What takes room in the context besides what was said: counted by the shell when it may have changed. */
import type { ContextUse } from "../bindings/ContextUse";
import type { Backend } from "../backend/backend";

const NOTHING: ContextUse = {
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

  /** Counts for this conversation, or for one that is about to begin. */
  async count(conversation: number | null) {
    const asked = (this.#asked += 1);
    // A conversation that was just deleted takes nothing.
    const use = await this.#backend.contextUse(conversation).catch(() => NOTHING);
    if (asked === this.#asked) this.use = use;
  }
}
