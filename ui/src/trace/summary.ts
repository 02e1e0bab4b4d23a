/** Computes a reply's summary from its rounds as the shell does. */
import type { Finish } from "../bindings/Finish";
import type { Round } from "../bindings/Round";
import type { Summary } from "../bindings/Summary";
import { emitted } from "./round";
import { meanRate, statisticsOf, type Statistics } from "./statistics";

/** The summary that the shell would store for these rounds. */
export function summaryOf(
  rounds: readonly Round[],
  finish: Finish,
  promptTokens: number,
  folded: Statistics = statisticsOf(rounds),
): Summary {
  const first = rounds[0];
  const laterTokens = folded.tokens - (first ? emitted(first) : 0);
  const elapsed = rounds.at(-1)?.at_ms ?? 0;
  const laterMs = elapsed - (first?.at_ms ?? 0);
  return {
    finish,
    prompt_tokens: promptTokens,
    reused_tokens: 0,
    restored_tokens: 0,
    tokens: folded.tokens,
    rounds: folded.rounds,
    drafted: folded.drafted,
    judged: folded.judged,
    accepted: folded.accepted,
    acceptance_rate: folded.acceptanceRate,
    tokens_per_round: folded.tokensPerRound ?? 0,
    ttft_ms: folded.ttftMs ?? 0,
    tokens_per_second: meanRate(laterTokens, laterMs),
    elapsed_ms: elapsed,
    times: folded.times,
    plain_tokens_per_second: folded.decision?.tokens_per_second[0] ?? null,
    // Only the shell measures the speed-up.
    speedup: null,
    settings: null,
  };
}
