/** All stored conversations and their folders, shared by the chats of the window. */
import type { Conversation } from "../bindings/Conversation";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/errors";
import { Folders } from "./folders.svelte";
import type { Toasts } from "./toasts.svelte";

export class ConversationList {
  /** Pinned conversations first, then the newest. */
  all = $state.raw<Conversation[]>([]);
  loaded = $state(false);
  readonly folders: Folders;

  readonly #backend: Backend;
  readonly #toasts: Toasts;

  constructor(backend: Backend, toasts: Toasts) {
    this.#backend = backend;
    this.#toasts = toasts;
    this.folders = new Folders(
      backend,
      toasts,
      () => this.load(),
      (conversation) => this.update(conversation),
    );
  }

  async load() {
    try {
      const [all] = await Promise.all([this.#backend.conversations(), this.folders.load()]);
      this.all = all;
    } catch (thrown) {
      this.#toasts.show(errorWords(BackendError.from(thrown)));
    }
    this.loaded = true;
  }

  /** Inserts a conversation, or replaces its older state. */
  update(conversation: Conversation) {
    const others = this.all.filter(({ id }) => id !== conversation.id);
    this.all = [...others, conversation].sort(
      (a, b) => Number(b.pinned) - Number(a.pinned) || b.updated_at - a.updated_at,
    );
  }
}
