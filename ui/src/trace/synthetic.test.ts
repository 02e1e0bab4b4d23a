import { expect, test } from "vitest";
import { count } from "./round";
import { statisticsOf } from "./statistics";
import { Synthesis } from "./synthetic";
import { depthsOf } from "./tree";

const rounds = new Synthesis(3, 2000).take(2000);
const tokens = rounds.flatMap(({ drafted }) => drafted);

test("the same seed gives the same rounds, another seed others", () => {
  expect(new Synthesis(3, 2000).take(50)).toEqual(rounds.slice(0, 50));
  expect(new Synthesis(4, 2000).take(50)).not.toEqual(rounds.slice(0, 50));
});

test("there is every outcome, drafter and extra token, and rounds without a draft", () => {
  const all = (values: unknown[]) => new Set(values).size;
  expect(all(tokens.map(({ outcome }) => outcome))).toBe(3);
  expect(all(tokens.map(({ drafter }) => drafter))).toBe(4);
  expect(all(rounds.map(({ extra }) => extra?.kind))).toBe(3);
  expect(all(rounds.map(({ staged }) => staged))).toBe(2);
  expect(rounds.some(({ drafted, draft_length }) => draft_length > 0 && drafted.length === 0)).toBe(
    true,
  );
});

test("every draft has expectations, which are met on average", () => {
  const drafts = rounds.filter(({ drafted }) => drafted.length > 0);
  for (const { drafted, expected } of drafts) {
    const survivals = drafted.map(({ survival }) => survival ?? expect.fail());
    expect(expected).toBeCloseTo(
      survivals.reduce((sum, survival) => sum + survival, 1),
      9,
    );
    expect(survivals[0]).toBe(Math.max(...survivals));
  }
  const mean = (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  const written = mean(drafts.map((round) => count(round, "accepted") + 1));
  expect(mean(drafts.map(({ expected }) => expected ?? 0))).toBeCloseTo(written, 0);
});

test("there are trees 16 deep and 8 wide", () => {
  expect(Math.max(...rounds.flatMap(depthsOf))).toBe(15);
  const widths = rounds.flatMap((round) => {
    const depths = depthsOf(round);
    return depths.map((depth) => depths.filter((other) => other === depth).length);
  });
  expect(Math.max(...widths)).toBe(8);
});

test("the rounds are in order, verified as by a target, and take their stated time", () => {
  expect(rounds.map(({ index }) => index)).toEqual([...rounds.keys()]);
  expect(statisticsOf(rounds).tokensPerSecond).toBeCloseTo(2000, -2);
  for (const round of rounds.slice(0, 400)) {
    const depths = depthsOf(round);
    const accepted = depths.filter((_, slot) => round.drafted[slot]?.outcome === "accepted");
    expect(accepted).toEqual(accepted.map((_, depth) => depth));
    const missed = round.drafted.length > 0 && accepted.length <= Math.max(...depths);
    if (missed) expect(count(round, "rejected")).toBeGreaterThan(0);
    for (const token of round.drafted) {
      expect(token.acceptance === null).toBe(token.outcome === "discarded");
    }
  }
});
