import { readFileSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";
import type { DrafterKind } from "../bindings/DrafterKind";
import type { Outcome } from "../bindings/Outcome";
import type { Round } from "../bindings/Round";
import { readTrace } from "./file/read";
import { count } from "./round";
import { replyNumbers } from "./replyNumbers";
import { statisticsOf } from "./statistics";
import { summaryOf } from "./summary";

/** Traces with results of the engine and of the page, see `tests/engine/traces.rs`. */
const FOLDER = `${import.meta.dirname}/../../../tests/traces`;
const OUTCOMES = ["accepted", "rejected", "discarded"] as const;
/** Relative tolerance between sums of single and double precision. */
const RELATIVE = 1e-5;

const stored = readdirSync(FOLDER).filter((name) => name.endsWith(".jsonl"));

function outcomes(rounds: readonly Round[]) {
  const counts: Partial<Record<DrafterKind, Record<Outcome, number>>> = {};
  for (const { drafter } of rounds.flatMap(({ drafted }) => drafted)) {
    const of = (round: Round) => ({
      ...round,
      drafted: round.drafted.filter((token) => token.drafter === drafter),
    });
    counts[drafter] ??= Object.fromEntries(
      OUTCOMES.map((outcome) => [
        outcome,
        rounds.reduce((sum, round) => sum + count(of(round), outcome), 0),
      ]),
    ) as Record<Outcome, number>;
  }
  return counts;
}

/** A matcher for `value` whose numbers may differ by rounding. */
function near(value: unknown): unknown {
  if (typeof value === "number") {
    const tolerance = RELATIVE * Math.max(1e-3, Math.abs(value));
    return expect.toSatisfy((found) => Math.abs(Number(found) - value) <= tolerance, `${value}`);
  }
  if (typeof value !== "object" || value === null) return value;
  const parts = Object.entries(value).map(([key, part]) => [key, near(part)] as const);
  return expect.objectContaining(Object.fromEntries(parts));
}

test.each(stored)("the page computes the same as the engine from %s", (name) => {
  const { rounds, text } = readTrace(readFileSync(`${FOLDER}/${name}`, "utf8"));
  const path = `${FOLDER}/${name.replace(".jsonl", ".expected.json")}`;
  // Only the engine computes speed-ups; the page just shows them.
  const expected = JSON.parse(readFileSync(path, "utf8")) as {
    summary: { tokens_per_second: number | null };
    speedups?: unknown;
  };
  delete expected.speedups;
  const summary = summaryOf(rounds, "stop", 0);
  const wasted = summary.drafted - summary.accepted;
  expect({ summary, wasted, outcomes: outcomes(rounds), text }).toEqual(near(expected));
  // The inspector computes its own sums.
  const shown = replyNumbers({ rounds, statistics: statisticsOf(rounds) }, summary);
  expect(shown?.rate).toEqual(near(expected.summary.tokens_per_second));
});

test("there are traces to compare", () => {
  expect(stored.length).toBeGreaterThanOrEqual(5);
});
