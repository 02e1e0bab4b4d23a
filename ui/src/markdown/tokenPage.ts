/**
 * Token view of a reply: draws a window of its rounds and follows a growing one. Earlier text is
 * dropped, so that the cost of a frame stays constant.
 */
import type { Round } from "../bindings/Round";
import { chipCount, chipsOf, type Chip } from "../trace/chips";
import type { Offsets, Rounds } from "../trace/offsets";
import { codeAt, readIn } from "./codeHead";
import { ReplyPage } from "./page";
import { ReplyReader } from "./reader";
import type { Block } from "./section";
import type { ElementShape, Shape } from "./shapes";
import { firstIn, tailShapes, tokenShape } from "./tokenShapes";

/** Chips drawn at first; more on demand. */
export const MAX_CHIPS = 2000;
/** Most chips in the last block of a growing reply, which each frame lays out again. */
const MAX_GROWING = 2000;
/** Most chips in all blocks of a growing reply. Earlier blocks are seldom laid out again. */
const MAX_GROWING_IN_ALL = 3000;
/**
 * Chips kept when others are dropped: more than a large window shows, so that no visible text
 * disappears.
 */
const CHIPS_KEPT = 1200;

/** Range of rounds shown; `end` is exclusive, or null to follow the newest. */
export interface Shown {
  first: number;
  end: number | null;
}

/** Ghost text: a draft before its outcome, shown after a growing reply. */
export interface Ahead {
  draft: string;
  /** Number of newest rounds held back: 1 if the draft belongs to the newest. */
  held: 0 | 1;
}

const NOTHING: Ahead = { draft: "", held: 0 };

/** First round of a window of about `chips` chips that ends before round `end`. */
export function windowBefore(rounds: readonly Round[], end: number, chips = MAX_CHIPS): number {
  let first = end;
  for (let count = 0; first > 0; first -= 1) {
    const round = rounds[first - 1];
    count += round ? chipCount(round) : 0;
    if (count > chips && first < end) break;
  }
  return first;
}

/** End of a window of about `chips` chips; null for the end of the trace. */
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
  readonly #whenDrawn: () => void;
  readonly #reader = new ReplyReader();
  /** Offsets of the last trace shown. */
  #offsets: Offsets | null = null;
  #chips: Chip[] = [];
  #shown: Shown = { first: 0, end: 0 };
  /** First round requested; {@link #shown} may begin later. */
  #asked = -1;
  /** Index after the last round in {@link #chips}. */
  #until = 0;
  /** Offset before which the document has dropped blocks. */
  #known = 0;
  #shapes = new WeakMap<Block, ElementShape | null>();
  #wraps = false;

  /** Draws in `root`; `whenDrawn` is called when a long text is drawn later than {@link show}. */
  constructor(root: HTMLElement, whenDrawn: () => void = () => undefined) {
    this.#whenDrawn = whenDrawn;
    this.#page = new ReplyPage(root, true);
  }

  /** Draws all blocks again with the next call of {@link show}; `wraps` wraps lines of code. */
  redraw(wraps: boolean) {
    this.#wraps = wraps;
    this.#shapes = new WeakMap();
  }

  /** Code of the block at an offset of the shown text; "" without one. */
  codeAt(from: number): string {
    const { thought, answer } = this.#reader.document;
    const branch = codeAt(
      [...thought, ...answer].map((block) => block.branch),
      from,
    );
    return branch ? readIn(branch, this.#offsets?.text ?? "") : "";
  }

  /**
   * Draws rounds; `growing` means that more may come. Returns the first round drawn, which is later
   * than requested if a growing window became too large. `most` is {@link MAX_CHIPS} or more.
   */
  show(trace: Rounds, shown: Shown, growing: boolean, most = MAX_CHIPS, ahead = NOTHING): number {
    const until = trace.rounds.length - ahead.held;
    const text = trace.offsets.text.slice(0, trace.offsets.before(until));
    const tail = growing && shown.end === null ? tailShapes(ahead.draft) : [];
    // A finished reply is shown as requested, even if rounds were dropped while it grew.
    if (!growing && this.#shown.first > shown.first) this.#asked = -1;
    this.#take(trace, shown, until);
    const asked = most - MAX_CHIPS;
    const isRead = !this.#reader.isBusy;
    if (growing && shown.end === null && isRead && this.#isTooLong(asked)) {
      this.#drop(trace, asked + CHIPS_KEPT);
    }
    let isLate = false;
    this.#reader.read(text, !growing, () => {
      this.#draw(trace, text, growing, tail);
      if (isLate) this.#whenDrawn();
    });
    isLate = true;
    return this.#shown.first;
  }

  /** Stops drawing. */
  leave() {
    this.#reader.stop();
  }

  #draw(trace: Rounds, text: string, growing: boolean, tail: readonly Shape[]) {
    const { first, end: last } = this.#shown;
    const begin = trace.offsets.before(first);
    const end = last === null ? Infinity : trace.offsets.before(last);
    this.#page.show(
      this.#reader.document,
      text,
      (block, last) => {
        const isWhole = block.from > begin && block.to < end && !last;
        if (block.to < begin || block.from > end) return null;
        if (isWhole) return this.#keptShape(block);
        return tokenShape(block, this.#chips, last, { tail, wraps: this.#wraps });
      },
      growing,
      trace,
    );
  }

  #isTooLong(asked: number): boolean {
    const { answer, thought } = this.#reader.document;
    const from = (answer.at(-1) ?? thought.at(-1))?.from ?? 0;
    const inLast = this.#chips.length - firstIn(this.#chips, from);
    return inLast > asked + MAX_GROWING || this.#chips.length > asked + MAX_GROWING_IN_ALL;
  }

  #keptShape(block: Block): ElementShape | null {
    const kept = this.#shapes.get(block);
    if (kept !== undefined) return kept;
    const shape = tokenShape(block, this.#chips, false, { wraps: this.#wraps });
    this.#shapes.set(block, shape);
    return shape;
  }

  /** Updates the chips to the requested window. */
  #take({ rounds, offsets }: Rounds, shown: Shown, until: number) {
    if (offsets !== this.#offsets) {
      // Another trace may have another beginning.
      this.#offsets = offsets;
      this.#reader.reset();
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
        this.#reader.reset();
        this.#known = 0;
      }
    }
    const end = Math.min(shown.end ?? until, until);
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
    this.#reader.document.dropBefore(offsets.text, this.#known);
  }
}
