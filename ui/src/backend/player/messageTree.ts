/** Messages of the player: a tree for each conversation, with one shown branch. */
import type { Message } from "../../bindings/Message";

type NewMessage = Omit<Message, "siblings">;

export class MessageTree {
  /** All messages, oldest first, so that children come after parents. */
  #stored: NewMessage[] = [];
  /** Deleted messages, each with the message whose deletion removed it. */
  #deletedWith = new Map<number, number>();
  /** The last shown message of each conversation. */
  #leaves = new Map<number, number | null>();

  /** Messages of all branches. */
  all(): Message[] {
    return this.#visible().map((message) => this.#withSiblings(message));
  }

  find(id: number): Message | undefined {
    const found = this.#visible().find((message) => message.id === id);
    return found && this.#withSiblings(found);
  }

  /** The shown branch of a conversation, oldest first. */
  shown(conversation: number): Message[] {
    return this.upTo(this.leaf(conversation));
  }

  /** A message and those before it, oldest first. */
  upTo(id: number | null): Message[] {
    const found = id === null ? undefined : this.find(id);
    return found ? [...this.upTo(found.parent), found] : [];
  }

  leaf(conversation: number): number | null {
    return this.#leaves.get(conversation) ?? null;
  }

  /** Adds a message and shows it. */
  add(message: NewMessage): Message {
    this.#stored.push(message);
    this.#leaves.set(message.conversation, message.id);
    return this.#withSiblings(message);
  }

  change(id: number, change: Partial<NewMessage>) {
    this.#stored = this.#stored.map((message) =>
      message.id === id ? { ...message, ...change } : message,
    );
  }

  /** Shows the newest branch that includes a message. */
  choose({ id, conversation }: Message) {
    const shown = this.shown(conversation).some((message) => message.id === id);
    if (!shown) this.#leaves.set(conversation, this.#newestBelow(id));
  }

  /** Hides a message and everything after it; shows a sibling or the parent instead. */
  delete(message: Message) {
    const { id, conversation, parent, siblings } = message;
    const shown = this.shown(conversation).some((other) => other.id === id);
    for (const below of this.#below(id)) this.#deletedWith.set(below, id);
    if (!shown) return;
    const other = siblings.findLast((sibling) => sibling !== id);
    this.#leaves.set(conversation, other === undefined ? parent : this.#newestBelow(other));
  }

  /** Restores a deleted message with everything after it, and shows it; undefined if it cannot. */
  restore(id: number): Message | undefined {
    const parent = this.#stored.find((message) => message.id === id)?.parent ?? null;
    if (parent !== null && !this.find(parent)) return undefined;
    for (const [message, root] of this.#deletedWith) {
      if (root === id) this.#deletedWith.delete(message);
    }
    const restored = this.find(id);
    if (restored) this.choose(restored);
    return restored;
  }

  /** Removes an empty reply if it has a sibling or continues another reply; returns that one. */
  withdraw({ id, conversation, parent, siblings }: Message): Message | undefined {
    const before = parent === null ? undefined : this.find(parent);
    const other = siblings.findLast((sibling) => sibling !== id);
    const instead = other ?? (before?.role === "assistant" ? before.id : undefined);
    if (instead === undefined) return undefined;
    this.#stored = this.#stored.filter((message) => message.id !== id);
    this.#leaves.set(conversation, this.#newestBelow(instead));
    return this.find(instead);
  }

  #visible(): NewMessage[] {
    return this.#stored.filter(({ id }) => !this.#deletedWith.has(id));
  }

  #withSiblings(message: NewMessage): Message {
    const { conversation, parent } = message;
    const siblings = this.#visible().filter(
      (other) => other.conversation === conversation && other.parent === parent,
    );
    return { ...message, siblings: siblings.map(({ id }) => id) };
  }

  /** Ids of a message and everything after it, in order of creation. */
  #below(id: number): number[] {
    const below = new Set([id]);
    for (const message of this.#visible()) {
      if (message.parent !== null && below.has(message.parent)) below.add(message.id);
    }
    return [...below];
  }

  #newestBelow(id: number): number {
    return Math.max(...this.#below(id));
  }
}
