/** End times of a trace's rounds, by the trace's own clock. */
import type { Round } from "../bindings/Round";

export class Clock {
  /** End of each round in milliseconds from the start of the reply, never falling. */
  readonly #ends: Float64Array;

  constructor(rounds: readonly Round[]) {
    this.#ends = new Float64Array(rounds.length);
    let latest = 0;
    rounds.forEach(({ at_ms }, index) => {
      latest = Math.max(latest, at_ms);
      this.#ends[index] = latest;
    });
  }

  get rounds(): number {
    return this.#ends.length;
  }

  /** End of the last round. */
  get end(): number {
    return this.#ends.at(-1) ?? 0;
  }

  /** Number of rounds that had ended at a moment. */
  countAt(moment: number): number {
    let [low, high] = [0, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ends[middle] ?? 0) <= moment) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** End of the round number `count`, from 1; 0 is the start of the reply. */
  momentOf(count: number): number {
    return count <= 0 ? 0 : (this.#ends[Math.min(count, this.rounds) - 1] ?? 0);
  }
}
