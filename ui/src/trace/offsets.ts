/** Offsets of rounds in the reply's text, computed once as rounds arrive. */
import type { Round } from "../bindings/Round";

/** The text that a round adds to the reply. */
export function addedBy({ drafted, extra }: Round): string {
  let text = "";
  for (const token of drafted) if (token.outcome === "accepted") text += token.text;
  return text + (extra?.text ?? "");
}

export class Offsets {
  /** The reply's text so far. */
  text = "";
  readonly #ends: number[] = [];

  add(round: Round) {
    this.text += addedBy(round);
    this.#ends.push(this.text.length);
  }

  /** Text before the round at this index, in UTF-16 units; the whole text beyond the last. */
  before(round: number): number {
    return round > 0 ? (this.#ends[round - 1] ?? this.text.length) : 0;
  }

  /**
   * Index of the round that added the character at `place`; the number of rounds beyond the text.
   */
  roundAt(place: number): number {
    let [low, high] = [0, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ends[middle] ?? Infinity) > place) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** The rounds of a trace and their offsets in the text. */
export interface Rounds {
  readonly rounds: readonly Round[];
  readonly offsets: Offsets;
}
