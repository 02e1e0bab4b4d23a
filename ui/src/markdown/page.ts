/**
 * A reply's elements: its answer, and before it what the model thought, folded away. Blocks that
 * are on the page as they shall be are not touched. `data-from` is where a block's source begins,
 * in both views: the conversation keeps the reading position by it.
 */
import type { ReplyDocument } from "./document";
import { plainBlocks, type Block } from "./section";
import { change, element, make, removed, type ElementShape } from "./shapes";
import { inSlices } from "./slices";
import type { Rounds } from "../trace/offsets";
import { elapsedUntil } from "../trace/elapsed";
import { seconds } from "../trace/describe";
import type { Thinking } from "./thinking";
import { t } from "../messages/say";

/** How a view draws a block; null for one that shows nothing in it. */
export type Draw = (block: Block, last: boolean) => ElementShape | null;

export class ReplyPage {
  readonly #thinking = document.createElement("details");
  readonly #summary = document.createElement("summary");
  readonly #thought: Column;
  readonly #answer: Column;

  /**
   * `open`: thoughts are in sight until somebody folds them. Without `watch` everything is drawn at
   * once.
   */
  constructor(root: HTMLElement, open: boolean, watch: Watch | null = null) {
    this.#thinking.className = "thinking";
    this.#thinking.open = open;
    this.#thought = new Column(document.createElement("div"), watch);
    this.#answer = new Column(document.createElement("div"), watch);
    this.#thinking.append(this.#summary, this.#thought.root);
    root.replaceChildren(this.#answer.root);
  }

  /** `growing`: more text may come. `timed`: the rounds that wrote it, where they are known. */
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

  /** Ends watching what is in view. */
  leave() {
    this.#thought.remove();
    this.#answer.remove();
  }
}

/** "Thought for 8 s"; without a time where none is known. */
function thinkingWords({ end }: Thinking, now: boolean, timed: Rounds | null): string {
  const elapsed = timed && elapsedUntil(timed.rounds, timed.offsets, end);
  if (elapsed === null) return now ? t("reply.thinkingNow") : t("reply.thoughts");
  const time = seconds(elapsed);
  return now ? t("reply.thinkingFor", { time }) : t("reply.thoughtFor", { time });
}

/** A reply without text may yet have tokens. */
const NOTHING: readonly Block[] = [{ branch: { tag: "p", children: [] }, from: 0, to: 0 }];

interface Drawn {
  from: number;
  shape: ElementShape;
}

/**
 * Calls back whenever an element comes near what is in view, or goes away; returns how to end that.
 */
export type Watch = (element: Element, onChange: (near: boolean) => void) => () => void;

/**
 * Blocks below each other. Those of a long text stand in chunks, each of which is drawn when it
 * comes near.
 */
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

  /** The end of a text that is `growing` is in view. */
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

/** Most characters and blocks that are drawn at once. */
const CHUNK_LETTERS = 8192;
const CHUNK_BLOCKS = 50;

/** The end of the chunk that begins with a block. */
function chunkEnd(blocks: readonly Block[], first: number): number {
  const begin = blocks[first]?.from ?? 0;
  let end = first + 1;
  while (end < blocks.length && end < first + CHUNK_BLOCKS) {
    if ((blocks[end]?.to ?? 0) - begin > CHUNK_LETTERS) break;
    end += 1;
  }
  return Math.min(end, blocks.length);
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

/** Some blocks of a long text: the text as it is until they come near, and then drawn for good. */
class Chunk {
  readonly root: HTMLElement;
  readonly #stack: Stack;
  readonly #forget: (() => void) | undefined;
  #isDrawn: boolean;
  #blocks: readonly Block[] = [];
  #draw: DrawBlock | null = null;
  #plain = "";

  constructor(root: HTMLElement, near: boolean, watch: Watch | null) {
    this.root = root;
    this.#isDrawn = near;
    this.#stack = new Stack(root);
    this.#forget = watch?.(root, (isNear) => {
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
    this.root.style.containIntrinsicBlockSize = `auto ${String(guessedHeight(plain))}px`;
  }

  #show() {
    this.#isDrawn = true;
    this.#plain = "";
    if (this.#draw) this.#stack.show(drawn(this.#blocks, this.#draw), null);
  }

  remove() {
    this.#forget?.();
    this.root.remove();
  }
}

/** About the height of a text that was not drawn yet, in CSS pixels. */
export function guessedHeight(text: string): number {
  const lines = text
    .split("\n")
    .reduce((sum, line) => sum + Math.ceil((line.length + 1) / LINE_LETTERS), 0);
  return lines * LINE_PX;
}

const LINE_PX = 28;
const LINE_LETTERS = 84;

/** The drawn blocks at the beginning of an element, known by where they begin in the text. */
class Stack {
  readonly #root: HTMLElement;
  #drawn: readonly Drawn[] = [];

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  /** `end` is the element behind the blocks. */
  show(next: readonly Drawn[], end: Node | null) {
    const old = this.#drawn;
    this.#drawn = next;
    if (next.length === old.length && next.every((one, at) => isSame(one, old[at]))) return;
    let child = this.#root.firstChild;
    let at = 0;
    for (const { from, shape } of next) {
      // What begins in the middle of a block that was there is the rest of it.
      for (; child !== end && child && (old[at + 1]?.from ?? Infinity) <= from; at += 1)
        child = removed(child);
      const before = old[at];
      if (child !== end && child && before && before.from <= from) {
        const following: ChildNode | null = child.nextSibling;
        change(child, before.shape, shape);
        // It may be another element now.
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
