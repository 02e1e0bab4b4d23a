import { expect, test } from "vitest";
import {
  contextCost,
  contextLengths,
  int8Saving,
  tokenBytes,
  trainedWords,
} from "./contextLengths";

const window = {
  trained: 131_072,
  token_bytes: 28_672,
  int8_token_bytes: 14_560,
  rope_scaling: null,
};

test("lengths double up to the trained one, with the chosen one among them", () => {
  expect(contextLengths(512, undefined)).toEqual([512]);
  expect(contextLengths(8192, undefined)).toEqual([2048, 4096, 8192]);
  expect(contextLengths(40_960, 3000)).toEqual([2048, 3000, 4096, 8192, 16_384, 32_768, 40_960]);
  expect(contextLengths(8192, 100_000), "more than the model was trained with").toEqual([
    2048, 4096, 8192,
  ]);
});

test("a length costs memory, and time where the speed of reading is known", () => {
  expect(contextCost(window.token_bytes, 4096, null)).toBe("117.4\u00a0MB of memory");
  expect(contextCost(window.token_bytes, 4096, 340)).toBe(
    "117.4\u00a0MB of memory, about 12\u00a0s to read",
  );
  expect(contextCost(window.token_bytes, 131_072, 340)).toBe(
    "3.8\u00a0GB of memory, about 6\u00a0min 26\u00a0s to read",
  );
});

test("8 bits save memory where a model can have them", () => {
  const whole = { ...window, int8_token_bytes: null };
  expect(int8Saving(window, 8192)).toBe("Saves 115.6\u00a0MB of 234.9\u00a0MB for 8,192 tokens.");
  expect(int8Saving(whole, 8192)).toBeNull();
  expect([tokenBytes(window, true), tokenBytes(window, false)]).toEqual([14_560, 28_672]);
  expect(tokenBytes(whole, true)).toBe(28_672);
});

test("the trained length is named with the scaling in the file", () => {
  const words = (rope_scaling: Parameters<typeof trainedWords>[0]["rope_scaling"]) =>
    trainedWords({ ...window, rope_scaling });
  const trained = "This model was trained for 131,072 tokens.";
  expect(words(null)).toBe(`${trained} Its file does not scale RoPE.`);
  expect(words({ kind: "linear", factor: 8 })).toBe(
    `${trained} Its file scales RoPE linearly, by 8.`,
  );
  expect(words({ kind: "per_frequency" })).toBe(
    `${trained} Its file scales each RoPE frequency by itself.`,
  );
  expect(words({ kind: "yarn", factor: 4, original: 32_768 })).toBe(
    `${trained} Its file scales RoPE with YaRN, by 4 from 32,768 tokens.`,
  );
  expect(words({ kind: "long_rope", original: 4096 })).toBe(
    `${trained} Its file scales RoPE with LongRoPE beyond 4,096 tokens.`,
  );
});
