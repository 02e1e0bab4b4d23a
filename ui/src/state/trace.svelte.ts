/**
 * The rounds of one reply as they arrive. Rounds are kept as they came and shown on the next frame,
 * however many came in between; a missing index is noticed and kept as a gap.
 */
import type { Round } from "../bindings/Round";
import { frames } from "../frames";
import { Offsets } from "../trace/offsets";
import { Accumulator, type Statistics } from "../trace/statistics";
import { rowsOf } from "../trace/tree";

/**
 * Numbers change no faster than a person can read them, and not in every frame of a page that paints four
 * times a second; curves no faster than their end moves.
 */
const STATISTICS_EVERY_MS = 300;
const CURVES_EVERY_MS = 1000;

/** Rounds that never arrived, by index, both ends included. */
export interface Gap {
  first: number;
  last: number;
}

export class Trace {
  /** All rounds shown. Not reactive itself: read {@link length} to depend on it. */
  readonly rounds: Round[] = [];
  /** Their text, and where in it each one stands. Not reactive either. */
  readonly offsets = new Offsets();
  length = $state(0);
  /** Most rows of the heatmap a round fills, or could by its draft length, the extra token's included. */
  tallest = $state(0);
  gap = $state.raw<Gap | null>(null);

  readonly #accumulator = new Accumulator();
  statistics = $state.raw<Statistics>(this.#accumulator.snapshot());
  /** Rounds that curves over the whole reply show. */
  drawn = $state(0);

  #pending: Round[] = [];
  #expected = 0;
  #countedAt = -Infinity;
  #drawnAt = -Infinity;

  static of(rounds: readonly Round[]): Trace {
    const trace = new Trace();
    for (const round of rounds) trace.#receive(round);
    trace.flush();
    return trace;
  }

  /** Takes a round and shows it on the next frame. */
  push(round: Round) {
    this.#receive(round);
    frames.ask(this.#paint);
  }

  /** Takes rounds and shows them now, in a frame of somebody else's. */
  show(rounds: readonly Round[], now: number) {
    for (const round of rounds) this.#receive(round);
    if (rounds.length > 0) this.#paint(now);
  }

  /** Shows everything now: the reply has ended. */
  flush() {
    frames.forget(this.#paint);
    this.#show();
    this.statistics = this.#accumulator.snapshot();
    this.drawn = this.length;
  }

  readonly #paint = (now: number) => {
    this.#show();
    if (now - this.#countedAt < STATISTICS_EVERY_MS) return;
    this.#countedAt = now;
    this.statistics = this.#accumulator.snapshot();
    if (now - this.#drawnAt < CURVES_EVERY_MS) return;
    this.#drawnAt = now;
    this.drawn = this.length;
  };

  #receive(round: Round) {
    if (round.index < this.#expected) return;
    if (round.index > this.#expected) {
      const first = this.gap?.first ?? this.#expected;
      this.gap = { first, last: round.index - 1 };
    }
    this.#expected = round.index + 1;
    this.#pending.push(round);
  }

  #show() {
    if (this.#pending.length === 0) return;
    for (const round of this.#pending) {
      this.rounds.push(round);
      this.offsets.add(round);
      this.#accumulator.add(round);
      this.tallest = Math.max(this.tallest, rowsOf(round), round.draft_length + 1);
    }
    this.#pending = [];
    this.length = this.rounds.length;
  }
}
