/** Which marks of the heatmap occur in a trace: the legend explains those, and no others. */
import type { Round } from "../bindings/Round";
import { depthsOf } from "./tree";

/** In the order that the legend lists them. */
const OUTCOMES = [
  ...(["accepted", "rejected", "discarded", "bonus", "recovered", "plain", "tree"] as const),
];
const DRAFTERS = ["model", "staged", "head", "ngram", "recycling"] as const;

export type OutcomeMark = (typeof OUTCOMES)[number];
export type DrafterMark = (typeof DRAFTERS)[number];

/** Follows the rounds of one trace, which only grow: asked again it reads only what is new. */
export class Marks {
  readonly #rounds: readonly Round[];
  readonly #seen = new Set<OutcomeMark | DrafterMark>();
  #read = 0;

  constructor(rounds: readonly Round[]) {
    this.#rounds = rounds;
  }

  /** What came of tokens; `tree` where several guesses stand in one place. */
  outcomes(): OutcomeMark[] {
    this.#catchUp();
    return OUTCOMES.filter((mark) => this.#seen.has(mark));
  }

  /** Who drafted, where that is more than one: a shape that all cells have needs no explanation. */
  drafters(): DrafterMark[] {
    this.#catchUp();
    const seen = DRAFTERS.filter((mark) => this.#seen.has(mark));
    return seen.length > 1 ? seen : [];
  }

  #catchUp() {
    for (; this.#read < this.#rounds.length; this.#read += 1) {
      const round = this.#rounds[this.#read];
      if (!round) break;
      for (const { outcome, drafter } of round.drafted) {
        this.#seen.add(outcome);
        this.#seen.add(drafter === "model" && round.staged ? "staged" : drafter);
      }
      if (round.extra) this.#seen.add(round.extra.kind);
      if (!this.#seen.has("tree") && new Set(depthsOf(round)).size < round.drafted.length) {
        this.#seen.add("tree");
      }
    }
  }
}
