import { expect, test } from "vitest";
import { drafted, extra, round } from "../trace/fixtures";
import { withSampleDecisions } from "./sampleDecisions";

const accepted = (index: number) =>
  round(index, { drafted: [drafted(" a", "accepted")], extra: extra(" b", "bonus") });
const rejected = (index: number) =>
  round(index, { drafted: [drafted(" a", "rejected")], extra: extra(" b", "recovered") });

function chosen(rounds: ReturnType<typeof withSampleDecisions>): number[] {
  return rounds.flatMap(({ decision }) => (decision ? [decision.chosen] : []));
}

test("a sample begins with a decision, which is repeated at times", () => {
  const rounds = withSampleDecisions(Array.from({ length: 65 }, (_, index) => accepted(index)));
  expect(rounds[0]?.decision).toMatchObject({ before: null });
  expect(rounds[64]?.decision?.chosen).toBe(rounds[64]?.decision?.before);
});

test("a sample drafts further while tokens are accepted, and not at all while none is", () => {
  const long = chosen(withSampleDecisions(Array.from({ length: 60 }, (_, i) => accepted(i))));
  const none = chosen(withSampleDecisions(Array.from({ length: 60 }, (_, i) => rejected(i))));
  expect(long.at(-1)).toBeGreaterThan(long[0] ?? 0);
  expect(none.at(-1)).toBe(0);
});
