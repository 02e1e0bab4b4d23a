import { expect, test } from "vitest";
import { threeRounds } from "../trace/fixtures";
import { textOf } from "../trace/text";
import { parseRecording, summaryOf, withoutDrafts } from "./recording";
import { recordingFor } from "./recordings";

const lines = (end: string) =>
  [...threeRounds.map((round) => JSON.stringify({ type: "round", ...round })), end].join("\n");
const done = '{"type":"done","text":"a b c d e","prompt_tokens":10,"finish":"stop"}';

test("a recording is its rounds and how they ended", () => {
  const recording = parseRecording(lines(done));
  expect(recording.rounds).toEqual(threeRounds);
  expect(recording).toMatchObject({ text: "a b c d e", promptTokens: 10, finish: "stop" });
});

test("a recording from before drafts could be trees is one of chains", () => {
  const old = {
    type: "round",
    index: 0,
    position: 0,
    drafted: [{ token: 1, text: "a", outcome: "accepted", drafter: "model" }],
    extra: null,
    draft_length: 1,
    reason: "fixed",
  };
  const { rounds } = parseRecording([JSON.stringify(old), done].join("\n"));
  expect(rounds[0]).toMatchObject({ threshold: null, staged: false });
  expect(rounds[0]?.drafted[0]?.parent).toBeNull();
});

test("a recording without an end is refused", () => {
  expect(() => parseRecording(lines(""))).toThrow(/has no end/);
});

test("without drafts the text is the same, a token a round", () => {
  const plain = withoutDrafts(parseRecording(lines(done)));
  expect(textOf(plain.rounds)).toBe("a b c d e");
  expect(plain.rounds).toHaveLength(5);
  expect(plain.rounds.every(({ drafted }) => drafted.length === 0)).toBe(true);
});

test("the summary counts as the shell does", () => {
  expect(summaryOf([...threeRounds], "stop", 10)).toMatchObject({
    prompt_tokens: 10,
    tokens: 5,
    rounds: 3,
    judged: 3,
    accepted: 2,
    ttft_ms: 100,
    tokens_per_second: 100,
    elapsed_ms: 120,
  });
});

test.each(["Tell me a story.", "What is speculative decoding?", "Count from one to twelve."])(
  "the recording that answers %j is whole: its rounds join to its text",
  (question) => {
    const { rounds, text } = recordingFor(question, true);
    expect(textOf(rounds)).toBe(text);
    expect(rounds.map(({ index }) => index)).toEqual(rounds.map((_, index) => index));
  },
);
