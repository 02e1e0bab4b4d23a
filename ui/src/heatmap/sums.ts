/**
 * Outcomes of each row, summed from the first round on. The sum over any range of rounds is a
 * difference of two, so its cost does not grow with the range. Used where many rounds share a
 * pixel.
 */
import type { Outcome } from "../bindings/Outcome";
import type { Round } from "../bindings/Round";
import { depthsOf } from "../trace/tree";

/** Interval of stored sums, in rounds; rounds between them are added again. */
const STRIDE = 16;

/**
 * Numbers per row: accepted positions, rejected positions, unverified positions, then the summed
 * acceptance probabilities of the first two.
 */
export const FIELDS = 5;
export const FIELD_OF: Record<Outcome, number> = { accepted: 0, rejected: 1, discarded: 2 };
export const ACCEPTANCE_OF = { accepted: 3, rejected: 4 };

export class Sums {
  readonly #rounds: readonly Round[];
  readonly #checkpoints: number[][] = [];
  readonly #running: number[] = [];
  #counted = 0;

  /** Sums over `rounds`, a list that may only grow. */
  constructor(rounds: readonly Round[]) {
    this.#rounds = rounds;
  }

  /** {@link FIELDS} numbers per row over the rounds before `end`; missing ones are 0. */
  before(end: number): number[] {
    this.#countUpTo(end);
    if (end >= this.#counted) return [...this.#running];
    const stride = Math.floor(end / STRIDE);
    const sums = [...(this.#checkpoints[stride] ?? [])];
    for (let at = stride * STRIDE; at < end; at += 1) addRound(sums, this.#rounds[at]);
    return sums;
  }

  #countUpTo(end: number) {
    for (
      const last = Math.min(end, this.#rounds.length);
      this.#counted < last;
      this.#counted += 1
    ) {
      if (this.#counted % STRIDE === 0) this.#checkpoints.push([...this.#running]);
      addRound(this.#running, this.#rounds[this.#counted]);
    }
  }
}

/** Outcome of each row in the current round: 0 for none, else 1 more than its field. */
const outcomes: number[] = [];
const acceptances: number[] = [];

/** Adds a round. Among siblings the accepted one counts, or else a rejected one. */
function addRound(sums: number[], round: Round | undefined) {
  if (!round) return;
  outcomes.length = 0;
  const depths = depthsOf(round);
  for (let slot = 0; slot < depths.length; slot += 1) {
    const row = depths[slot] ?? 0;
    const drafted = round.drafted[slot];
    if (!drafted) continue;
    const outcome = 1 + FIELD_OF[drafted.outcome];
    const current = outcomes[row] ?? 0;
    if (current !== 0 && current <= outcome) continue;
    outcomes[row] = outcome;
    acceptances[row] = drafted.acceptance ?? 0;
  }
  for (let row = 0; row < outcomes.length; row += 1) {
    const first = row * FIELDS;
    while (sums.length < first + FIELDS) sums.push(0);
    const field = (outcomes[row] ?? 1) - 1;
    sums[first + field] = (sums[first + field] ?? 0) + 1;
    if (field === FIELD_OF.discarded) continue;
    const sum = first + ACCEPTANCE_OF.accepted + field;
    sums[sum] = (sums[sum] ?? 0) + (acceptances[row] ?? 0);
  }
}
