/**
 * Elements of a reply: its answer, and its thinking folded above. Unchanged blocks are not touched.
 * `data-from` is the offset of a block's source in both views, used for the reading position.
 */
import type { ReplyDocument } from "./document";
import { MAX_ELEMENTS } from "./builder";
import { elementsOf, type Branch } from "./nodes";
import { plainBlocks, type Block } from "./section";
import { change, element, make, removed, type ElementShape } from "./shapes";
import { inSlices } from "./slices";
import type { Rounds } from "../trace/offsets";
import { elapsedUntil } from "../trace/elapsed";
import { seconds } from "../trace/describe";
import type { Thinking } from "./thinking";
import { t } from "../messages/say";

/** Draws a block; returns null if it is empty in a view. */
export type Draw = (block: Block, last: boolean) => ElementShape | null;

export class ReplyPage {
  readonly #thinking = document.createElement("details");
  readonly #summary = document.createElement("summary");
  readonly #thought: Column;
  readonly #answer: Column;

  /**
   * Draws in `root`; `open` shows the thinking until it is folded. Without `watch` everything is
   * drawn at once.
   */
  constructor(root: HTMLElement, open: boolean, watch: Watch | null = null) {
    this.#thinking.className = "thinking";
    this.#thinking.open = open;
    this.#thought = new Column(document.createElement("div"), watch);
    this.#answer = new Column(document.createElement("div"), watch);
    this.#thinking.append(this.#summary, this.#thought.root);
    root.replaceChildren(this.#answer.root);
  }

  /** Draws a reply. `growing` means that more text may come; `timed` has its rounds, if known. */
  show(
    { thinking, thought, answer }: ReplyDocument,
    text: string,
    draw: Draw,
    growing: boolean,
    timed: Rounds | null = null,
  ) {
    if (!thinking) this.#thinking.remove();
    else if (!this.#thinking.parentNode) this.#answer.root.before(this.#thinking);
    const words = thinking ? thinkingWords(thinking, growing && !thinking.closed, timed) : "";
    if (this.#summary.textContent !== words) this.#summary.textContent = words;
    const isAnswered = answer.length > 0;
    const inThought: Draw = (block, last) => draw(block, last && !isAnswered);
    this.#thought.show(thought, inThought, text, growing);
    this.#answer.show(isAnswered || thought.length > 0 ? answer : NOTHING, draw, text, growing);
  }

  /** Stops watching for visible blocks. */
  leave() {
    this.#thought.remove();
    this.#answer.remove();
  }
}

/** "Thought for 8 s"; without the time if it is unknown. */
function thinkingWords({ end }: Thinking, now: boolean, timed: Rounds | null): string {
  const elapsed = timed && elapsedUntil(timed.rounds, timed.offsets, end);
  if (elapsed === null) return now ? t("reply.thinkingNow") : t("reply.thoughts");
  const time = seconds(elapsed);
  return now ? t("reply.thinkingFor", { time }) : t("reply.thoughtFor", { time });
}

/** Block of an empty reply, which may still have tokens. */
const NOTHING: readonly Block[] = [{ branch: { tag: "p", children: [] }, from: 0, to: 0 }];

interface Drawn {
  from: number;
  shape: ElementShape;
}

/**
 * Calls `onChange` whenever an element comes near the visible part or leaves it; returns a function
 * that stops it.
 */
export type Watch = (element: Element, onChange: (near: boolean) => void) => () => void;

/** A column of blocks. A long text is divided into chunks, each drawn when it comes near. */
class Column {
  readonly root: HTMLElement;
  readonly #watch: Watch | null;
  readonly #head: Stack;
  #chunks: Chunk[] = [];

  constructor(root: HTMLElement, watch: Watch | null) {
    this.root = root;
    this.#watch = watch;
    this.#head = new Stack(root);
  }

  /** Shows blocks; the end of a `growing` text is drawn at once, since it is in view. */
  show(blocks: readonly Block[], draw: Draw, text: string, growing: boolean) {
    const end = this.#watch ? chunkEnd(blocks, 0) : blocks.length;
    const drawBlock = (block: Block) => draw(block, block === blocks.at(-1));
    this.#head.show(drawn(blocks.slice(0, end), drawBlock), this.#chunks[0]?.root ?? null);
    const before = this.#chunks;
    this.#chunks = [];
    for (let at = end; at < blocks.length;) {
      const to = chunkEnd(blocks, at);
      const count = this.#chunks.length;
      const chunk = before[count] ?? this.#append(growing && to === blocks.length);
      chunk.show(blocks.slice(at, to), drawBlock, text);
      this.#chunks.push(chunk);
      at = to;
    }
    for (const chunk of before.slice(this.#chunks.length)) chunk.remove();
  }

  #append(near: boolean): Chunk {
    const root = document.createElement("div");
    root.className = "chunk";
    this.root.append(root);
    return new Chunk(root, near, this.#watch);
  }

  remove() {
    for (const chunk of this.#chunks) chunk.remove();
    this.#chunks = [];
  }
}

/** Largest chunk, in characters, blocks and elements; a longer block is a chunk of its own. */
const CHUNK_LETTERS = 8192;
const CHUNK_BLOCKS = 50;
const CHUNK_ELEMENTS = MAX_ELEMENTS;

/** Index behind the chunk that begins at block `first`. */
function chunkEnd(blocks: readonly Block[], first: number): number {
  const begin = blocks[first]?.from ?? 0;
  let end = first;
  let elements = 0;
  for (const { branch, to } of blocks.slice(first, first + CHUNK_BLOCKS)) {
    elements += countedElements(branch);
    if (end > first && (to - begin > CHUNK_LETTERS || elements > CHUNK_ELEMENTS)) break;
    end += 1;
  }
  return end;
}

/** Numbers of elements, which do not change: chunks are divided again while a text grows. */
const counted = new WeakMap<Branch, number>();

function countedElements(branch: Branch): number {
  let count = counted.get(branch);
  if (count === undefined) counted.set(branch, (count = elementsOf(branch)));
  return count;
}

type DrawBlock = (block: Block) => ElementShape | null;

function drawn(blocks: readonly Block[], draw: DrawBlock): Drawn[] {
  const all: Drawn[] = [];
  for (const block of blocks) {
    const shape = draw(block);
    if (shape) all.push({ from: block.from, shape });
  }
  return all;
}

/** Blocks of a long text: plain text until they come near, then drawn for good. */
class Chunk {
  readonly root: HTMLElement;
  readonly #stack: Stack;
  readonly #unobserve: (() => void) | undefined;
  #isDrawn: boolean;
  #blocks: readonly Block[] = [];
  #draw: DrawBlock | null = null;
  #plain = "";

  constructor(root: HTMLElement, near: boolean, watch: Watch | null) {
    this.root = root;
    this.#isDrawn = near;
    this.#stack = new Stack(root);
    this.#unobserve = watch?.(root, (isNear) => {
      if (isNear && !this.#isDrawn) inSlices(() => this.#show());
    });
  }

  show(blocks: readonly Block[], draw: DrawBlock, text: string) {
    this.#blocks = blocks;
    this.#draw = draw;
    if (this.#isDrawn) {
      this.#show();
      return;
    }
    const [from, to] = [blocks[0]?.from ?? 0, blocks.at(-1)?.to ?? 0];
    const plain = text.slice(from, to);
    if (this.#plain === plain) return;
    this.#plain = plain;
    const shapes = plainBlocks(text, from, to).map((block) => {
      const shape = element("p", "plain", [text.slice(block.from, block.to)]);
      return { from: block.from, shape };
    });
    this.#stack.show(shapes, null);
    this.root.style.containIntrinsicBlockSize = `auto ${String(estimatedHeight(plain))}px`;
  }

  #show() {
    this.#isDrawn = true;
    this.#plain = "";
    if (this.#draw) this.#stack.show(drawn(this.#blocks, this.#draw), null);
  }

  remove() {
    this.#unobserve?.();
    this.root.remove();
  }
}

/** Approximate height of an undrawn text, in CSS pixels. */
export function estimatedHeight(text: string): number {
  const lines = text
    .split("\n")
    .reduce((sum, line) => sum + Math.ceil((line.length + 1) / LINE_LETTERS), 0);
  return lines * LINE_PX;
}

const LINE_PX = 28;
const LINE_LETTERS = 84;

/** Drawn blocks at the beginning of an element, identified by their offset in the text. */
class Stack {
  readonly #root: HTMLElement;
  #drawn: readonly Drawn[] = [];

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  /** Replaces the blocks; `end` is the element behind them. */
  show(next: readonly Drawn[], end: Node | null) {
    const old = this.#drawn;
    this.#drawn = next;
    if (next.length === old.length && next.every((one, at) => isSame(one, old[at]))) return;
    let child = this.#root.firstChild;
    let at = 0;
    for (const { from, shape } of next) {
      // A block that begins within an old one is the rest of it.
      for (; child !== end && child && (old[at + 1]?.from ?? Infinity) <= from; at += 1)
        child = removed(child);
      const before = old[at];
      if (child !== end && child && before && before.from <= from) {
        const following: ChildNode | null = child.nextSibling;
        change(child, before.shape, shape);
        // The element may have been replaced.
        mark(following ? following.previousSibling : this.#root.lastChild, from);
        child = following;
        at += 1;
      } else {
        mark(this.#root.insertBefore(make(shape), child), from);
      }
    }
    while (child && child !== end) child = removed(child);
  }
}

function isSame(one: Drawn, other: Drawn | undefined): boolean {
  return one.from === other?.from && one.shape === other.shape;
}

function mark(block: Node | null, from: number) {
  const value = String(from);
  if (block instanceof HTMLElement && block.dataset["from"] !== value)
    block.dataset["from"] = value;
}
