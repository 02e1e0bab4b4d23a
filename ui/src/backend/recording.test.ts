import { expect, test } from "vitest";
import { threeRounds } from "../trace/fixtures";
import { textOf } from "../trace/text";
import { recordingOf, withoutDrafts } from "./recording";
import { recordingFor } from "./recordings";

const lines = (end: string) =>
  [...threeRounds.map((round) => JSON.stringify({ type: "round", ...round })), end].join("\n");
const done = '{"type":"done","text":"a b c d e","prompt_tokens":10,"finish":"stop"}';

test("a recording has its rounds and their ending", () => {
  const recording = recordingOf(lines(done));
  expect(recording.rounds).toMatchObject(threeRounds);
  expect(recording).toMatchObject({ text: "a b c d e", promptTokens: 10, finish: "stop" });
});

test("without drafts the text is the same, with a round per token", () => {
  const plain = withoutDrafts(recordingOf(lines(done)));
  expect(textOf(plain.rounds)).toBe("a b c d e");
  expect(plain.rounds).toHaveLength(5);
  expect(plain.rounds.every(({ drafted }) => drafted.length === 0)).toBe(true);
});

test.each(["Tell me a story.", "What is speculative decoding?", "Count from one to twelve."])(
  "the recording for %j is complete: its rounds join to its text",
  (question) => {
    const { rounds, text } = recordingFor(question, true);
    expect(textOf(rounds)).toBe(text);
    expect(rounds.map(({ index }) => index)).toEqual(rounds.map((_, index) => index));
  },
);
