/** Short constructors of rounds for tests. */
import type { Drafted } from "../bindings/Drafted";
import type { Extra } from "../bindings/Extra";
import type { Outcome } from "../bindings/Outcome";
import type { Round } from "../bindings/Round";
import type { Summary } from "../bindings/Summary";

export function drafted(text: string, outcome: Outcome, change: Partial<Drafted> = {}): Drafted {
  const judged = outcome !== "discarded";
  return {
    token: 7,
    text,
    parent: null,
    draft_probability: 0.5,
    target_probability: judged ? 0.4 : null,
    acceptance: judged ? 0.8 : null,
    outcome,
    drafter: "model",
    ...change,
  };
}

export function extra(text: string, kind: Extra["kind"]): Extra {
  return { token: 9, text, kind };
}

/** A round of 10 ms: 2 for drafting, 6 for verification, 1 each for sampling and the rest. */
export function round(index: number, change: Partial<Round> = {}): Round {
  return {
    index,
    position: 10 + index,
    drafted: [],
    extra: null,
    draft_length: 4,
    reason: "fixed",
    threshold: null,
    staged: false,
    times: { draft_ms: 2, verify_ms: 6, sample_ms: 1, rest_ms: 1 },
    at_ms: 100 + 10 * index,
    ...change,
  };
}

/**
 * Three rounds: "a b" accepted and a bonus " c"; " x" rejected, " y" discarded and " d" recovered;
 * " e" plain.
 */
export const threeRounds: readonly Round[] = [
  round(0, {
    drafted: [drafted("a", "accepted"), drafted(" b", "accepted")],
    extra: extra(" c", "bonus"),
  }),
  round(1, {
    drafted: [drafted(" x", "rejected"), drafted(" y", "discarded")],
    extra: extra(" d", "recovered"),
  }),
  round(2, { extra: extra(" e", "plain") }),
];

/** The summary of {@link threeRounds}: 100 tokens/s after the first. */
export function summary(change: Partial<Summary> = {}): Summary {
  return {
    finish: "stop",
    prompt_tokens: 12,
    reused_tokens: 0,
    restored_tokens: 0,
    tokens: 5,
    rounds: 3,
    drafted: 4,
    judged: 3,
    accepted: 2,
    acceptance_rate: 2 / 3,
    tokens_per_round: 5 / 3,
    ttft_ms: 100,
    tokens_per_second: 100,
    elapsed_ms: 120,
    times: { draft_ms: 6, verify_ms: 18, sample_ms: 3, rest_ms: 3 },
    plain_tokens_per_second: null,
    speedup: null,
    settings: null,
    ...change,
  };
}

/**
 * A tree: " a", " x" and " y" follow the text, " b" and " z" follow " a", " w" follows " x". " a"
 * and " b" are accepted, " x" and " z" rejected, the others unverified; a bonus " c".
 */
export const treeRound: Round = round(0, {
  drafted: [
    drafted(" x", "rejected"),
    drafted(" a", "accepted"),
    drafted(" y", "discarded"),
    drafted(" z", "rejected", { parent: 1 }),
    drafted(" b", "accepted", { parent: 1 }),
    drafted(" w", "discarded", { parent: 0 }),
  ],
  extra: extra(" c", "bonus"),
});
