import { expect, test } from "vitest";

const sources = import.meta.glob<string>("./**/*.{css,svelte}", {
  query: "?raw",
  import: "default",
  eager: true,
});

test("no animation runs forever: activity has a shape, and the cores belong to the engine", () => {
  expect(Object.keys(sources).length).toBeGreaterThan(50);
  const endless = Object.entries(sources).filter(([, source]) => /\binfinite\b/.test(source));
  expect(endless.map(([path]) => path)).toEqual([]);
});
