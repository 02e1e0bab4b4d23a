import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { defaults } from "../../bindings/defaults";
import { App } from "../../state/app.svelte";
import Speculation from "./Speculation.svelte";

let app: App;
let shown: ReturnType<typeof mount>;

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

const find = (testid: string) => document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);

function show() {
  shown = mount(Speculation, { target: document.body });
  flushSync();
}

function choose(testid: string, value: string) {
  const radios = find(testid)?.querySelectorAll<HTMLInputElement>("input") ?? [];
  [...radios].find((radio) => radio.value === value)?.click();
  flushSync();
}

function type(testid: string, value: string) {
  const field = find(testid) as HTMLInputElement;
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  flushSync();
}

beforeEach(() => {
  vi.useFakeTimers();
  Element.prototype.scrollIntoView = vi.fn();
  app = new App({} as never);
});
afterEach(async () => {
  await unmount(shown);
  vi.useRealTimers();
});

test("the draft length can be automatic, fixed with a number, or off", () => {
  show();
  const length = () => app.settings.values.speculation.length;
  expect(find("settings-draft-length")).toBeNull();
  choose("settings-draft-length-mode", "fixed");
  type("settings-draft-length", "7");
  expect(length()).toEqual({ type: "fixed", tokens: 7 });
  choose("settings-draft-length-mode", "off");
  expect(length()).toEqual({ type: "off" });
  expect(find("settings-draft-length")).toBeNull();
  choose("settings-draft-length-mode", "auto");
  expect(length()).toEqual({ type: "auto" });
});

test("a draft length beyond 16 is rejected", () => {
  show();
  choose("settings-draft-length-mode", "fixed");
  type("settings-draft-length", "17");
  expect(app.settings.values.speculation.length).toEqual({ type: "fixed", tokens: 4 });
});

test("every other choice changes only its own setting", () => {
  show();
  choose("settings-threshold", "fixed");
  type("settings-threshold-chance", "0.5");
  choose("settings-tree", "width");
  type("settings-tree-guesses", "3");
  choose("settings-staged", "on");
  choose("settings-verification", "token");
  find("settings-learn-from-earlier")?.click();
  find("settings-drafter")?.click();
  flushSync();
  find("drafter-option-recycling")?.click();
  flushSync();
  expect(app.settings.values).toEqual({
    ...defaults,
    learn_from_earlier: true,
    speculation: {
      drafter: "recycling",
      length: { type: "auto" },
      threshold: { type: "fixed", chance: 0.5 },
      tree: { type: "width", guesses: 3 },
      staged: "on",
      verification: "token",
    },
  });
});

test("each changed setting can be reset", () => {
  show();
  choose("settings-draft-length-mode", "fixed");
  choose("settings-tree", "off");
  choose("settings-staged", "on");
  const resets = document.querySelectorAll<HTMLElement>("[aria-label^=Reset]");
  expect(resets).toHaveLength(3);
  for (const reset of resets) reset.click();
  flushSync();
  expect(app.settings.values).toEqual(defaults);
});

test("advanced settings are shown if one of them was changed", () => {
  app.setup.changeSpeculation({ staged: "off" });
  show();
  expect(document.querySelector("details")?.open).toBe(true);
});

test("by default advanced settings are folded", () => {
  show();
  expect(document.querySelector("details")?.open).toBe(false);
});
