/** Arenas for tests: two set-ups, one twice as fast as the other. */
import type { Arena } from "../bindings/Arena";
import type { ArenaRun } from "../bindings/ArenaRun";
import type { Setup } from "../bindings/Setup";
import { defaults } from "../bindings/defaults";
import { verdictOf } from "./pairs";

export const drafted: Setup = {
  draft: "starter-draft",
  speculation: defaults.speculation,
  mode: "fastest",
};
export const plain: Setup = { ...drafted, draft: "none" };

/** A run of `tokens` tokens in `elapsed_ms` milliseconds. */
export function run(pair: number, setup: number, elapsed_ms: number, tokens = 100): ArenaRun {
  return {
    pair,
    setup,
    tokens,
    elapsed_ms,
    ttft_ms: 10 + setup,
    tokens_per_second: (1000 * tokens) / elapsed_ms,
    acceptance_rate: setup === 0 ? 0.8 : null,
    tokens_per_round: setup === 0 ? 3.5 : 1,
    curve: [
      [10, 1],
      [elapsed_ms, tokens],
    ],
  };
}

export function arena(change: Partial<Arena> = {}): Arena {
  const runs = change.runs ?? [run(0, 0, 100), run(0, 1, 190), run(1, 1, 210), run(1, 0, 100)];
  return {
    id: 7,
    created_at: 1_700_000_000_000,
    prompt: "Tell me a story.",
    target: "Starter 8.1M · Q8_0",
    device: "CPU, 2 threads, AVX-512",
    sampling: { ...defaults.sampling, temperature: 0 },
    max_tokens: 256,
    setups: [
      { draft: "Starter draft", setup: drafted },
      { draft: "no draft", setup: plain },
    ],
    runs,
    texts: ["Once upon a time", "Once upon a time"],
    first_difference: null,
    verdict: verdictOf(runs),
    ...change,
  };
}
