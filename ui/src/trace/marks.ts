/** Marks of the heatmap that occur in a trace; the legend explains only those. */
import type { Round } from "../bindings/Round";
import { depthsOf } from "./tree";

/** Outcomes in the order of the legend. */
const OUTCOMES = [
  ...(["accepted", "rejected", "discarded", "bonus", "recovered", "plain", "tree"] as const),
];
const DRAFTERS = ["model", "staged", "head", "ngram", "recycling", "forced"] as const;

export type OutcomeMark = (typeof OUTCOMES)[number];
export type DrafterMark = (typeof DRAFTERS)[number];

/** Follows a trace that only grows; each query reads only new rounds. */
export class Marks {
  readonly #rounds: readonly Round[];
  readonly #seen = new Set<OutcomeMark | DrafterMark>();
  #read = 0;

  constructor(rounds: readonly Round[]) {
    this.#rounds = rounds;
  }

  /** Outcomes that occur; `tree` if some position has several tokens. */
  outcomes(): OutcomeMark[] {
    this.#catchUp();
    return OUTCOMES.filter((mark) => this.#seen.has(mark));
  }

  /** Drafters that occur, if more than one: a single shape needs no explanation. */
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
