/** The list of conversations, the open one and its messages. Writes nothing itself: asks the backend. */
import type { Conversation } from "../bindings/Conversation";
import type { Message } from "../bindings/Message";
import type { SearchHit } from "../bindings/SearchHit";
import { BackendError, type Backend } from "../backend/backend";
import { isImported } from "./imports.svelte";
import type { Toasts } from "./toasts.svelte";
import { t } from "../messages/say";
import { errorWords } from "../messages/shell";

/** How often it is looked whether a reply that could not be stored is. */
const LOOK_MS = 2000;

export class Conversations {
  list = $state.raw<Conversation[]>([]);
  /** The open conversation; null is a new one that has no message yet. */
  current = $state<number | null>(null);
  messages = $state.raw<Message[]>([]);
  /** Replies that are kept beside those that are shown, until a person decides. */
  alternatives = $state.raw<Message[]>([]);
  /** A message to bring into view, set by a search hit. */
  reveal = $state<number | null>(null);
  loaded = $state(false);

  #looking = false;
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

  /** The first message of the open conversation that the model sees; null while it sees all. */
  get seenFrom(): number | null {
    return this.list.find(({ id }) => id === this.current)?.seen_from ?? null;
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
      this.#show([]);
    }
    await this.refresh();
    if (this.current === conversation) this.reveal = message;
  }

  /** Opens a conversation that is not stored. */
  show(conversation: number, messages: Message[]) {
    this.current = conversation;
    this.#show(messages);
    this.reveal = null;
  }

  /** Fetches the messages of the open conversation again. */
  async refresh() {
    const conversation = this.stored;
    if (conversation === null) return;
    await this.#try(async () => {
      const messages = await this.#backend.messages(conversation);
      if (this.current === conversation) this.#show(messages);
    });
  }

  #show(messages: Message[]) {
    this.messages = messages.filter(({ instead_of }) => instead_of === null);
    this.alternatives = messages.filter(({ instead_of }) => instead_of !== null);
    this.#lookAgain();
  }

  /** While a reply could not be stored, looks whether it is by now. */
  #lookAgain() {
    const waits = [...this.messages, ...this.alternatives].some(
      ({ unstored }) => unstored !== null,
    );
    if (!waits || this.#looking) return;
    this.#looking = true;
    setTimeout(() => {
      this.#looking = false;
      void this.refresh();
    }, LOOK_MS);
  }

  startNew() {
    this.current = null;
    this.#show([]);
    this.reveal = null;
  }

  /** Puts a message in its place: over an older state of itself, over what it is written instead of, or at the end. */
  place(message: Message) {
    if (message.conversation !== this.current) return;
    this.alternatives = this.alternatives.filter(({ id }) => id !== message.id);
    const others = this.messages.filter(({ id }) => id !== message.instead_of);
    const known = others.some(({ id }) => id === message.id);
    this.messages = known
      ? others.map((old) => (old.id === message.id ? message : old))
      : [...others, message];
    this.#lookAgain();
  }

  /** Shows what is kept beside the last reply, and keeps that beside it. */
  async choose(alternative: number) {
    await this.#exchange(() => this.#backend.chooseAlternative(alternative));
  }

  /** Deletes what is kept beside a reply. */
  async discard(alternative: number) {
    await this.#exchange(() => this.#backend.discardAlternative(alternative));
  }

  /** Lets the model see all of the open conversation again. */
  async seeAll() {
    const conversation = this.stored;
    if (conversation === null) return;
    await this.#try(async () => {
      this.update(await this.#backend.seeAll(conversation));
    });
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
      this.#toasts.show(t("sidebar.deleted", { title }), { label: t("sidebar.undo"), run });
    });
  }

  async search(query: string): Promise<SearchHit[]> {
    let hits: SearchHit[] = [];
    await this.#try(async () => {
      hits = await this.#backend.search(query);
    });
    return hits;
  }

  async #exchange(exchange: () => Promise<Message[]>) {
    const conversation = this.current;
    await this.#try(async () => {
      const messages = await exchange();
      if (this.current === conversation) this.#show(messages);
    });
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
      this.#toasts.show(errorWords(BackendError.from(thrown)));
    }
  }
}
