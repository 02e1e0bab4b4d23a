/** What is typed and not sent: a text for each conversation, kept over a restart. */
import { SvelteMap } from "svelte/reactivity";
import type { Backend } from "../backend/backend";

const SAVE_AFTER_MS = 500;

export class Unsent {
  /** By conversation; null is one that is to come. */
  readonly #texts = new SvelteMap<number | null, string>();
  readonly #timers = new Map<number | null, ReturnType<typeof setTimeout>>();
  readonly #backend: Pick<Backend, "unsent" | "saveUnsent">;

  constructor(backend: Pick<Backend, "unsent" | "saveUnsent">) {
    this.#backend = backend;
  }

  /** Reads what was kept. What was typed meanwhile is newer. */
  async load() {
    const kept = await this.#backend.unsent().catch(() => []);
    for (const { conversation, text } of kept) {
      if (!this.#texts.has(conversation)) this.#texts.set(conversation, text);
    }
  }

  of(conversation: number | null): string {
    return this.#texts.get(conversation) ?? "";
  }

  /** Changes it at once; several changes in a row are saved once. */
  set(conversation: number | null, text: string) {
    this.#texts.set(conversation, text);
    // One that was opened from a file is not stored.
    if (conversation !== null && conversation < 0) return;
    clearTimeout(this.#timers.get(conversation));
    const save = () => void this.#saveOne(conversation);
    this.#timers.set(conversation, setTimeout(save, SAVE_AFTER_MS));
  }

  /** Saves what is not yet saved. */
  async save() {
    const waiting = [...this.#timers.keys()];
    for (const timer of this.#timers.values()) clearTimeout(timer);
    await Promise.all(waiting.map((conversation) => this.#saveOne(conversation)));
  }

  async #saveOne(conversation: number | null) {
    this.#timers.delete(conversation);
    try {
      await this.#backend.saveUnsent({ conversation, text: this.of(conversation) });
    } catch {
      // The text is on the page; its conversation may be gone.
    }
  }
}
