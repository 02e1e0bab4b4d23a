/**
 * Tokens in the model's context before the next message; the shell counts them after each change.
 */
import type { ContextUse } from "../bindings/ContextUse";
import type { Backend } from "../backend/backend";

const NOTHING: ContextUse = {
  used: { tokens: 0, exact: true },
  system_prompt: { tokens: 0, exact: true },
  attachments: { tokens: 0, exact: true },
  whole_files: null,
};

export class Context {
  use = $state.raw<ContextUse>(NOTHING);

  #asked = 0;
  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Shows the count of a reply under way. */
  hold(tokens: number) {
    this.use = { ...this.use, used: { tokens, exact: true } };
  }

  /** Counts for a conversation, or for a new one. */
  async count(conversation: number | null) {
    const asked = (this.#asked += 1);
    // A conversation that was just deleted uses no tokens.
    const use = await this.#backend.contextUse(conversation).catch(() => NOTHING);
    if (asked === this.#asked) this.use = use;
  }
}
