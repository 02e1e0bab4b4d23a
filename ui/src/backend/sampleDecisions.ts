/**
 * SAMPLE decisions of a governor, for recordings with a fixed draft length. Computed with the
 * governor's formula from the recorded acceptance and from plausible costs. They give the page a
 * curve and a history in an ordinary browser; no draft length followed from them.
 */
import type { Decision } from "../bindings/Decision";
import type { Round } from "../bindings/Round";
import { facts } from "../bindings/facts";
import { count } from "../trace/round";

const DRAFT_MS = 0.42;
const VERIFY_MS = 1.45;
const ROW_MS = 0.13;
const JUDGE_MS = 0.1;
/** Smoothing factor of the acceptance estimate. */
const FOLLOW = 0.12;
/** Ratio of expected speeds at which the length changes. */
const WORTH_CHANGING = 1.03;
const TOLD_AGAIN_EVERY = 64;

export function withSampleDecisions(rounds: readonly Round[]): Round[] {
  let chance = 0.6;
  let before: number | null = null;
  return rounds.map((round): Round => {
    const rates = ratesAt(chance);
    const best = rates.indexOf(Math.max(...rates));
    const held: number = before ?? best;
    const worth = (rates[best] ?? 0) > WORTH_CHANGING * (rates[held] ?? 0);
    const chosen = worth ? best : held;
    const told = before !== chosen || round.index % TOLD_AGAIN_EVERY === 0;
    const decision = told ? decisionOf(before, chosen, chance, rates) : null;
    before = chosen;
    const judged = round.drafted.length - count(round, "discarded");
    if (judged > 0) chance += FOLLOW * (count(round, "accepted") / judged - chance);
    return { ...round, decision, reason: round.reason === "fixed" ? "governed" : round.reason };
  });
}

/** Acceptance at a depth: it falls with each. */
function acceptanceAt(chance: number, depth: number): number {
  return chance * 0.985 ** depth;
}

/** (1 + S_1 + ... + S_N) / (time to draft N + T_v(N + 1) + time to judge), for N = 0 to 16. */
function ratesAt(chance: number): number[] {
  let [tokens, survival] = [1, 1];
  return Array.from({ length: facts.maxDraftLength + 1 }, (_, length) => {
    if (length > 0) {
      survival *= acceptanceAt(chance, length);
      tokens += survival;
    }
    return (tokens * 1000) / (DRAFT_MS * length + VERIFY_MS + ROW_MS * length + JUDGE_MS);
  });
}

function decisionOf(
  before: number | null,
  chosen: number,
  chance: number,
  rates: number[],
): Decision {
  const lengths = Array.from({ length: facts.maxDraftLength }, (_, index) => index + 1);
  return {
    before,
    chosen,
    drafting_ms: lengths.map((length) => DRAFT_MS * length),
    verify_ms: [0, ...lengths].map((length) => VERIFY_MS + ROW_MS * length),
    acceptance: lengths.map((depth) => acceptanceAt(chance, depth)),
    tokens_per_second: rates,
  };
}
