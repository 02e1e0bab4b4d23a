import { expect, test } from "vitest";
import type { Message } from "../bindings/Message";
import { turnsOf } from "./branches";

const message = (id: number, role: Message["role"], parent: number | null): Message => ({
  id,
  conversation: 1,
  role,
  text: "",
  created_at: 5,
  finish: "length",
  summary: null,
  target: null,
  draft: null,
  problem: null,
  parent,
  siblings: [id],
  attachments: [],
  excerpts: [],
  calls: [],
  calls_start: null,
  unstored: null,
  speedup: null,
});

test("while the last reply grows, earlier ones stay the same objects", () => {
  const before = [
    message(1, "user", null),
    message(2, "assistant", 1),
    message(3, "assistant", 2),
    message(4, "user", 3),
  ];
  const reply = message(5, "assistant", 4);
  const known = turnsOf([...before, reply]);
  expect(known.map(({ before: parts }) => parts.length)).toEqual([0, 1, 0, 0]);
  const grown = turnsOf([...before, { ...reply, text: "a" }], known);
  expect(grown.map((whole, at) => whole === known[at])).toEqual([true, true, true, false]);
  const [first, cut, ...others] = before;
  const changed = turnsOf([first, { ...cut, text: "b" }, ...others] as Message[], known);
  expect(changed[1]).not.toBe(known[1]);
});
