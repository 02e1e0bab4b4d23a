import { expect, test } from "vitest";
import { drafted, extra, round, threeRounds, treeRound } from "./fixtures";
import { Accumulator, rateOf, statisticsOf } from "./statistics";

/** A round that adds `tokens` tokens and ends at `at_ms`. */
const burst = (index: number, tokens: number, at_ms: number) =>
  round(index, {
    at_ms,
    drafted: Array.from({ length: tokens - 1 }, () => drafted(" t", "accepted")),
    extra: extra(" t", "bonus"),
  });

test("a discarded token is not counted as judged", () => {
  const { drafted, judged, accepted, acceptanceRate } = statisticsOf(threeRounds);
  expect({ drafted, judged, accepted }).toEqual({ drafted: 4, judged: 3, accepted: 2 });
  expect(acceptanceRate).toBeCloseTo(2 / 3);
});

test("tokens per round counts extra tokens too", () => {
  expect(statisticsOf(threeRounds).tokensPerRound).toBeCloseTo(5 / 3);
});

test("acceptance by position counts only those judged at that position", () => {
  expect(statisticsOf(threeRounds).byPosition).toEqual([
    { judged: 2, accepted: 1 },
    { judged: 1, accepted: 1 },
  ]);
});

test("siblings are all judged, but their position counts once", () => {
  const { judged, accepted, byPosition } = statisticsOf([treeRound]);
  expect({ judged, accepted }).toEqual({ judged: 4, accepted: 2 });
  expect(byPosition).toEqual([
    { judged: 1, accepted: 1 },
    { judged: 1, accepted: 1 },
  ]);
});

test("the governor's last decision applies until its next", () => {
  const decision = {
    before: null,
    chosen: 2,
    drafting_ms: [],
    verify_ms: [],
    acceptance: [],
    tokens_per_second: [10, 15, 20],
  };
  expect(statisticsOf([round(0, { decision }), round(1)]).decision).toEqual(decision);
  expect(statisticsOf(threeRounds).decision).toBeNull();
});

test("experts are averaged over the rounds that counted them", () => {
  const rounds = [round(0, { experts: 8 }), round(1), round(2, { experts: 12.5 })];
  expect(statisticsOf(rounds).expertsRead).toBeCloseTo(10.25);
  expect(statisticsOf(threeRounds).expertsRead).toBeNull();
});

test("an empty trace has no rates, and none of them is a division by zero", () => {
  const empty = statisticsOf([]);
  expect(empty.acceptanceRate).toBeNull();
  expect(empty.tokensPerRound).toBeNull();
  expect(empty.tokensPerSecond).toBeNull();
  expect(empty.ttftMs).toBeNull();
  expect(empty.tokenMs).toBeNull();
});

test("plain decoding has no acceptance rate", () => {
  const plain = [round(0, { extra: extra("a", "plain") })];
  expect(statisticsOf(plain).acceptanceRate).toBeNull();
});

test("the first token's time is the first round's end", () => {
  expect(statisticsOf(threeRounds).ttftMs).toBe(100);
});

test("the rate excludes the first round, whose time includes the prefill", () => {
  const rounds = [burst(0, 5, 3000), burst(1, 5, 3100), burst(2, 5, 3200)];
  expect(rateOf(rounds)).toBeCloseTo(50);
});

test("a burst does not make the rate jump", () => {
  const steady = Array.from({ length: 40 }, (_, index) => burst(index, 1, 100 + 100 * index));
  const after = [...steady, burst(40, 16, 4001)];
  expect(rateOf(steady)).toBeCloseTo(10);
  expect(rateOf(after)).toBeLessThan(19);
});

test("the rate excludes rounds before the window, and counts the round on its edge in part", () => {
  const slowThenFast = [burst(0, 1, 0), burst(1, 1, 10_000), burst(2, 10, 11_000)];
  // The window is 9,000 to 11,000 ms: a tenth of the slow round's time and all of the fast one.
  expect(rateOf(slowThenFast)).toBeCloseTo((0.1 + 10) / 2);
});

test("milliseconds a token are weighted by tokens, not by rounds", () => {
  const rounds = [burst(0, 1, 0), burst(1, 9, 90), burst(2, 1, 190)];
  expect(statisticsOf(rounds).tokenMs).toEqual({ p50: 10, p95: 100 });
});

test("times are sums over rounds", () => {
  expect(statisticsOf(threeRounds).times).toEqual({
    draft_ms: 6,
    verify_ms: 18,
    sample_ms: 3,
    rest_ms: 3,
  });
});

test("a snapshot between two rounds does not change later counts", () => {
  const rounds = [
    ...threeRounds,
    ...Array.from({ length: 30 }, (_, at) => burst(3 + at, 3, 200 + 30 * at)),
  ];
  const accumulator = new Accumulator();
  rounds.forEach((held, index) => {
    accumulator.add(held);
    expect(accumulator.snapshot()).toEqual(statisticsOf(rounds.slice(0, index + 1)));
  });
});

test("a snapshot stays as it was when more rounds are counted", () => {
  const accumulator = new Accumulator();
  for (const held of threeRounds) accumulator.add(held);
  const before = accumulator.snapshot();
  const kept = structuredClone(before);
  for (const held of threeRounds) accumulator.add(held);
  expect(before).toEqual(kept);
});

test("the rate of a long reply is that of all its rounds, though old ones were dropped", () => {
  const rounds = Array.from({ length: 20_000 }, (_, at) =>
    burst(at, 1 + (at % 5), 2.5 * at + (at % 7)),
  );
  expect(statisticsOf(rounds).tokensPerSecond).toBeCloseTo(rateOf(rounds) ?? 0, 9);
});

test("the rate is right if the window has fewer rounds than are kept", () => {
  const rounds = Array.from({ length: 9000 }, (_, at) =>
    burst(at, 1, at < 8999 ? at / 1000 : 60_000),
  );
  expect(statisticsOf(rounds).tokensPerSecond).toBeCloseTo(rateOf(rounds) ?? 0, 9);
});
