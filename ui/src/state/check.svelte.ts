/**
 * "Check this reply": decodes a reply again without drafts and compares, one reply at a time.
 * Results are kept while the conversation is open.
 */
import { SvelteMap } from "svelte/reactivity";
import type { CheckProgress } from "../bindings/CheckProgress";
import type { Message } from "../bindings/Message";
import type { ReplyCheck } from "../bindings/ReplyCheck";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/errors";
import { t } from "../messages/say";

/** Outcome of a check: its result, or why it did not run. */
export type Finding = { check: ReplyCheck } | { refusal: string };

export class Check {
  /** The reply that is being checked. */
  running = $state<number | null>(null);
  stopping = $state(false);
  progress = $state.raw<CheckProgress | null>(null);

  readonly #backend: Backend;
  readonly #occupied: () => string | null;
  readonly #onDifference: (message: number, position: number) => void;
  readonly #findings = new SvelteMap<number, Finding>();

  /**
   * `occupied` returns why the engine is busy, checks included, or null. `onDifference` receives
   * the position of the first token that differs.
   */
  constructor(
    backend: Backend,
    occupied: () => string | null,
    onDifference: (message: number, position: number) => void,
  ) {
    this.#backend = backend;
    this.#occupied = occupied;
    this.#onDifference = onDifference;
  }

  of(message: number): Finding | undefined {
    return this.#findings.get(message);
  }

  /** Why a reply cannot be checked now; null if it can. */
  obstacleTo({ summary }: Message): string | null {
    return this.#occupied() ?? (summary === null ? t("reply.checkUnfinished") : null);
  }

  async start(message: number) {
    if (this.running === message) return;
    const refusal = this.#occupied();
    if (refusal !== null) {
      this.#findings.set(message, { refusal });
      return;
    }
    this.running = message;
    this.#findings.delete(message);
    try {
      const check = await this.#backend.checkReply(message, (progress) => {
        this.progress = progress;
      });
      this.#findings.set(message, { check });
      if (check.kind === "text" && check.difference) {
        this.#onDifference(message, check.difference.position);
      }
    } catch (thrown) {
      this.#findings.set(message, { refusal: errorWords(BackendError.from(thrown)) });
    } finally {
      this.running = null;
      this.stopping = false;
      this.progress = null;
    }
  }

  async stop() {
    if (this.running === null || this.stopping) return;
    this.stopping = true;
    try {
      await this.#backend.stop();
    } catch {
      // The check goes on; its result is awaited elsewhere.
      this.stopping = false;
    }
  }

  dismiss(message: number) {
    this.#findings.delete(message);
  }

  /** Drops the results of all replies except these. */
  retain(messages: ReadonlySet<number>) {
    for (const id of [...this.#findings.keys()]) if (!messages.has(id)) this.#findings.delete(id);
  }
}
