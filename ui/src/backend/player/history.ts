/** Conversations and messages of the player, in memory. */
import type { Attached } from "../../bindings/Attached";
import type { Conversation } from "../../bindings/Conversation";
import type { ConversationFolder } from "../../bindings/ConversationFolder";
import type { Message } from "../../bindings/Message";
import type { SearchHit } from "../../bindings/SearchHit";
import type { Sent } from "../../bindings/Sent";
import { BackendError } from "../backend";
import { notFound, type Args, type Handlers } from "./answers";
import type { Engine } from "./engine";
import { MessageTree } from "./messageTree";
import type { Traces } from "./traces";

const HIT_CONTEXT = 36;

export class History {
  readonly messages = new MessageTree();
  readonly #engine: Engine;
  readonly #traces: Traces;
  readonly #conversations = new Map<number, Conversation>();
  readonly #deleted = new Map<number, Conversation>();
  readonly #folders = new Map<number, ConversationFolder>();
  readonly #deletedFolders = new Map<number, { name: string; filed: number[] }>();
  readonly #files = new Map<number, Attached>();
  #nextId = 1;

  constructor(engine: Engine, traces: Traces) {
    this.#engine = engine;
    this.#traces = traces;
  }

  readonly handlers: Handlers = {
    list_conversations: () =>
      [...this.#conversations.values()].sort(
        (a, b) => Number(b.pinned) - Number(a.pinned) || b.updated_at - a.updated_at,
      ),
    rename_conversation: ({ conversation, title }) => this.change(conversation, { title }),
    pin_conversation: ({ conversation, pinned }) => this.change(conversation, { pinned }),
    delete_conversation: ({ conversation }) => {
      const found = this.#conversations.get(conversation);
      if (found) this.#deleted.set(conversation, found);
      this.#conversations.delete(conversation);
    },
    restore_conversation: ({ conversation }) => {
      const found = this.#deleted.get(conversation) ?? notFound(conversation);
      this.#conversations.set(conversation, found);
      return found;
    },
    list_folders: () => [...this.#folders.values()],
    create_folder: ({ name }) => this.#keepFolder(this.#nextId++, name),
    rename_folder: ({ folder, name }) => this.#keepFolder(folder, name),
    delete_folder: ({ folder }) => {
      const { name } = this.#folders.get(folder) ?? notFound(folder);
      const inside = [...this.#conversations.values()].filter((one) => one.folder === folder);
      for (const { id } of inside) this.change(id, { folder: null });
      this.#deletedFolders.set(folder, { name, filed: inside.map(({ id }) => id) });
      this.#folders.delete(folder);
    },
    restore_folder: ({ folder }) => {
      const { name, filed } = this.#deletedFolders.get(folder) ?? notFound(folder);
      for (const id of filed) this.change(id, { folder });
      return this.#keepFolder(folder, name);
    },
    move_conversation: ({ conversation, folder }) => this.change(conversation, { folder }),
    duplicate_conversation: (wanted) => this.#duplicate(wanted),
    search_messages: ({ query }) => this.#search(query.trim().toLowerCase()),
    messages: ({ conversation }) => this.messages.shown(conversation),
    attachment: ({ id }) => this.#files.get(id) ?? notFound(id),
    choose_branch: ({ message }) =>
      this.#changeBranch(message, (found) => this.messages.choose(found)),
    delete_message: ({ message }) =>
      this.#changeBranch(message, (found) => this.messages.delete(found)),
    restore_message: ({ message }) => {
      const restored = this.messages.restore(message) ?? notFound(message);
      return this.messages.shown(restored.conversation);
    },
    delete_traces: ({ olderThanDays }) => this.#traces.delete(olderThanDays, this.#lastUses()),
  };

  /** The id of the next message. */
  get nextId(): number {
    return this.#nextId;
  }

  conversation(id: number | null): Conversation | undefined {
    return id === null ? undefined : this.#conversations.get(id);
  }

  /** A message of this role, or of any, and its conversation. */
  found(id: number, role?: Message["role"]): { home: Conversation; found: Message } {
    const found = this.messages.find(id) ?? notFound(id);
    const home = this.conversation(found.conversation) ?? notFound(id);
    if (role && found.role !== role) notFound(id);
    return { home, found };
  }

  /** Messages of the shown branch; none without a conversation. */
  shown(conversation: number | null): Message[] {
    return conversation === null ? [] : this.messages.shown(conversation);
  }

  /** Joined texts of the attachments of messages. */
  attachedText(messages: Message[]): string {
    const files = messages.flatMap(({ attachments }) => attachments.map(({ id }) => id));
    return files.map((id) => this.#files.get(id)?.text ?? "").join("");
  }

  /** The conversation, or a new one of which `text` is the title. */
  home(conversation: number | null, text: string, folder: number | null = null): Conversation {
    const known = this.conversation(conversation);
    if (known) return this.touch(known);
    const title = text.length > 48 ? `${text.slice(0, 47)}…` : text;
    const updated_at = Date.now();
    const id = this.#nextId++;
    const home = { id, title, pinned: false, updated_at, seen_from: null, folder };
    this.#conversations.set(home.id, home);
    return home;
  }

  /** Marks a conversation as changed now; one deleted meanwhile comes back. */
  touch(home: Conversation): Conversation {
    const touched = { ...(this.conversation(home.id) ?? home), updated_at: Date.now() };
    this.#conversations.set(home.id, touched);
    return touched;
  }

  /** @throws BackendError if another folder has the name. */
  #keepFolder(id: number, name: string): ConversationFolder {
    const isTaken = [...this.#folders.values()].some(
      (other) => other.id !== id && other.name.toLowerCase() === name.trim().toLowerCase(),
    );
    if (isTaken)
      throw new BackendError("bad_name", "a folder needs a name that no other folder has.");
    const folder = { id, name: name.trim() };
    this.#folders.set(id, folder);
    return folder;
  }

  change(conversation: number, change: Partial<Conversation>): Conversation {
    const found = this.#conversations.get(conversation) ?? notFound(conversation);
    const changed = { ...found, ...change };
    this.#conversations.set(conversation, changed);
    return changed;
  }

  /** Adds a question with its attachments. */
  ask(conversation: number, { text, kept, attached }: Sent, parent: number | null): Message {
    const question = this.write(conversation, "user", text, parent);
    const files = [...kept.flatMap((id) => this.#files.get(id) ?? []), ...attached];
    const attachments = files.map((file) => {
      const id = this.#nextId++;
      this.#files.set(id, file);
      return { id, name: file.name, kind: file.kind, bytes: file.text.length };
    });
    this.messages.change(question.id, { attachments });
    return { ...question, attachments };
  }

  write(conversation: number, role: Message["role"], text: string, parent: number | null): Message {
    const byReply = role === "assistant";
    return this.messages.add({
      id: this.#nextId++,
      conversation,
      role,
      text,
      created_at: Date.now(),
      finish: null,
      summary: null,
      target: byReply ? this.#engine.target.label : null,
      draft: byReply ? (this.#engine.draft?.label ?? "") : null,
      problem: null,
      parent,
      attachments: [],
      excerpts: [],
      calls: [],
      calls_start: null,
      unstored: null,
      speedup: null,
    });
  }

  #duplicate({ conversation, upTo, title }: Args<"duplicate_conversation">): Conversation {
    const found = this.#conversations.get(conversation) ?? notFound(conversation);
    const path = upTo === null ? null : this.messages.upTo(upTo).map(({ id }) => id);
    const copy = { ...found, id: this.#nextId++, title, pinned: false, updated_at: Date.now() };
    this.#conversations.set(copy.id, copy);
    const ids = new Map<number | null, number>();
    for (const message of this.messages.all()) {
      if (message.conversation !== conversation || path?.includes(message.id) === false) continue;
      const id = this.#nextId++;
      ids.set(message.id, id);
      this.#traces.copy(message.id, id);
      const parent = ids.get(message.parent) ?? null;
      this.messages.add({ ...message, id, parent, conversation: copy.id });
    }
    return copy;
  }

  #search(words: string): SearchHit[] {
    return this.messages.all().flatMap(({ id, conversation, text }): SearchHit[] => {
      const at = text.toLowerCase().indexOf(words);
      const home = this.#conversations.get(conversation);
      if (words === "" || at < 0 || !home) return [];
      const [from, end] = [Math.max(0, at - HIT_CONTEXT), at + words.length];
      const before = (from > 0 ? "…" : "") + text.slice(from, at);
      const after = text.slice(end, end + HIT_CONTEXT);
      const excerpt = `${before}\u0002${text.slice(at, end)}\u0003${after}`;
      return [{ conversation: home, message: id, excerpt }];
    });
  }

  #changeBranch(id: number, change: (message: Message) => void): Message[] {
    this.#engine.refuseBusy();
    const found = this.messages.find(id) ?? notFound(id);
    change(found);
    return this.messages.shown(found.conversation);
  }

  /** Times at which the conversations of messages were last changed. */
  #lastUses(): Map<number, number> {
    const times = this.messages.all().map(({ id, conversation }) => {
      return [id, this.#conversations.get(conversation)?.updated_at ?? 0] as const;
    });
    return new Map(times);
  }
}
