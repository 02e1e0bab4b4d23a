/**
 * The conversation that a chat shows, with its messages, and changes of all conversations. All
 * writes go through the backend.
 */
import type { Attached } from "../bindings/Attached";
import type { Conversation } from "../bindings/Conversation";
import type { Message } from "../bindings/Message";
import type { SearchHit } from "../bindings/SearchHit";
import { BackendError, type Backend } from "../backend/backend";
import { branchNumberWords } from "./branches";
import { ConversationList } from "./conversationList.svelte";
import type { Folders } from "./folders.svelte";
import { isImported } from "./imports.svelte";
import type { Toasts } from "./toasts.svelte";
import { t } from "../messages/say";
import { errorWords } from "../messages/errors";

/** Interval of checks whether an unsaved reply has been stored. */
const REFRESH_MS = 2000;

export class Conversations {
  /** The open conversation; null is a new one without messages. */
  current = $state<number | null>(null);
  /** The branch that the open conversation shows, oldest first. */
  messages = $state.raw<Message[]>([]);
  /**
   * The message to scroll to. A search result is shown from its beginning and marked for a moment.
   */
  reveal = $state.raw<{ message: number; found: boolean } | null>(null);
  /** Announcement for screen readers when another branch is shown. */
  announcement = $state("");

  #isRefreshing = false;
  readonly #backend: Backend;
  readonly #toasts: Toasts;
  readonly #onBranch: () => void;
  readonly #shared: ConversationList;

  /** `onBranch` runs before another branch is shown. */
  constructor(
    backend: Backend,
    toasts: Toasts,
    onBranch: () => void,
    shared = new ConversationList(backend, toasts),
  ) {
    this.#backend = backend;
    this.#toasts = toasts;
    this.#onBranch = onBranch;
    this.#shared = shared;
  }

  /** All stored conversations: pinned ones first, then the newest. */
  get list(): Conversation[] {
    return this.#shared.all;
  }

  set list(all: Conversation[]) {
    this.#shared.all = all;
  }

  get loaded(): boolean {
    return this.#shared.loaded;
  }

  get folders(): Folders {
    return this.#shared.folders;
  }

  /** The open conversation, if it is in the store. */
  get stored(): number | null {
    return isImported(this.current) ? null : this.current;
  }

  /** The first message in the model's context; null if all messages are. */
  get contextStart(): number | null {
    return this.list.find(({ id }) => id === this.current)?.seen_from ?? null;
  }

  /** The questions of the open conversation in the model's context. */
  readonly questionsInContext = $derived.by(() =>
    this.messages.filter(({ role, id }) => role === "user" && id >= (this.contextStart ?? id)),
  );

  /** The question of the open conversation that a reply answers, also in parts or after calls. */
  questionOf(reply: Message): Message | null {
    return this.messages.findLast(({ role, id }) => role === "user" && id < reply.id) ?? null;
  }

  /** The stored question at the end of the open conversation, if it has no reply. */
  readonly unanswered = $derived.by(() => {
    const last = this.messages.at(-1);
    return last?.role === "user" && this.stored !== null ? last : null;
  });

  load(): Promise<void> {
    return this.#shared.load();
  }

  async open(conversation: number, message: number | null = null) {
    if (this.current !== conversation) {
      this.current = conversation;
      this.#show([]);
    }
    await this.refresh();
    if (message !== null && this.current === conversation) await this.#find(message);
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
    this.messages = messages;
    this.#refreshLater();
  }

