import { expect, test } from "vitest";

const sources = import.meta.glob<string>("./**/*.{css,svelte}", {
  query: "?raw",
  import: "default",
  eager: true,
});

test("nothing moves for ever: what is under way is told by shape, and the cores are the engine's", () => {
  expect(Object.keys(sources).length).toBeGreaterThan(50);
  const endless = Object.entries(sources).filter(([, source]) => /\binfinite\b/.test(source));
  expect(endless.map(([path]) => path)).toEqual([]);
});
