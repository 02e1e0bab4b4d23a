/** Where each round's text stands in the reply: kept as rounds arrive, so that nobody adds it up again. */
import type { Round } from "../bindings/Round";

/** What a round adds to the reply. */
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

  /** Characters (UTF-16) before what the round at this place added; of all text beyond the last. */
  before(round: number): number {
    return round > 0 ? (this.#ends[round - 1] ?? this.text.length) : 0;
  }

  /** The round that added the character at this place; beyond the text, the number of rounds. */
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

/** The rounds of a trace with their places in the text. */
export interface Rounds {
  readonly rounds: readonly Round[];
  readonly offsets: Offsets;
}
