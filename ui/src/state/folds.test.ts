import { beforeEach, expect, test } from "vitest";
import { Folds } from "./folds.svelte";

beforeEach(() => localStorage.clear());

test("a folded section stays folded at the next start", () => {
  new Folds().toggle("governor");
  expect(new Folds().has("governor")).toBe(true);
  expect(new Folds().has("memory")).toBe(false);
});

test("a section that is folded twice is open", () => {
  const folds = new Folds();
  folds.toggle("governor");
  folds.toggle("governor");
  expect(folds.has("governor")).toBe(false);
  expect(new Folds().has("governor")).toBe(false);
});

test.each(["{", "3", '{"a":1}', "[1,null]"])("what cannot be read folds nothing: %s", (kept) => {
  localStorage.setItem("foretoken.inspector-folded", kept);
  expect(new Folds().has("governor")).toBe(false);
});
