/**
 * The rounds of one reply as they arrive. Rounds are kept as they came and shown on the next
 * animation frame, however many came in between; a missing index is noticed and kept as a gap.
 */
import type { Round } from "../bindings/Round";
import { statisticsOf } from "../trace/statistics";
import { rowsOf } from "../trace/tree";

/** Rounds a block of the token view holds: a frame redraws one block, not the whole reply. */
const BLOCK_ROUNDS = 32;

/** Numbers change no faster than a person can read them, and slower where counting takes long. */
const STATISTICS_EVERY_MS = 200;
const STATISTICS_MS_PER_ROUND = 0.02;

/** Rounds that never arrived, by index, both ends included. */
export interface Gap {
  first: number;
  last: number;
}

export class Trace {
  /** All rounds shown. Not reactive itself: read {@link length} to depend on it. */
  readonly rounds: Round[] = [];
  length = $state(0);
  /** Most rows of the heatmap a round fills, or could by its draft length, the extra token's included. */
  tallest = $state(0);
  /** The same rounds in blocks; all but the last one never change. */
  blocks = $state.raw<{ first: number; rounds: readonly Round[] }[]>([]);
  gap = $state.raw<Gap | null>(null);

  #counted = $state(0);
  readonly statistics = $derived(statisticsOf(this.rounds.slice(0, this.#counted)));

  #pending: Round[] = [];
  #expected = 0;
  #frame: number | undefined;
  #countedAt = -Infinity;

  static of(rounds: readonly Round[]): Trace {
    const trace = new Trace();
    for (const round of rounds) trace.#receive(round);
    trace.flush();
    return trace;
  }

  /** Takes a round and shows it on the next frame. */
  push(round: Round) {
    this.#receive(round);
    this.#frame ??= requestAnimationFrame((now) => {
      this.#frame = undefined;
      this.#show();
      const every = Math.max(STATISTICS_EVERY_MS, STATISTICS_MS_PER_ROUND * this.length);
      if (now - this.#countedAt < every) return;
      this.#countedAt = now;
      this.#counted = this.length;
    });
  }

  /** Shows everything now: the reply has ended. */
  flush() {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    this.#show();
    this.#counted = this.length;
  }

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
    const blocks = [...this.blocks];
    for (const round of this.#pending) {
      const last = blocks.at(-1);
      if (last && last.rounds.length < BLOCK_ROUNDS) {
        blocks[blocks.length - 1] = { first: last.first, rounds: [...last.rounds, round] };
      } else {
        blocks.push({ first: this.rounds.length, rounds: [round] });
      }
      this.rounds.push(round);
      this.tallest = Math.max(this.tallest, rowsOf(round), round.draft_length + 1);
    }
    this.#pending = [];
    this.blocks = blocks;
    this.length = this.rounds.length;
  }
}
