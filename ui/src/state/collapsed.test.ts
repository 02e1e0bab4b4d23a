import { beforeEach, expect, test } from "vitest";
import { Collapsed } from "./collapsed.svelte";

beforeEach(() => localStorage.clear());

test("a collapsed section stays collapsed at the next start", () => {
  new Collapsed().toggle("governor");
  expect(new Collapsed().has("governor")).toBe(true);
  expect(new Collapsed().has("memory")).toBe(false);
});

test("a section that is collapsed twice is open", () => {
  const collapsed = new Collapsed();
  collapsed.toggle("governor");
  collapsed.toggle("governor");
  expect(collapsed.has("governor")).toBe(false);
  expect(new Collapsed().has("governor")).toBe(false);
});

test.each(["{", "3", '{"a":1}', "[1,null]"])(
  "what cannot be read collapses nothing: %s",
  (kept) => {
    localStorage.setItem("foretoken.inspector-folded", kept);
    expect(new Collapsed().has("governor")).toBe(false);
  },
);
