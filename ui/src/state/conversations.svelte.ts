/** The list of conversations, the open one and its messages. Writes nothing itself: asks the backend. */
import type { Conversation } from "../bindings/Conversation";
import type { Message } from "../bindings/Message";
import type { SearchHit } from "../bindings/SearchHit";
import { BackendError, type Backend } from "../backend/backend";
import { isImported } from "./imports.svelte";
import type { Toasts } from "./toasts.svelte";

export class Conversations {
  list = $state.raw<Conversation[]>([]);
  /** The open conversation; null is a new one that has no message yet. */
  current = $state<number | null>(null);
  messages = $state.raw<Message[]>([]);
  /** A message to bring into view, set by a search hit. */
  reveal = $state<number | null>(null);
  loaded = $state(false);

  readonly #backend: Backend;
  readonly #toasts: Toasts;

  constructor(backend: Backend, toasts: Toasts) {
    this.#backend = backend;
    this.#toasts = toasts;
  }

  /** The open conversation, if the store knows it. */
  get stored(): number | null {
    return isImported(this.current) ? null : this.current;
  }

  async load() {
    await this.#try(async () => {
      this.list = await this.#backend.conversations();
    });
    this.loaded = true;
  }

  async open(conversation: number, message: number | null = null) {
    if (this.current !== conversation) {
      this.current = conversation;
      this.messages = [];
    }
    await this.refresh();
    if (this.current === conversation) this.reveal = message;
  }

  /** Opens a conversation that is not stored. */
  show(conversation: number, messages: Message[]) {
    this.current = conversation;
    this.messages = messages;
    this.reveal = null;
  }

  /** Fetches the messages of the open conversation again. */
  async refresh() {
    const conversation = this.stored;
    if (conversation === null) return;
    await this.#try(async () => {
      const messages = await this.#backend.messages(conversation);
      if (this.current === conversation) this.messages = messages;
    });
  }

  startNew() {
    this.current = null;
    this.messages = [];
    this.reveal = null;
  }

  /** Puts a message in its place: over an older state of itself, or at the end. */
  place(message: Message) {
    if (message.conversation !== this.current) return;
    const known = this.messages.some(({ id }) => id === message.id);
    this.messages = known
      ? this.messages.map((old) => (old.id === message.id ? message : old))
      : [...this.messages, message];
  }

  /** Takes a message off the page: its conversation will hold another one instead. */
  takeOff(message: number) {
    this.messages = this.messages.filter(({ id }) => id !== message);
  }

  /** Puts a conversation in its place: pinned first, then newest. */
  update(conversation: Conversation) {
    const others = this.list.filter(({ id }) => id !== conversation.id);
    this.list = [...others, conversation].sort(
      (a, b) => Number(b.pinned) - Number(a.pinned) || b.updated_at - a.updated_at,
    );
  }

  async rename(conversation: Conversation, title: string) {
    const wanted = title.trim();
    if (wanted === "" || wanted === conversation.title) return;
    await this.#try(async () => {
      this.update(await this.#backend.rename(conversation.id, wanted));
    });
  }

  async togglePin({ id, pinned }: Conversation) {
    await this.#try(async () => {
      this.update(await this.#backend.pin(id, !pinned));
    });
  }

  async delete({ id, title }: Conversation) {
    await this.#try(async () => {
      await this.#backend.delete(id);
      this.list = this.list.filter((other) => other.id !== id);
      if (this.current === id) this.startNew();
      const run = () => void this.#restore(id);
      this.#toasts.show(`Deleted “${title}”`, { label: "Undo", run });
    });
  }

  async search(query: string): Promise<SearchHit[]> {
    let hits: SearchHit[] = [];
    await this.#try(async () => {
      hits = await this.#backend.search(query);
    });
    return hits;
  }

  async #restore(conversation: number) {
    await this.#try(async () => {
      this.update(await this.#backend.restore(conversation));
      if (this.current === null) await this.open(conversation);
    });
  }

  async #try(act: () => Promise<void>) {
    try {
      await act();
    } catch (thrown) {
      this.#toasts.show(BackendError.from(thrown).message);
    }
  }
}
