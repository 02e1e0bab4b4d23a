/** Expected tokens of a reply's rounds beside those that were written. */
import type { Round } from "../bindings/Round";
import { count, emitted } from "./round";
import { longestPath } from "./tree";
import { t } from "../messages/say";
import { decimal, percent } from "../messages/numbers";

/** Rounds behind the means of {@link Expectations.recent}. */
export const RECENT_ROUNDS = 64;

const FORMULA = "1 + P(1 − Pᴺ)/(1 − P)".replaceAll(" ", "\u00a0");
/** Limit of {@link FORMULA} for P = 1. */
const FORMULA_AT_ONE = "1\u00a0+\u00a0N";

/** Expected and written tokens per round. */
export interface Comparison {
  expected: number;
  written: number;
  rounds: number;
}

/** Tokens per round with a draft by the formula with a constant acceptance, and measured. */
export interface Formula {
  /** Accepted / judged tokens (P). */
  acceptance: number;
  /** Mean number of tokens on the longest path of a draft (N). */
  length: number;
  expected: number;
  measured: number;
}

/** Follows a trace that only grows; each query reads only new rounds. */
export class Expectations {
  readonly #rounds: readonly Round[];
  #read = 0;
  /** Expected and emitted tokens of the latest rounds with an expectation, oldest first. */
  readonly #recent: (readonly [expected: number, written: number])[] = [];
  readonly #drafts = { rounds: 0, length: 0, accepted: 0, judged: 0, tokens: 0 };
  #lastDraft: number | null = null;

  constructor(rounds: readonly Round[]) {
    this.#rounds = rounds;
  }

  /** Means over the last {@link RECENT_ROUNDS} rounds with an expectation; null without one. */
  recent(): Comparison | null {
    this.#catchUp();
    const rounds = this.#recent.length;
    if (rounds === 0) return null;
    let [expected, written] = [0, 0];
    for (const [before, after] of this.#recent) {
      expected += before;
      written += after;
    }
    return { expected: expected / rounds, written: written / rounds, rounds };
  }

  /** The formula with the reply's numbers; null before a draft token was judged. */
  formula(): Formula | null {
    this.#catchUp();
    const { rounds, length, accepted, judged, tokens } = this.#drafts;
    if (rounds === 0 || judged === 0) return null;
    const [share, mean] = [accepted / judged, length / rounds];
    return {
      acceptance: share,
      length: mean,
      expected: tokensPerRound(share, mean),
      measured: tokens / rounds,
    };
  }

  /** Index of the latest round with a draft; null without one. */
  lastDraft(): number | null {
    this.#catchUp();
    return this.#lastDraft;
  }

  #catchUp() {
    for (; this.#read < this.#rounds.length; this.#read += 1) {
      const round = this.#rounds[this.#read];
      if (!round) break;
      if (round.expected != null) {
        this.#recent.push([round.expected, emitted(round)]);
        if (this.#recent.length > RECENT_ROUNDS) this.#recent.shift();
      }
      if (round.drafted.length > 0) this.#addDraft(round);
    }
  }

  #addDraft(round: Round) {
    this.#lastDraft = this.#read;
    this.#drafts.rounds += 1;
    this.#drafts.length += longestPath(round);
    this.#drafts.accepted += count(round, "accepted");
    this.#drafts.judged += round.drafted.length - count(round, "discarded");
    this.#drafts.tokens += emitted(round);
  }
}

/** Whether a draft of a trace has an expectation; those of earlier versions have none. */
export function hasExpectations(rounds: readonly Round[]): boolean {
  return rounds.some(({ expected, drafted }) => expected != null && drafted.length > 0);
}

/**
 * E₀ + 1 = 1 + P + P² + … + Pᴺ: tokens per round if each of N draft tokens is accepted with
 * probability P given that all before it are; N may be a mean.
 */
export function tokensPerRound(acceptance: number, length: number): number {
  if (acceptance >= 1) return 1 + length;
  return 1 + (acceptance * (1 - acceptance ** length)) / (1 - acceptance);
}

/** The formula with its numbers, beside the measured one. */
export function formulaWords({ acceptance, length, expected, measured }: Formula): string {
  return t("inspector.formula", {
    acceptance: percent(acceptance),
    length: decimal(length, 1),
    formula: acceptance >= 1 ? FORMULA_AT_ONE : FORMULA,
    expected: decimal(expected, 2),
    measured: decimal(measured, 2),
  });
}
