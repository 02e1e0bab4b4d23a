/** The governor's decisions during a reply, and the reasons for each round's draft length. */
import type { Decision } from "../bindings/Decision";
import type { LengthReason } from "../bindings/LengthReason";
import type { Round } from "../bindings/Round";

/** A decision with its round and time. */
export interface Decided {
  /** Index of the round in the trace, in the order of arrival. */
  round: number;
  /** Milliseconds from the start of the reply. */
  atMs: number;
  reason: LengthReason;
  decision: Decision;
}

/** Number of rounds with the same reason. */
export interface ReasonCount {
  reason: LengthReason;
  rounds: number;
}

/** Follows a trace that only grows; each query reads only new rounds. */
export class History {
  readonly #rounds: readonly Round[];
  #read = 0;
  /** All decisions; those without a change still have a curve. */
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

  /** The decision in effect in a round, or the latest for null; null before the first. */
  heldIn(round: number | null): Decided | null {
    this.#catchUp();
    if (round === null) return this.#decided.at(-1) ?? null;
    return this.#decided.findLast((decided) => decided.round <= round) ?? null;
  }

  /** Reasons, most frequent first. */
  reasons(): ReasonCount[] {
    this.#catchUp();
    const counts = [...this.#reasons].map(([reason, rounds]) => ({ reason, rounds }));
    return counts.sort((a, b) => b.rounds - a.rounds);
  }

  /** Time of each decision, and the speed it expected of plain decoding in tokens per second. */
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
