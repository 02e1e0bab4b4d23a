import { expect, test } from "vitest";
import { textOf } from "../trace/text";
import { callsIn, restOf } from "./recording";
import { callOf, recordedStatus, replyTo } from "./recordings";

test("a recorded call has its events and its answer or error", () => {
  const lines = ['{"command":"a"}', '{"at_ms":1,"event":2}', '{"at_ms":3,"answer":null}'];
  expect(callsIn(`${lines.join("\n")}\n`)).toEqual([
    { command: "a", events: [{ at_ms: 1, event: 2 }], at_ms: 3, answer: null },
  ]);
});

test("a call is found by its arguments, or else by its command", () => {
  expect(callOf("search_hub", { words: "offline" })?.error?.code).toBe("offline");
  expect(callOf("search_hub", { words: "anything" })?.error).toBeUndefined();
  expect(callOf("no_command")).toBeUndefined();
});

test("the recorded status has the sample models on the recorded engine", () => {
  const { targets, penalties } = recordedStatus();
  expect(targets.map(({ id }) => id)).toContain("starter");
  expect(targets.length).toBeGreaterThan(2);
  expect(penalties).toMatchObject({ dry_base: 1.75 });
});

test.each(["Show me Markdown", "What is speculative decoding?", "Count", "Anything else"])(
  "the reply to %j has the text of its rounds and a speed-up at its end",
  (question) => {
    const { rounds, speedups, text } = replyTo(question, true);
    expect(textOf(rounds)).toBe(text);
    expect(rounds.map(({ index }) => index)).toEqual(rounds.map((_, index) => index));
    if (!question.includes("Markdown")) {
      expect(speedups).toHaveLength(rounds.length);
      expect(speedups.at(-1)?.factor).toBeGreaterThan(0);
    }
  },
);

test("a reply without drafts has a token per round", () => {
  expect(replyTo("Anything", false).rounds.every(({ drafted }) => drafted.length === 0)).toBe(true);
});

test("the rest of a reply begins with its next round", () => {
  const recording = replyTo("Anything", true);
  const begin = textOf(recording.rounds.slice(0, 3));
  const rest = restOf(recording, begin.length);
  expect(begin + rest.text).toBe(recording.text);
  expect(rest.rounds[0]?.index).toBe(0);
  expect(restOf(recording, 0).rounds).toEqual(recording.rounds);
});
