import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Choice } from "./choice";
import Listbox from "./Listbox.svelte";

const CHOICES: Choice[] = [
  {
    id: "starter-draft",
    label: "Starter draft",
    detail: "1.3 MB",
    merit: "known pair",
    problem: null,
  },
  {
    id: "other",
    label: "Other",
    detail: "",
    problem: { short: "other vocabulary", reason: "the vocabularies differ at token 12" },
  },
  { id: "none", label: "None", detail: "plain decoding", problem: null },
];
const LARGER: Choice = {
  id: "larger",
  label: "Larger",
  detail: "",
  problem: {
    short: "larger than the target",
    reason: "it is larger than the target, 2 GB against 1 GB",
  },
};

let shown: ReturnType<typeof mount>;
const onchoose = vi.fn();
const getMore = vi.fn();
const find = (testid: string) => document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);
const option = (id: string) => find(`draft-option-${id}`);
const words = (id: string) => option(id)?.textContent.replace(/\s+/g, " ").trim();
/** The active line of the list, as announced by screen readers. */
const active = () =>
  document.getElementById(find("draft-picker")?.getAttribute("aria-activedescendant") ?? "");

function show(more: { choices?: Choice[]; value?: string; folded?: boolean } = {}) {
  const { choices = CHOICES, value = "starter-draft", folded = false } = more;
  shown = mount(Listbox, {
    target: document.body,
    props: {
      label: "Draft",
      choices,
      value,
      look: "header" as const,
      ...(folded ? { unusable: "choice.doNotFit" } : {}),
      more: [{ label: "Get more models", run: getMore }],
      testid: "draft-picker",
      optionTestid: "draft-option",
      onchoose,
    },
  });
  flushSync();
}

beforeEach(() => {
  Element.prototype.scrollIntoView = vi.fn();
  onchoose.mockClear();
  getMore.mockClear();
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
  show();
  press("ArrowDown", "ArrowDown", "ArrowDown", "Enter");
  expect(onchoose).toHaveBeenCalledExactlyOnceWith("none");
  expect(find("draft-option-none")).toBeNull();
});

test("typing a letter moves to the entry that begins with it", () => {
  show();
  press("ArrowDown", "n", "Enter");
  expect(onchoose).toHaveBeenCalledExactlyOnceWith("none");
});

test("an entry that cannot be used is listed with its reason and cannot be chosen", () => {
  show();
  press("ArrowDown", "ArrowDown");
  const other = find("draft-option-other");
  expect(other?.textContent).toContain("the vocabularies differ at token 12");
  expect(other?.getAttribute("aria-disabled")).toBe("true");
  press("Enter");
  other?.click();
  expect(onchoose).not.toHaveBeenCalled();
});

test("Escape closes the list without stopping a reply", () => {
  show();
  const outside = vi.fn();
  window.addEventListener("keydown", outside);
  press("ArrowDown", "Escape");
  window.removeEventListener("keydown", outside);
  expect(find("draft-option-none")).toBeNull();
  expect(outside).not.toHaveBeenCalled();
});

test("further actions can be reached by keys, and are not choices", () => {
  show();
  press("ArrowDown", "End", "Enter");
  expect(getMore).toHaveBeenCalledOnce();
  expect(onchoose).not.toHaveBeenCalled();
  expect(find("draft-option-none")).toBeNull();
});

test("the active entry is announced", () => {
  show();
  press("ArrowDown", "End", "ArrowUp");
  const active = find("draft-picker")?.getAttribute("aria-activedescendant") ?? "";
  expect(document.getElementById(active)).toBe(find("draft-option-none"));
});

test("choices that do not fit are one line at the end, and keys skip folded ones", () => {
  show({ choices: [...CHOICES, LARGER], folded: true });
  press("ArrowDown");
  expect(words("fold")).toBe("2 incompatible Show why");
  expect([option("other"), option("larger")]).toEqual([null, null]);
  press("ArrowDown", "ArrowDown");
  expect(active()).toBe(option("fold"));
  press("ArrowDown");
  expect(active()).toBe(option("more-0"));
});

test("the folded line is opened and closed by Enter, by the arrow keys and by a click", () => {
  show({ folded: true });
  press("ArrowDown", "ArrowDown", "ArrowDown");
  const group = () => option("fold")?.closest("[role=group]");
  expect(group()?.getAttribute("aria-label")).toBe("1 incompatible");
  press("Enter");
  expect(words("fold")).toBe("1 incompatible Hide");
  expect(group()?.contains(option("other"))).toBe(true);
  expect(document.querySelector("[role=status]")?.textContent).toBe("1 more below");
  press("ArrowDown");
  expect(active()).toBe(option("other"));
  press("ArrowLeft");
  expect([option("other"), active()]).toEqual([null, option("fold")]);
  press("ArrowRight");
  expect(option("other")).not.toBeNull();
  option("fold")?.click();
  flushSync();
  expect(option("other")).toBeNull();
  expect(onchoose).not.toHaveBeenCalled();
});

test("a choice that does not fit has a short reason, and the full one on demand", () => {
  show({ folded: true });
  press("ArrowDown", "ArrowDown", "ArrowDown", "Enter", "ArrowDown");
  expect(words("other")).toBe("Other other vocabulary");
  expect(option("other")?.getAttribute("aria-disabled")).toBe("true");
  press("Enter");
  expect(words("other")).toBe("Other other vocabulary The vocabularies differ at token 12");
  expect(document.querySelector("[role=status]")?.textContent).toBe(
    "The vocabularies differ at token 12",
  );
  option("other")?.click();
  flushSync();
  expect(words("other")).toBe("Other other vocabulary");
  expect(onchoose).not.toHaveBeenCalled();
});

test("the list opens at the chosen entry, even if that is folded", () => {
  show({ value: "other", folded: true });
  press("ArrowDown");
  expect(active()).toBe(option("other"));
  expect(option("other")?.getAttribute("aria-selected")).toBe("true");
});

test("typed letters find only visible entries", () => {
  show({ folded: true });
  press("ArrowDown", "o");
  expect(active()).toBe(option("starter-draft"));
  press("End", "ArrowUp", "Enter");
  vi.spyOn(performance, "now").mockReturnValue(performance.now() + 1000);
  press("o");
  expect(active()).toBe(option("other"));
  vi.restoreAllMocks();
});

test("without unusable choices there is no folded line", () => {
  show({ choices: CHOICES.filter(({ problem }) => !problem), folded: true });
  press("ArrowDown", "ArrowDown", "ArrowDown");
  expect(option("fold")).toBeNull();
  expect(active()).toBe(option("more-0"));
});

test("the advantage of a choice is shown beside it", () => {
  show();
  press("ArrowDown");
  expect(words("starter-draft")).toBe("Starter draft known pair 1.3 MB");
});
