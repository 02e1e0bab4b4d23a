/** The messages of the backend in a browser: of each conversation a tree, of which one branch is shown. */
import type { Message } from "../bindings/Message";

type Kept = Omit<Message, "siblings">;

export class ReplayMessages {
  /** Oldest first, so what follows a message stands after it. */
  #kept: Kept[] = [];
  /** Deleted ones, with the message that was deleted when they went. */
  #deletedWith = new Map<number, number>();
  /** The last message that each conversation shows. */
  #leaves = new Map<number, number | null>();

  /** Those of all branches. */
  all(): Message[] {
    return this.#visible().map((message) => this.#withSiblings(message));
  }

  find(id: number): Message | undefined {
    const found = this.#visible().find((message) => message.id === id);
    return found && this.#withSiblings(found);
  }

  /** What a conversation shows, oldest first. */
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

  /** Adds a message, which is shown. */
  add(message: Kept): Message {
    this.#kept.push(message);
    this.#leaves.set(message.conversation, message.id);
    return this.#withSiblings(message);
  }

  change(id: number, change: Partial<Kept>) {
    this.#kept = this.#kept.map((message) =>
      message.id === id ? { ...message, ...change } : message,
    );
  }

  /** Shows the branch that a message is in: of several, the one that was written last. */
  choose({ id, conversation }: Message) {
    const shown = this.shown(conversation).some((message) => message.id === id);
    if (!shown) this.#leaves.set(conversation, this.#newestBelow(id));
  }

  /** Hides a message and all that follows it; shows what stands beside it, or what it followed. */
  delete(message: Message) {
    const { id, conversation, parent, siblings } = message;
    const shown = this.shown(conversation).some((other) => other.id === id);
    for (const below of this.#below(id)) this.#deletedWith.set(below, id);
    if (!shown) return;
    const beside = siblings.findLast((sibling) => sibling !== id);
    this.#leaves.set(conversation, beside === undefined ? parent : this.#newestBelow(beside));
  }

  /** Brings back a deleted message with what followed it, and shows it; undefined where it cannot. */
  restore(id: number): Message | undefined {
    const parent = this.#kept.find((message) => message.id === id)?.parent ?? null;
    if (parent !== null && !this.find(parent)) return undefined;
    for (const [message, root] of this.#deletedWith) {
      if (root === id) this.#deletedWith.delete(message);
    }
    const restored = this.find(id);
    if (restored) this.choose(restored);
    return restored;
  }

  /**
   * Removes a reply in which nothing is, where another stands beside it or it was to go on with one; returns that.
   */
  withdraw({ id, conversation, parent, siblings }: Message): Message | undefined {
    const before = parent === null ? undefined : this.find(parent);
    const beside = siblings.findLast((sibling) => sibling !== id);
    const instead = beside ?? (before?.role === "assistant" ? before.id : undefined);
    if (instead === undefined) return undefined;
    this.#kept = this.#kept.filter((message) => message.id !== id);
    this.#leaves.set(conversation, this.#newestBelow(instead));
    return this.find(instead);
  }

  #visible(): Kept[] {
    return this.#kept.filter(({ id }) => !this.#deletedWith.has(id));
  }

  #withSiblings(message: Kept): Message {
    const { conversation, parent } = message;
    const beside = this.#visible().filter(
      (other) => other.conversation === conversation && other.parent === parent,
    );
    return { ...message, siblings: beside.map(({ id }) => id) };
  }

  /** A message and all that follows it, in the order in which they were written. */
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
