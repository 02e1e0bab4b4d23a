import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import Listbox from "./Listbox.svelte";

const CHOICES = [
  { id: "starter-draft", label: "Starter draft", detail: "1.3 MB", problem: null },
  { id: "other", label: "Other", detail: "", problem: "the vocabularies differ at token 12" },
  { id: "none", label: "None", detail: "plain decoding", problem: null },
];

let shown: ReturnType<typeof mount>;
const onchoose = vi.fn();
const getMore = vi.fn();
const find = (testid: string) => document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);

beforeEach(() => {
  Element.prototype.scrollIntoView = vi.fn();
  onchoose.mockClear();
  getMore.mockClear();
  shown = mount(Listbox, {
    target: document.body,
    props: {
      label: "Draft",
      choices: CHOICES,
      value: "starter-draft",
      look: "header" as const,
      more: [{ label: "Get more models", run: getMore }],
      testid: "draft-picker",
      optionTestid: "draft-option",
      onchoose,
    },
  });
  flushSync();
});
afterEach(() => unmount(shown));

function press(...keys: string[]) {
  for (const key of keys) {
    find("draft-picker")?.dispatchEvent(
      new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }),
    );
    flushSync();
  }
}

test("arrow keys and Enter choose", () => {
  press("ArrowDown", "ArrowDown", "ArrowDown", "Enter");
  expect(onchoose).toHaveBeenCalledExactlyOnceWith("none");
  expect(find("draft-option-none")).toBeNull();
});

test("typing a letter moves to the entry that begins with it", () => {
  press("ArrowDown", "n", "Enter");
  expect(onchoose).toHaveBeenCalledExactlyOnceWith("none");
});

test("an entry that cannot be used is listed with its reason and cannot be chosen", () => {
  press("ArrowDown", "ArrowDown");
  const other = find("draft-option-other");
  expect(other?.textContent).toContain("the vocabularies differ at token 12");
  expect(other?.getAttribute("aria-disabled")).toBe("true");
  press("Enter");
  other?.click();
  expect(onchoose).not.toHaveBeenCalled();
});

test("the key that closes the list stops no reply", () => {
  const outside = vi.fn();
  window.addEventListener("keydown", outside);
  press("ArrowDown", "Escape");
  window.removeEventListener("keydown", outside);
  expect(find("draft-option-none")).toBeNull();
  expect(outside).not.toHaveBeenCalled();
});

test("what more there is can be reached by the keys, and is no choice", () => {
  press("ArrowDown", "End", "Enter");
  expect(getMore).toHaveBeenCalledOnce();
  expect(onchoose).not.toHaveBeenCalled();
  expect(find("draft-option-none")).toBeNull();
});

test("the entry the keys are at is announced", () => {
  press("ArrowDown", "End", "ArrowUp");
  const active = find("draft-picker")?.getAttribute("aria-activedescendant") ?? "";
  expect(document.getElementById(active)).toBe(find("draft-option-none"));
});
