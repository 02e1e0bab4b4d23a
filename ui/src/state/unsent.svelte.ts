/** Unsent texts and edits of questions, kept over a restart. */
import { SvelteMap } from "svelte/reactivity";
import type { UnsentEdit } from "../bindings/UnsentEdit";
import type { Backend } from "../backend/backend";

const SAVE_AFTER_MS = 500;

type UnsentStore = Pick<
  Backend,
  "unsent" | "saveUnsent" | "unsentEdits" | "saveUnsentEdit" | "removeUnsentEdit"
>;
type Edit = Pick<UnsentEdit, "text" | "kept">;

export class Unsent {
  /** Texts by conversation; null is a new one. */
  readonly #texts = new SvelteMap<number | null, string>();
  /** Edits by question. */
  readonly #edits = new Map<number, Edit>();
  readonly #waiting = new Map<
    string,
    { timer: ReturnType<typeof setTimeout>; save: () => Promise<unknown> }
  >();
  readonly #backend: UnsentStore;

  constructor(backend: UnsentStore) {
    this.#backend = backend;
  }

  /** Loads the stored texts. A text typed meanwhile is newer. */
  async load() {
    const edits = this.#backend.unsentEdits().catch(() => []);
    for (const { conversation, text } of await this.#backend.unsent().catch(() => [])) {
      if (!this.#texts.has(conversation)) this.#texts.set(conversation, text);
    }
    for (const { message, ...edit } of await edits) {
      if (!this.#edits.has(message)) this.#edits.set(message, edit);
    }
  }

  of(conversation: number | null): string {
    return this.#texts.get(conversation) ?? "";
  }

  /** Changes a text at once; several changes in a row are saved once. */
  set(conversation: number | null, text: string) {
    this.#texts.set(conversation, text);
    // A conversation that was opened from a file is not stored.
    if (conversation !== null && conversation < 0) return;
    this.#saveLater(`text ${conversation}`, () =>
      this.#backend.saveUnsent({ conversation, text: this.of(conversation) }),
    );
  }

  editOf(message: number): Edit | null {
    return this.#edits.get(message) ?? null;
  }

  /** Changes the edit of a question at once; null removes it. */
  edit(message: number, edit: Edit | null) {
    if (edit) this.#edits.set(message, edit);
    else if (!this.#edits.delete(message)) return;
    this.#saveLater(`edit ${message}`, () => {
      const edited = this.#edits.get(message);
      return edited
        ? this.#backend.saveUnsentEdit({ message, ...edited })
        : this.#backend.removeUnsentEdit(message);
    });
  }

  /** Saves pending changes. */
  async save() {
    await Promise.all([...this.#waiting.keys()].map((key) => this.#saveOne(key)));
  }

  #saveLater(key: string, save: () => Promise<unknown>) {
    // Continuous changes are saved at intervals: the page may close at any moment.
    if (this.#waiting.has(key)) return;
    const timer = setTimeout(() => void this.#saveOne(key), SAVE_AFTER_MS);
    this.#waiting.set(key, { timer, save });
  }

  async #saveOne(key: string) {
    const waiting = this.#waiting.get(key);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(key);
    // A text whose conversation is gone stays on the page.
    await waiting?.save().catch(() => undefined);
  }
}
