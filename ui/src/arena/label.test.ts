import { expect, test } from "vitest";
import type { DraftOption } from "../bindings/DraftOption";
import { drafted, plain } from "./fixtures";
import { distinct, draftName, headingOf, labelOf, obstacleOf } from "./label";

const starter: DraftOption = {
  id: "starter-draft",
  label: "Starter draft 1.1M · Q8_0",
  detail: null,
  merit: null,
  problem: null,
};
const foreign: DraftOption = {
  id: "/models/t.gguf",
  label: "Tiny",
  detail: null,
  merit: null,
  problem: { kind: "other_vocabulary", reason: "the vocabularies differ" },
};

test("a heading begins with a capital, except for the names of files", () => {
  expect(headingOf(labelOf(plain, ""))).toBe("No draft");
  expect(headingOf("n-gram, 4 tokens ahead")).toBe("N-gram, 4 tokens ahead");
  expect(headingOf("tinyllama-15M")).toBe("tinyllama-15M");
});

test("a set-up is named after its draft, its length and all non-default settings", () => {
  expect(labelOf(drafted, starter.label)).toBe("Starter draft 1.1M");
  expect(labelOf(plain, starter.label)).toBe("no draft");
  const { speculation } = drafted;
  const fixed = {
    ...drafted,
    mode: "reproducible" as const,
    speculation: {
      ...speculation,
      length: { type: "fixed" as const, tokens: 5 },
      tree: { type: "width" as const, guesses: 3 },
      threshold: { type: "fixed" as const, chance: 0.3 },
      drafter: "model" as const,
      staged: "on" as const,
    },
  };
  expect(labelOf(fixed, starter.label)).toBe(
    "Starter draft 1.1M, 5 tokens ahead, draft model only, tree width 3, cut-off 0.3, two-stage draft, reproducible",
  );
});

test("with drafting off there is no draft, even if one is chosen", () => {
  const off = { ...drafted.speculation, length: { type: "off" as const } };
  expect(labelOf({ ...drafted, speculation: off }, starter.label)).toBe("no draft");
});

test("a missing draft is named after its file", () => {
  expect(draftName({ ...drafted, draft: "/models/gone.gguf" }, [])).toBe("gone.gguf");
  expect(draftName(drafted, [starter])).toBe(starter.label);
});

test("two equal labels get a letter each", () => {
  expect(distinct(["no draft", "no draft"])).toEqual(["no draft (A)", "no draft (B)"]);
  expect(distinct(["a", "b"])).toEqual(["a", "b"]);
});

test("a missing or unusable draft is an obstacle with its reason", () => {
  expect(obstacleOf([drafted, plain], [starter])).toBeNull();
  expect(obstacleOf([plain, drafted], [])).toBe(
    "The draft model of setup B, starter-draft, is no longer on this computer. Choose another.",
  );
  expect(obstacleOf([{ ...plain, draft: foreign.id }, plain], [foreign])).toBe(
    "Tiny in setup A cannot draft for this target model: the vocabularies differ. Choose another.",
  );
});
