import { expect, test } from "vitest";
import type { Message } from "../bindings/Message";
import { totalsOf } from "./conversation";
import { drafted, extra, round, summary } from "./fixtures";
import { statisticsOf } from "./statistics";

function message(id: number, change: Partial<Message> = {}): Message {
  return {
    id,
    conversation: 1,
    role: "assistant",
    text: "",
    created_at: 0,
    finish: "stop",
    summary: summary(),
    target: null,
    draft: null,
    problem: null,
    parent: null,
    siblings: [id],
    attachments: [],
    excerpts: [],
    calls: [],
    calls_start: null,
    unstored: null,
    speedup: null,
    ...change,
  };
}

test("a conversation has the judged tokens of all its replies", () => {
  const question = message(1, { role: "user", summary: null });
  const totals = totalsOf([question, message(2), question, message(3)], null);
  expect(totals).toMatchObject({ replies: 2, tokens: 10, judged: 6, accepted: 4 });
  expect(totals.acceptanceRate).toBeCloseTo(4 / 6);
});

test("the reply under way counts with its rounds, not with an older state of itself", () => {
  const rounds = [
    round(0, { drafted: [drafted("a", "rejected")], extra: extra("b", "recovered") }),
  ];
  const live = { message: 3, statistics: statisticsOf(rounds) };
  const totals = totalsOf([message(2), message(3, { summary: null })], live);
  expect(totals).toMatchObject({ replies: 2, tokens: 6, judged: 4, accepted: 2 });
});

test("the parts of a continued reply are one reply", () => {
  const parts = [message(2, { parent: 1 }), message(3, { parent: 2 }), message(4, { parent: 3 })];
  expect(totalsOf([...parts, message(6, { parent: 5 })], null)).toMatchObject({ replies: 2 });
});

test("a conversation without replies has no rate", () => {
  expect(totalsOf([], null)).toEqual({
    replies: 0,
    tokens: 0,
    judged: 0,
    accepted: 0,
    acceptanceRate: null,
  });
});
