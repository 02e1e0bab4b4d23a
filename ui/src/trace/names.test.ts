import { expect, test } from "vitest";
import { shortDraftName, shortName } from "./names";

test.each([
  ["SmolLM2 135M Instruct · Q4_1", "SmolLM2 135M"],
  ["Qwen2.5 Coder 1.5B Instruct · Q4_K_M", "Qwen2.5 Coder 1.5B"],
  ["Gemma 3 270M it · Q8_0", "Gemma 3 270M"],
  ["N-gram", "N-gram"],
  ["Instruct", "Instruct"],
])("the header shortens %s to %s", (label, short) => {
  expect(shortName(label)).toBe(short);
});

test("a draft of the target's family is named by its size alone, any other by its name", () => {
  const target = "Qwen2.5 Coder 1.5B Instruct · Q4_K_M";
  expect(shortDraftName("Qwen2.5 Coder 0.5B Instruct · Q4_K_M", target)).toBe("0.5B");
  expect(shortDraftName("Qwen2.5 0.5B · Q8_0", target)).toBe("Qwen2.5 0.5B");
  expect(shortDraftName("Starter draft 1.1M", "Starter 8.1M")).toBe("Starter draft 1.1M");
  expect(shortDraftName("N-gram", target)).toBe("N-gram");
  expect(shortDraftName(target, target)).toBe("Qwen2.5 Coder 1.5B");
});
