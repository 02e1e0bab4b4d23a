import { expect, test } from "vitest";
import { draftFor, sizeHint } from "./pairs";

const sized = (parameters: number) => ({ parameters });
const drafts = [sized(268e6), sized(999e6)];

test("the draft for a target is the one nearest to a tenth of it", () => {
  expect(draftFor(sized(3.88e9), drafts)).toBe(drafts[0]);
  expect(draftFor(sized(11.8e9), drafts)).toBe(drafts[1]);
  expect(draftFor(sized(11.8e9), drafts.slice(2))).toBeUndefined();
});

test.each([
  [1.24e9, "12% of the target model's size: about right"],
  [30e6, "less than 1% of the target model's size: fast, but few drafts may be accepted"],
  [3e9, "30% of the target model's size: rather large"],
  [5e9, "50% of the target model's size: probably too large to be faster"],
  [10e9, "as large as the target model: too large to gain from drafting"],
  [0, "size unknown"],
])("a draft of %d parameters for a target of ten billion: %s", (parameters, hint) => {
  expect(sizeHint(sized(10e9), sized(parameters))).toBe(hint);
});
