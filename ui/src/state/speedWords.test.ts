import { expect, test } from "vitest";
import type { PairSpeedup } from "../bindings/PairSpeedup";
import { pairWords, estimatedSpeed, speedWords } from "./speedWords";

test("estimates are worded with about, and with few digits", () => {
  expect(estimatedSpeed(34.44)).toBe("about 34 tokens/s here");
  expect(estimatedSpeed(6.378)).toBe("about 6.4 tokens/s here");
  expect(estimatedSpeed(32_478)).toBe("about 32,000 tokens/s here");
  expect(speedWords({ plain: 34.4, drafted: null, measured: false })).toBe(
    "about 34 tokens/s here",
  );
});

test("measurements are worded without about", () => {
  const both = { plain: 34.4, drafted: 51.6, measured: true };
  expect(speedWords(both)).toBe("34 tokens/s here, 52 with drafts");
  expect(speedWords({ ...both, drafted: null })).toBe("34 tokens/s here");
  expect(speedWords(both, true)).toBe("34 tokens/s here");
  expect(speedWords({ ...both, plain: null }, true)).toBe("52 tokens/s here with drafts");
  expect(speedWords({ ...both, plain: null })).toBe("52 tokens/s here with drafts");
  expect(speedWords({ plain: null, drafted: null, measured: true })).toBeNull();
});

test("speed-ups name the draft and the number of replies", () => {
  const pair = (factor: number, replies: number): PairSpeedup => ({
    target: "Starter 8.1M · Q8_0",
    draft: "Starter draft 1.1M · Q8_0",
    speedup: { factor, saved_ms: 1, plain_ms: 2, elapsed_ms: 1, replies },
  });
  expect(pairWords(pair(1.62, 12))).toBe("1.6× faster with Starter draft 1.1M, 12 replies");
  expect(pairWords(pair(1.04, 1))).toBe("no faster with Starter draft 1.1M, 1 reply");
  expect(pairWords(pair(0.7, 1234))).toBe("no faster with Starter draft 1.1M, 1,234 replies");
});
