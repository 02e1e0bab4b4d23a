/** What the governor decided in the course of a reply, and why rounds drafted as many tokens as they did. */
import type { Decision } from "../bindings/Decision";
import type { LengthReason } from "../bindings/LengthReason";
import type { Round } from "../bindings/Round";

/** A decision, where it was made. */
export interface Decided {
  /** The round's place in the trace, counted in the order of arrival. */
  round: number;
  /** Milliseconds from the start of the reply. */
  atMs: number;
  reason: LengthReason;
  decision: Decision;
}

/** How many rounds drafted what they did for one reason. */
export interface ReasonCount {
  reason: LengthReason;
  rounds: number;
}

/** Follows the rounds of one trace, which only grow: asked again it reads only what is new. */
export class History {
  readonly #rounds: readonly Round[];
  #read = 0;
  /** All decisions: those that changed nothing still have the curve of their time. */
  readonly #decided: Decided[] = [];
  #changes: readonly Decided[] = [];
  readonly #reasons = new Map<LengthReason, number>();

  constructor(rounds: readonly Round[]) {
    this.#rounds = rounds;
  }

  /** Decisions that changed the draft length, oldest first. The same list until there are more. */
  changes(): readonly Decided[] {
    this.#catchUp();
    return this.#changes;
  }

  /** The decision that held in a round; the latest for null. Null where none had been made by then. */
  heldIn(round: number | null): Decided | null {
    this.#catchUp();
    if (round === null) return this.#decided.at(-1) ?? null;
    return this.#decided.findLast((decided) => decided.round <= round) ?? null;
  }

  /** Most frequent first. */
  reasons(): ReasonCount[] {
    this.#catchUp();
    const counts = [...this.#reasons].map(([reason, rounds]) => ({ reason, rounds }));
    return counts.sort((a, b) => b.rounds - a.rounds);
  }

  /** When, and how many tokens a second plain decoding was expected to make, by each decision. */
  plainRates(): (readonly [number, number])[] {
    this.#catchUp();
    return this.#decided.flatMap(({ atMs, decision }) => {
      const rate = decision.tokens_per_second[0];
      return rate === undefined ? [] : [[atMs, rate] as const];
    });
  }

  #catchUp() {
    const changes: Decided[] = [];
    for (; this.#read < this.#rounds.length; this.#read += 1) {
      const round = this.#rounds[this.#read];
      if (!round) break;
      const { reason, decision, at_ms: atMs } = round;
      this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1);
      if (!decision) continue;
      const decided = { round: this.#read, atMs, reason, decision };
      this.#decided.push(decided);
      if (decision.before !== decision.chosen) changes.push(decided);
    }
    if (changes.length > 0) this.#changes = [...this.#changes, ...changes];
  }
}
