import { expect, test } from "vitest";
import { threeRounds } from "./fixtures";
import { summaryOf } from "./summary";

test("the summary equals the shell's", () => {
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
