/**
 * A reply's elements: its answer, and before it what the model thought, folded away. Blocks that are
 * on the page as they shall be are not touched. `data-from` is where a block's source begins, in both
 * views: the conversation keeps the reading position by it.
 */
import type { ReplyDocument } from "./document";
import type { Block } from "./section";
import { change, make, removed, type ElementShape } from "./shapes";
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

  /** `open`: thoughts are in sight until somebody folds them. */
  constructor(root: HTMLElement, open: boolean) {
    this.#thinking.className = "thinking";
    this.#thinking.open = open;
    this.#thought = new Column(document.createElement("div"));
    this.#answer = new Column(document.createElement("div"));
    this.#thinking.append(this.#summary, this.#thought.root);
    root.replaceChildren(this.#answer.root);
  }

  /** `growing`: more text may come. `timed`: the rounds that wrote it, where they are known. */
  show(
    { thinking, thought, answer }: ReplyDocument,
    draw: Draw,
    growing: boolean,
    timed: Rounds | null = null,
  ) {
    if (!thinking) this.#thinking.remove();
    else if (!this.#thinking.parentNode) this.#answer.root.before(this.#thinking);
    const words = thinking ? thinkingWords(thinking, growing && !thinking.closed, timed) : "";
    if (this.#summary.textContent !== words) this.#summary.textContent = words;
    const isAnswered = answer.length > 0;
    this.#thought.show(thought, (block, last) => draw(block, last && !isAnswered));
    this.#answer.show(isAnswered || thought.length > 0 ? answer : NOTHING, draw);
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

/** Blocks below each other, known by where they begin. */
class Column {
  readonly root: HTMLElement;
  #drawn: Drawn[] = [];

  constructor(root: HTMLElement) {
    this.root = root;
  }

  show(blocks: readonly Block[], draw: Draw) {
    const next: Drawn[] = [];
    blocks.forEach((block, at) => {
      const shape = draw(block, at === blocks.length - 1);
      if (shape) next.push({ from: block.from, shape });
    });
    this.#merge(next);
    this.#drawn = next;
  }

  #merge(next: readonly Drawn[]) {
    const old = this.#drawn;
    let child = this.root.firstChild;
    let at = 0;
    for (const { from, shape } of next) {
      // What begins in the middle of a block that was there is the rest of it.
      for (; child && (old[at + 1]?.from ?? Infinity) <= from; at += 1) child = removed(child);
      const before = old[at];
      if (child && before && before.from <= from) {
        const following: ChildNode | null = child.nextSibling;
        change(child, before.shape, shape);
        // It may be another element now.
        mark(following ? following.previousSibling : this.root.lastChild, from);
        child = following;
        at += 1;
      } else {
        mark(this.root.insertBefore(make(shape), child), from);
      }
    }
    while (child) child = removed(child);
  }
}

function mark(block: Node | null, from: number) {
  const value = String(from);
  if (block instanceof HTMLElement && block.dataset["from"] !== value)
    block.dataset["from"] = value;
}