  #shows(message: number): boolean {
    return this.messages.some(({ id }) => id === message);
  }

  /** Scrolls to a message in any branch. */
  async #find(message: number) {
    if (!this.#shows(message)) await this.#branch(() => this.#backend.chooseBranch(message));
    if (this.#shows(message)) this.reveal = { message, found: true };
  }

  /** Checks at intervals whether an unsaved reply has been stored. */
  #refreshLater() {
    const waits = this.messages.some(({ unstored }) => unstored !== null);
    if (!waits || this.#isRefreshing) return;
    this.#isRefreshing = true;
    setTimeout(() => {
      this.#isRefreshing = false;
      void this.refresh();
    }, REFRESH_MS);
  }

  startNew() {
    this.current = null;
    this.#show([]);
    this.reveal = null;
  }

  /**
   * Replaces the older state of a message, or appends it after its parent in place of everything
   * that was shown there.
   */
  place(message: Message) {
    if (message.conversation !== this.current) return;
    const known = this.messages.findIndex(({ id }) => id === message.id);
    const before = this.messages.findIndex(({ id }) => id === message.parent);
    if (known >= 0) this.messages = this.messages.with(known, message);
    else if (before >= 0 || message.parent === null) {
      this.messages = [...this.messages.slice(0, before + 1), message];
    }
    this.#refreshLater();
  }

  /** Shows the branch of a message that is a sibling of a shown one. */
  async choose(message: number) {
    await this.#branch(() => this.#backend.chooseBranch(message));
    const chosen = this.messages.find(({ id }) => id === message);
    if (!chosen) return;
    this.reveal = { message, found: false };
    this.announcement = branchNumberWords(chosen);
  }

  /** Deletes a message and everything after it; a toast offers to undo it. */
  async deleteMessage({ id, conversation, parent }: Message) {
    const last = this.messages.at(-1)?.id === id;
    const continues = this.messages.find((message) => message.id === parent)?.role === "assistant";
    const text = continues
      ? t(last ? "conversation.continuationDeleted" : "conversation.continuationDeletedWithRest")
      : t(last ? "conversation.messageDeleted" : "conversation.messageDeletedWithRest");
    await this.#branch(async () => {
      const messages = await this.#backend.deleteMessage(id);
      this.#toasts.showUndoable(text, () => void this.#restoreMessage(id, conversation));
      return messages;
    }, conversation);
  }

  /** Starts the model's context at this question. */
  async setContextStart(question: number) {
    const conversation = this.stored;
    if (conversation === null) return;
    await this.#try(async () => {
      this.update(await this.#backend.setContextStart(conversation, question));
    });
  }

  /** Extends the model's context to the whole open conversation. */
  async clearContextStart() {
    const conversation = this.stored;
    if (conversation === null) return;
    await this.#try(async () => {
      this.update(await this.#backend.clearContextStart(conversation));
    });
  }

  /** Inserts a conversation into the list, or replaces its older state. */
  update(conversation: Conversation) {
    this.#shared.update(conversation);
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

  /**
   * Generates a title for a conversation that is named after its first words; runs in the
   * background.
   */
  async writeTitle(conversation: number) {
    // If this fails, the first words remain the title.
    const named = await this.#backend.writeTitle(conversation).catch(() => null);
    if (named && this.list.some(({ id }) => id === conversation)) this.update(named);
  }

  /**
   * Copies a conversation with its traces: all branches, or only the messages up to `upTo`.
   * Resolves with the copy, or null if that failed.
   */
  async duplicate({ id, title }: Conversation, upTo: number | null): Promise<Conversation | null> {
    let copy: Conversation | null = null;
    await this.#try(async () => {
      copy = await this.#backend.duplicate(id, upTo, t("sidebar.copyOf", { title }));
      this.update(copy);
    });
    return copy;
  }

  /** Deletes a conversation; a toast offers to undo it. Resolves with whether it is deleted. */
  async delete({ id, title }: Conversation): Promise<boolean> {
    let deleted = false;
    await this.#try(async () => {
      await this.#backend.delete(id);
      deleted = true;
      this.list = this.list.filter((other) => other.id !== id);
      this.#toasts.showUndoable(t("sidebar.deleted", { title }), () => void this.#restore(id));
    });
    return deleted;
  }

  async search(query: string): Promise<SearchHit[]> {
    let hits: SearchHit[] = [];
    await this.#try(async () => {
      hits = await this.#backend.search(query);
    });
    return hits;
  }

  /** The newest file of this name in the open conversation. */
  async fileNamed(name: string): Promise<Attached | null> {
    const files = this.messages.flatMap(({ attachments }) => attachments);
    const found = files.findLast((file) => file.name === name);
    return found ? this.attachment(found.id) : null;
  }

  /** An attachment of a message; null after an error, which is shown. */
  async attachment(id: number): Promise<Attached | null> {
    let file: Attached | null = null;
    await this.#try(async () => {
      file = await this.#backend.attachment(id);
    });
    return file;
  }

  /** Changes the branches of a conversation, and shows the result if the conversation is open. */
  async #branch(change: () => Promise<Message[]>, conversation = this.current) {
    await this.#try(async () => {
      const messages = await change();
      if (this.current !== conversation) return;
      this.#onBranch();
      this.#show(messages);
    });
  }

  /** Restores a deleted message and opens its conversation. */
  async #restoreMessage(message: number, conversation: number) {
    if (this.current !== conversation) await this.open(conversation);
    await this.#branch(() => this.#backend.restoreMessage(message), conversation);
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
