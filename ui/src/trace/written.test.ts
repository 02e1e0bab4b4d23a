import { expect, test } from "vitest";
import type { ReplySettings } from "../bindings/ReplySettings";
import { defaults } from "../bindings/defaults";
import { settingRows } from "./written";

const standard: ReplySettings = {
  speculation: defaults.speculation,
  sampling: { ...defaults.sampling, temperature: 0.7, top_k: 0, seed: 42 },
  system_prompt: "",
  thinking: null,
};
const rows = (change: Partial<ReplySettings>) =>
  Object.fromEntries(settingRows({ ...standard, ...change }));

test("drafting and sampling of a reply are described in the words of the settings", () => {
  expect(rows({})).toMatchObject({
    "Drafting method": "combined",
    "Draft length": "auto",
    Temperature: "0.7",
    "Top-k": "off",
    Seed: "42",
  });
});

test("the thinking setting of a reply is shown if it was set", () => {
  expect(rows({})).not.toHaveProperty("Thinking");
  expect(rows({ thinking: true })["Thinking"]).toBe("on");
  expect(rows({ thinking: false })["Thinking"]).toBe("off");
});

test("settings without an effect are left out: without drafts, all but the length", () => {
  const speculation = { ...standard.speculation, length: { type: "off" } as const };
  const shown = rows({ speculation });
  expect(shown["Draft length"]).toBe("off");
  expect(shown).not.toHaveProperty("Drafting method");
});

test("settings without an effect are left out: filters, mode and seed of a greedy reply", () => {
  const shown = rows({ sampling: { ...standard.sampling, temperature: 0 } });
  expect(shown["Temperature"]).toBe("0, greedy");
  for (const name of ["Top-k", "Top-p", "Min-p", "Sampling mode", "Seed"]) {
    expect(shown).not.toHaveProperty([name]);
  }
});

test("numbers that belong to a word stand beside it", () => {
  const speculation = {
    ...standard.speculation,
    length: { type: "fixed", tokens: 4 } as const,
    threshold: { type: "fixed", chance: 0.3 } as const,
    tree: { type: "width", guesses: 2 } as const,
  };
  expect(rows({ speculation })).toMatchObject({
    "Draft length": "fixed, 4",
    "Cut-off": "fixed, 0.3",
    Tree: "width, 2",
  });
});

test("a system prompt is shown where there was one", () => {
  expect(rows({})).not.toHaveProperty(["System prompt"]);
  expect(rows({ system_prompt: "Be brief." })["System prompt"]).toBe("Be brief.");
});
