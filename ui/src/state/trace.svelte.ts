/**
 * The rounds of one reply as they arrive. New rounds are shown on the next frame, all at once; a
 * missing index is kept as a gap.
 */
import type { Round } from "../bindings/Round";
import { frames } from "../frames";
import { Offsets } from "../trace/offsets";
import { Accumulator, type Statistics } from "../trace/statistics";
import { rowsOf } from "../trace/tree";

/** Interval of updates to numbers, slow enough to read, and to curves. */
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
  /** Text of the rounds, with the offset of each. Not reactive either. */
  readonly offsets = new Offsets();
  length = $state(0);
  /** Number of rounds in the heatmap and in the numbers beside the text. */
  plotted = $state(0);
  /** Heatmap rows of each round, including the bonus token's. Not reactive either. */
  readonly rows: number[] = [];
  gap = $state.raw<Gap | null>(null);

  readonly #accumulator = new Accumulator();
  statistics = $state.raw<Statistics>(this.#accumulator.snapshot());
  /** Statistics quoted in the text, updated together with it. */
  quoted = $state.raw<Statistics>(this.statistics);
  /** Number of rounds in curves over the whole reply. */
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

  /** Receives a round and shows it on the next frame. */
  push(round: Round) {
    this.#receive(round);
    frames.request(this.#show);
    frames.request(this.#plot, "beside");
  }

  /** Receives rounds and shows them now, within a frame of the caller. */
  show(rounds: readonly Round[], now: number) {
    for (const round of rounds) this.#receive(round);
    if (rounds.length === 0) return;
    this.#show();
    this.#plot(now);
  }

  /** Shows all pending rounds now: the reply has ended. */
  flush() {
    for (const paint of [this.#show, this.#plot]) frames.cancel(paint);
    [this.#countedAt, this.#drawnAt] = [-Infinity, -Infinity];
    this.#show();
    this.#plot(0);
    this.quoted = this.statistics;
  }

  readonly #plot = (now: number) => {
    this.plotted = this.length;
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

  readonly #show = () => {
    this.quoted = this.statistics;
    if (this.#pending.length === 0) return;
    for (const round of this.#pending) {
      this.rounds.push(round);
      this.offsets.add(round);
      this.#accumulator.add(round);
      this.rows.push(rowsOf(round));
    }
    this.#pending = [];
    this.length = this.rounds.length;
  };
}
