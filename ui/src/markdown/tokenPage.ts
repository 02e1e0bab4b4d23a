/**
 * The token view of a reply: draws a window of its rounds and follows it while it grows. What is
 * far behind is forgotten, so that a frame costs the same after a hundred thousand tokens.
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

/** More chips than anyone reads at once are drawn only when asked for. */
export const MAX_CHIPS = 2000;
/**
 * Fewer in the last block while a reply grows, as each frame lays that out again: a window full.
 */
const MAX_GROWING = 400;
/** And in all blocks then: those above are neither laid out again nor in view, as a rule. */
const MAX_GROWING_IN_ALL = 1200;
/** Chips kept after dropping: dropping a few at every frame would cost more. */
const CHIPS_KEPT = 200;

/** Rounds shown: from the first to before `end`, which is null while it follows the newest. */
export interface Shown {
  first: number;
  end: number | null;
}

/** A draft before its outcome, shown in faint letters behind a growing reply. */
export interface Ahead {
  draft: string;
  /** Newest rounds that are not drawn yet: 1 where the draft is that of the newest one. */
  held: 0 | 1;
}

const NOTHING: Ahead = { draft: "", held: 0 };

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
  readonly #whenDrawn: () => void;
  readonly #reader = new ReplyReader();
  /** Offsets of the trace that was shown last. */
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
  #wraps = false;

  /** `whenDrawn` is called when a long text was drawn after {@link show}, once it was parsed. */
  constructor(root: HTMLElement, whenDrawn: () => void = () => undefined) {
    this.#whenDrawn = whenDrawn;
    this.#page = new ReplyPage(root, true);
  }

  /** Has all blocks drawn again when they are shown next; `wraps`: long lines of code wrap. */
  redraw(wraps: boolean) {
    this.#wraps = wraps;
    this.#shapes = new WeakMap();
  }

  /** The code of the block that begins at an offset of the shown text; "" where there is none. */
  codeAt(from: number): string {
    const { thought, answer } = this.#reader.document;
    const branch = codeAt(
      [...thought, ...answer].map((block) => block.branch),
      from,
    );
    return branch ? readIn(branch, this.#offsets?.text ?? "") : "";
  }

  /**
   * Draws these rounds; `growing` while more may come. Returns the first round drawn, which is
   * later than the one asked for where a growing window became too large. `most` is {@link
   * MAX_CHIPS}, and more where more were asked for.
   */
  show(trace: Rounds, shown: Shown, growing: boolean, most = MAX_CHIPS, ahead = NOTHING): number {
    const until = trace.rounds.length - ahead.held;
    const text = trace.offsets.text.slice(0, trace.offsets.before(until));
    const tail = growing && shown.end === null ? tailShapes(ahead.draft) : [];
    // One that has ended is shown from where it was asked for, whatever was dropped while it grew.
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

  /** Draws no more. */
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

  /** Brings the chips to the window asked for. */
  #take({ rounds, offsets }: Rounds, shown: Shown, until: number) {
    if (offsets !== this.#offsets) {
      // Another trace need not begin as the one before did.
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
    this.#reader.document.forget(offsets.text, this.#known);
  }
}
