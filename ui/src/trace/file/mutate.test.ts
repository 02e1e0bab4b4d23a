import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { spotsOf } from "../../heatmap/spots";
import { make } from "../../markdown/shapes";
import { tokenLine } from "../../markdown/tokenShapes";
import { chipsOf } from "../chips";
import { cardOf, sentenceOf } from "../describe";
import { drafted, threeRounds, treeRound } from "../fixtures";
import { statisticsOf } from "../statistics";
import { MARKUP, randomFrom, rewrite, scratch } from "./mutate";
import { TraceFileError } from "./problem";
import { readTrace, type TraceFile } from "./read";

const page = readFileSync(`${import.meta.dirname}/../../../../docs/trace.md`, "utf8");
const example = (/```jsonl\n([^`]+)```/.exec(page)?.[1] ?? "").trim();
const tree = [...threeRounds, { ...treeRound, index: 3, at_ms: 150 }]
  .map((round) => JSON.stringify({ type: "round", ...round }))
  .join("\n");

/** Runs every computation of the page on a trace, except drawing. */
function fold({ rounds }: TraceFile) {
  expect(statisticsOf(rounds).rounds).toBe(rounds.length);
  for (const chip of chipsOf(rounds)) {
    const [shape] = tokenLine([chip]);
    expect(shape && make(shape).textContent).toBeDefined();
    const card = cardOf(rounds, chip) ?? expect.fail("a chip without a card");
    expect(sentenceOf(card)).not.toBe("");
  }
  for (const round of rounds) expect(spotsOf(round, 28)).toBeDefined();
}

test.each([
  ["signs", example, scratch],
  ["fields and lines", example, rewrite],
  ["fields of a tree", tree, rewrite],
])(
  "a file with other %s is read and can be drawn, or is refused with a message",
  { timeout: 60_000 },
  (_, good, break_) => {
    const random = randomFrom(7);
    const met = { read: 0, refused: 0 };
    for (let i = 0; i < 3000; i += 1) {
      let bad = break_(good, random);
      if (random() < 0.3) bad = scratch(bad, random);
      try {
        fold(readTrace(bad));
        met.read += 1;
      } catch (thrown) {
        if (!(thrown instanceof TraceFileError)) throw thrown;
        expect(thrown.message).toMatch(/^[^\n]+\.$/);
        expect(thrown.message.length).toBeLessThan(300);
        met.refused += 1;
      }
    }
    expect(met.read).toBeGreaterThan(100);
    expect(met.refused).toBeGreaterThan(1000);
  },
);

test("a field named like a built-in property of objects changes nothing", () => {
  const line = JSON.stringify({ type: "round", ...threeRounds[0] });
  const bad = line.replace("{", '{"__proto__":{"polluted":1},"constructor":1,');
  expect(readTrace(bad).rounds[0]).not.toHaveProperty("polluted");
  expect({}).not.toHaveProperty("polluted");
});

test("markup in every text of a file is text", () => {
  const token = drafted(MARKUP, "accepted");
  const round = { ...threeRounds[0], drafted: [token], extra: null };
  const about = { type: "trace", version: 1, program: MARKUP, prompt: MARKUP, target: MARKUP };
  const lines = [about, { type: "round", ...round }, { type: "done", text: MARKUP }];
  expect(readTrace(lines.map((line) => JSON.stringify(line)).join("\n")).text).toBe(MARKUP);
});
