import { flushSync, mount, unmount } from "svelte";
import { afterEach, expect, test, vi } from "vitest";
import type { EngineStatus } from "../../bindings/EngineStatus";
import type { Why } from "../../bindings/Why";
import { App } from "../../state/app.svelte";
import { lineWords } from "../../trace/why";
import WhyLine from "./WhyLine.svelte";

const off: Why = {
  state: "off",
  drafter: null,
  length: null,
  reason: null,
  speedup: null,
  text: "no draft is chosen",
};

let app: App;
vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

let shown: ReturnType<typeof mount> | undefined;
afterEach(async () => {
  if (shown) await unmount(shown);
  shown = undefined;
});

function show(change: Partial<EngineStatus>): HTMLButtonElement {
  app = new App({} as never);
  app.engine.status = { ...app.engine.status, phase: "ready", message: null, ...change };
  shown = mount(WhyLine, { target: document.body, props: { side: "end" } });
  flushSync();
  const button = document.querySelector<HTMLButtonElement>(".line");
  if (!button) throw new Error("there is no why line");
  return button;
}

const popover = () => document.querySelector(".popover")?.textContent ?? null;

test("screen readers get the whole sentence, however little of it is in sight", () => {
  const why: Why = { ...off, state: "paused", reason: "cannot_pay", text: "" };
  const button = show({ why });
  expect(button.getAttribute("aria-label")).toBe(lineWords(why));
  expect(document.querySelector(".mark.paused")).not.toBeNull();
});

test("focus opens the whole sentence, Escape closes it and does nothing else", () => {
  const button = show({ why: off });
  expect(popover()).toBeNull();
  button.focus();
  flushSync();
  expect(popover()).toContain("Drafting off: no draft is chosen");
  const heard = vi.fn();
  window.addEventListener("keydown", heard, { once: true });
  button.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  flushSync();
  expect(popover()).toBeNull();
  expect(heard).not.toHaveBeenCalled();
});

test("while a model is loaded the mark does not claim that replies are drafted", () => {
  show({
    phase: "loading",
    loading: { label: "Big", percent: 43, draft: false },
    why: { ...off, state: "on", drafter: "Draft", text: "" },
  });
  expect(document.querySelector(".mark.on")).toBeNull();
  expect(document.querySelector(".words")?.textContent).toBe("Loading the target model, 43\u00a0%");
});
