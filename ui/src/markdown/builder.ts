/**
 * Collects leaves into branches, in the order of the text. Leaves belong to **hosts**, the branches
 * with lines of text. Text between two hosts is split at its last line break: the first part goes
 * to the end of the first host, the rest to the start of the second, such as a bullet before its
 * item.
 */
import { ownElements, type Branch, type Leaf, type LeafKind, type Tag } from "./nodes";

/** Deepest structure that can be laid out; deeper nodes become text. */
const DEEPEST = 32;

/**
 * Length from which a block is split into parts of about this length, parsed and drawn one by one.
 */
export const LONGEST_BLOCK = 16_384;
/** Elements from which a block is split: thousands of short items would be laid out together. */
export const MAX_ELEMENTS = 1000;

export class Builder {
  readonly roots: Branch[] = [];
  readonly #source: string;
  /** Offset added to the parser's positions; leaves before {@link #least} are left out. */
  readonly #shift: number;
  readonly #least: number;
  readonly #longest: number;
  #open: Branch[] = [];
  /** Start of the outermost open branch, and the number of elements since then. */
  #begin = 0;
  #elements = 0;
  #pending: Leaf[] = [];
  #lastHost: Branch | null = null;
  #hosts = 0;
  /** Position up to which leaves have been added. */
  #at = 0;

  constructor(source: string, shift: number, least: number, longest: number) {
    this.#longest = longest;
    this.#source = source;
    this.#shift = shift;
    this.#least = least;
  }

  get isFull(): boolean {
    return this.#open.length >= DEEPEST;
  }

  /** Position up to which leaves have been added. */
  get at(): number {
    return this.#at;
  }

  get isOutermost(): boolean {
    return this.#open.length === 0;
  }

  /** Number of hosts so far. */
  get hosts(): number {
    return this.#hosts;
  }

  open(tag: Tag, more: Partial<Branch> = {}): Branch {
    const branch: Branch = { tag, children: [], ...more };
    if (this.#open.length === 0) {
      this.#begin = this.#at;
      this.#elements = 0;
    }
    this.#elements += ownElements(tag);
    (this.#open.at(-1)?.children ?? this.roots).push(branch);
    this.#open.push(branch);
    return branch;
  }

  close() {
    this.#open.pop();
  }

  /**
   * Splits the open branches if they are too long: later leaves go into branches that continue
   * them.
   */
  cut(longest = this.#longest) {
    const isLong = this.#at - this.#begin >= longest || this.#elements >= MAX_ELEMENTS;
    if (this.#longest === Infinity || !isLong || !this.#open.at(-1)?.children.length) return;
    const open = this.#open;
    this.#open = [];
    for (const [depth, branch] of open.entries()) {
      const next = this.open(branch.tag, { ...branch, children: [] });
      if (depth === 0 || branch.tag === "li") next.continued = true;
      if (branch === this.#lastHost) this.#lastHost = next;
      if (branch.tag !== "ol") continue;
      // The split item has been numbered already.
      const cutsItem = open[depth + 1] !== undefined;
      next.start = (branch.start ?? 1) + branch.children.length - (cutsItem ? 1 : 0);
    }
  }

  openHost(tag: Tag, at: number, more: Partial<Branch> = {}): Branch {
    this.between(at);
    const before = this.#takePending();
    const host = this.open(tag, more);
    host.children = before;
    this.#lastHost = host;
    this.#hosts += 1;
    return host;
  }

  /** Pending leaves of the next host; adds the others to the last one. */
  #takePending(): Leaf[] {
    const pending = this.#pending;
    this.#pending = [];
    if (!this.#lastHost) return pending;
    const broken = pending.findLastIndex(({ kind, from, to }) => {
      return kind === "gap" && this.#text(from, to).includes("\n");
    });
    this.#lastHost.children = this.#lastHost.children.concat(pending.slice(0, broken + 1));
    return pending.slice(broken + 1);
  }

  /** Adds a gap up to `to`, outside of hosts. */
  between(to: number) {
    if (to <= this.#at) return;
    const text = this.#source.slice(this.#at, to);
    const line = text.lastIndexOf("\n") + 1;
    this.#pend("gap", this.#at, this.#at + line);
    this.#pend("gap", this.#at + line, to);
    this.#at = to;
  }

  /** Adds a mark, outside of hosts. */
  mark(from: number, to: number) {
    this.between(from);
    this.#pend("syntax", this.#at, to);
    this.#at = Math.max(this.#at, to);
  }

  #pend(kind: LeafKind, from: number, to: number) {
    const leaf = this.#leaf(kind, from, to);
    if (leaf) this.#pending.push(leaf);
  }

  /** Adds a leaf up to `to`, inside of a host. */
  leaf(kind: LeafKind, to: number, shown?: string) {
    const leaf = this.#leaf(kind, this.#at, to);
    this.#at = Math.max(this.#at, to);
    if (!leaf) return;
    if (shown !== undefined) leaf.shown = shown;
    this.#open.at(-1)?.children.push(leaf);
  }

  #leaf(kind: LeafKind, from: number, to: number): Leaf | null {
    const begin = Math.max(from + this.#shift, this.#least);
    const end = to + this.#shift;
    return begin < end ? { kind, from: begin, to: end } : null;
  }

  #text(from: number, to: number): string {
    return this.#source.slice(from - this.#shift, to - this.#shift);
  }

  /** Adds pending leaves to the last host and returns the branches. */
  finish(end: number): Branch[] {
    this.between(end);
    if (!this.#lastHost) {
      if (this.#pending.length > 0) this.openHost("p", end);
      return this.roots;
    }
    this.#lastHost.children = this.#lastHost.children.concat(this.#pending);
    this.#pending = [];
    return this.roots;
  }
}
