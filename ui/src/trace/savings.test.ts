import { expect, test } from "vitest";
import type { Decision } from "../bindings/Decision";
import type { Summary } from "../bindings/Summary";
import { drafted, extra, round, summary } from "./fixtures";
import { paceOfSummary, paceOfTrace, savingOf, savingWords, signed, times } from "./savings";
import { statisticsOf } from "./statistics";

const decision: Decision = {
  before: null,
  chosen: 1,
  drafting_ms: [],
  verify_ms: [],
  acceptance: [],
  tokens_per_second: [100, 150],
};
const two = {
  drafted: [drafted(" a", "accepted")],
  extra: extra(" b", "bonus"),
};
/** A round of 10 ms and two tokens after the first: 200 tokens/s, where plain decoding has 100. */
const rounds = [round(0, { ...two, decision }), round(1, two), round(2, two)];
/** 40 tokens in two seconds after the first round, where plain decoding would take four. */
const stored = (change: Partial<Summary> = {}) =>
  paceOfSummary(
    summary({
      ttft_ms: 500,
      elapsed_ms: 2500,
      tokens_per_second: 20,
      plain_tokens_per_second: 10,
      ...change,
    }),
  );

test("a trace's pace begins after the first round, whose time is the prompt's", () => {
  expect(paceOfTrace(rounds, statisticsOf(rounds))).toEqual({
    tokens: 4,
    ms: 20,
    plain: 100,
    drafted: true,
  });
});

test("rounds that were not counted yet are not timed either", () => {
  expect(paceOfTrace(rounds, statisticsOf(rounds.slice(0, 2)))?.ms).toBe(10);
});

test("a stored reply has the pace of its summary", () => {
  expect(stored()).toEqual({ tokens: 40, ms: 2000, plain: 10, drafted: true });
});

test("a reply of one round has no pace", () => {
  expect(paceOfTrace(rounds.slice(0, 1), statisticsOf(rounds.slice(0, 1)))).toBeNull();
  expect(paceOfTrace([], statisticsOf([]))).toBeNull();
  expect(stored({ tokens_per_second: null })).toBeNull();
});

test("twice as fast saves as much time as it takes", () => {
  expect(savingOf([stored()])).toEqual({ ms: 2000, speedup: 2, plain: 10 });
});

test("a conversation is the sum of its replies, not the mean of their speedups", () => {
  const slow = stored({ tokens_per_second: 5 });
  expect(savingOf([stored(), slow])).toEqual({ ms: 1000, speedup: 1.25, plain: 10 });
});

test("nothing is saved or lost where nothing was drafted or plain decoding was never measured", () => {
  expect(savingOf([stored({ drafted: 0 })])).toBeNull();
  expect(savingOf([stored({ plain_tokens_per_second: null })])).toBeNull();
  expect(savingOf([stored({ plain_tokens_per_second: 0 })])).toBeNull();
  expect(savingOf([null])).toBeNull();
});

test("a saving says its sign in words", () => {
  expect(savingWords({ ms: 2400, speedup: 1.71, plain: 10 })).toBe(
    "2.4\u00a0s saved, 1.7x the speed without drafts",
  );
  expect(savingWords({ ms: -300, speedup: 0.87, plain: 10 })).toBe(
    "300\u00a0ms lost, 0.9x the speed without drafts",
  );
  expect(savingWords({ ms: -3, speedup: 0.98, plain: 10 })).toBe(
    "3.0\u00a0ms lost, 0.98x the speed without drafts",
  );
  expect(savingWords({ ms: 1, speedup: 1.001, plain: 10 })).toBe("as fast as without drafts");
});

test("near 1 a speedup has the digits that decide", () => {
  expect([0.5, 0.96, 1.04, 1.09, 1.1, 2.04].map(times)).toEqual([
    "0.5x",
    "0.96x",
    "1.04x",
    "1.09x",
    "1.1x",
    "2.0x",
  ]);
});

test("a time is signed", () => {
  expect([signed(2400), signed(-300)]).toEqual(["+2.4\u00a0s", "−300\u00a0ms"]);
});
