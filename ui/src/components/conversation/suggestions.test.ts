import { expect, test } from "vitest";
import { suggestionsFor } from "./suggestions";

test("every model gets three suggestions, and those for SmolLM2 include their texts", () => {
  for (const target of ["starter", "smollm2", "/models/other.gguf"]) {
    const titles = suggestionsFor(target).map(({ title }) => title);
    expect(new Set(titles).size).toBe(3);
  }
  for (const { prompt } of suggestionsFor("smollm2")) expect(prompt).toMatch(/^[^\n]+\n\n[^\n]+$/);
});
