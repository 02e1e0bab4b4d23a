import { expect, test } from "vitest";
import { extra, round } from "../trace/fixtures";
import { JoinedTrace } from "./joined";
import { Trace } from "./trace.svelte";

const plain = (index: number, text: string) => round(index, { extra: extra(text, "plain") });

test("parts follow each other, including later rounds of the last one", () => {
  const last = Trace.of([plain(0, "c")]);
  const joined = new JoinedTrace([Trace.of([plain(0, "a"), plain(1, "b")]), last]);
  expect(joined.offsets.text).toBe("abc");
  last.show([plain(1, "d"), plain(2, "e")], 0);
  expect(joined.length).toBe(5);
  expect(joined.offsets.text).toBe("abcde");
  expect(joined.offsets.before(3)).toBe(3);
});

test("a token is converted into its part and back, for every round of every part", () => {
  const joined = new JoinedTrace([
    Trace.of([plain(0, "a"), plain(1, "b")]),
    Trace.of([plain(0, "c")]),
    Trace.of([plain(0, "d"), plain(1, "e")]),
  ]);
  const found = joined.rounds.map((_, at) => joined.toPart({ round: at, slot: 4 }));
  expect(found.map(({ part, ref }) => [part, ref.round])).toEqual([
    ...[
      [0, 0],
      [0, 1],
    ],
    [1, 0],
    ...[
      [2, 0],
      [2, 1],
    ],
  ]);
  const back = found.map(({ part, ref }) => joined.toJoined(part, ref));
  expect(back).toEqual(joined.rounds.map((_, at) => ({ round: at, slot: 4 })));
});
