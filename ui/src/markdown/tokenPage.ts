/**
 * The token view of a reply: draws a window of its rounds and follows it while it grows. What is far
 * behind is forgotten, so that a frame costs the same after a hundred thousand tokens.
 */
import type { Round } from "../bindings/Round";
import { chipCount, chipsOf, type Chip } from "../trace/chips";
import type { Offsets, Rounds } from "../trace/offsets";
import { ReplyDocument } from "./document";
import { ReplyPage } from "./page";
import type { Block } from "./section";
import type { ElementShape } from "./shapes";
import { tokenShape } from "./tokenShapes";

/** More chips than anyone reads at once are drawn only when asked for. */
export const MAX_CHIPS = 2000;
/** Fewer while a reply grows, as each frame lays out its last paragraph again: a window full. */
const MAX_GROWING = 400;
/** So many stay when there were too many: to drop some at every frame would cost more. */
const CHIPS_KEPT = 200;

/** Rounds shown: from the first to before `end`, which is null while it follows the newest. */
export interface Shown {
  first: number;
  end: number | null;
}

/** The window of about so many chips that ends before a round. */
export function windowBefore(rounds: readonly Round[], end: number, chips = MAX_CHIPS): number {
  let first = end;
  for (let count = 0; first > 0; first -= 1) {
    const round = rounds[first - 1];
    count += round ? chipCount(round) : 0;
    if (count > chips && first < end) break;
  }
  return first;
}

/** The end of a window of about so many chips; null for the trace's. */
export function windowAfter(
  rounds: readonly Round[],
  first: number,
  chips = MAX_CHIPS,
): number | null {
  let count = 0;
  for (let end = first; end < rounds.length; end += 1) {
    const round = rounds[end];
    count += round ? chipCount(round) : 0;
    if (count > chips && end > first) return end;
  }
  return null;
}

export class TokenPage {
  readonly #page: ReplyPage;
  #document = new ReplyDocument();
  /** Of the trace that was shown last. */
  #offsets: Offsets | null = null;
  #chips: Chip[] = [];
  #shown: Shown = { first: 0, end: 0 };
  /** The first round asked for; {@link #shown} may begin later. */
  #asked = -1;
  /** The round behind the last one in {@link #chips}. */
  #until = 0;
  /** Where the document's memory begins. */
  #known = 0;
  #shapes = new WeakMap<Block, ElementShape | null>();

  constructor(root: HTMLElement) {
    this.#page = new ReplyPage(root, true);
  }

  /**
   * Draws these rounds; `growing` while more may come. Resolves with the first round drawn, which is
   * later than the one asked for where a growing window became too large. `most` is {@link MAX_CHIPS}, and
   * more where more were asked for.
   */
  show(trace: Rounds, shown: Shown, growing: boolean, most = MAX_CHIPS): number {
    const { text } = trace.offsets;
    this.#take(trace, shown);
    const asked = most - MAX_CHIPS;
    if (growing && shown.end === null && this.#chips.length > asked + MAX_GROWING) {
      this.#drop(trace, asked + CHIPS_KEPT);
    }
    this.#document.update(text, !growing);
    const begin = trace.offsets.before(this.#shown.first);
    const end = shown.end === null ? Infinity : trace.offsets.before(shown.end);
    this.#page.show(
      this.#document,
      (block, last) => {
        const isWhole = block.from > begin && block.to < end && !last;
        if (block.to < begin || block.from > end) return null;
        return isWhole ? this.#keptShape(block) : tokenShape(block, this.#chips, last);
      },
      growing,
      trace,
    );
    return this.#shown.first;
  }

  #keptShape(block: Block): ElementShape | null {
    const kept = this.#shapes.get(block);
    if (kept !== undefined) return kept;
    const shape = tokenShape(block, this.#chips, false);
    this.#shapes.set(block, shape);
    return shape;
  }

  /** Brings the chips to the window asked for. */
  #take({ rounds, offsets }: Rounds, shown: Shown) {
    if (offsets !== this.#offsets) {
      // Another trace need not begin as the one before did.
      this.#offsets = offsets;
      this.#document = new ReplyDocument();
      this.#known = 0;
      this.#asked = -1;
    }
    if (shown.first !== this.#asked || shown.end !== this.#shown.end) {
      this.#chips = [];
      this.#shown = shown;
      this.#asked = shown.first;
      this.#until = shown.first;
      this.#shapes = new WeakMap();
      if (offsets.before(shown.first) < this.#known) {
        this.#document = new ReplyDocument();
        this.#known = 0;
      }
    }
    const end = shown.end ?? rounds.length;
    if (this.#until >= end) return;
    const added = rounds.slice(this.#until, end);
    for (const chip of chipsOf(added, this.#until, offsets.before(this.#until))) {
      this.#chips.push(chip);
    }
    this.#until = end;
  }

  #drop({ rounds, offsets }: Rounds, keep: number) {
    const first = windowBefore(rounds, this.#until, keep);
    const at = this.#chips.findIndex(({ round }) => round >= first);
    this.#chips = this.#chips.slice(at);
    this.#shown = { first, end: null };
    this.#known = offsets.before(first);
    this.#document.forget(offsets.text, this.#known);
  }
}
