/** When the rounds of a trace ended, by the trace's own clock, and which had by a moment. */
import type { Round } from "../bindings/Round";

export class Clock {
  /** Milliseconds from the start of the reply, never falling. */
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

  /** When the last round ended. */
  get end(): number {
    return this.#ends.at(-1) ?? 0;
  }

  /** How many rounds had ended by a moment. */
  countAt(moment: number): number {
    let [low, high] = [0, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ends[middle] ?? 0) <= moment) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** When so many rounds had ended; 0 is the start of the reply. */
  momentOf(count: number): number {
    return count <= 0 ? 0 : (this.#ends[Math.min(count, this.rounds) - 1] ?? 0);
  }
}
