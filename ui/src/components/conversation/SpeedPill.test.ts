import { flushSync, mount, unmount } from "svelte";
import { afterEach, expect, test, vi } from "vitest";
import type { EngineStatus } from "../../bindings/EngineStatus";
import type { Why } from "../../bindings/Why";
import { App } from "../../state/app.svelte";
import { lineWords } from "../../trace/why";
import SpeedPill from "./SpeedPill.svelte";

const off: Why = {
  state: "off",
  drafter: null,
  length: null,
  reason: null,
  expected: null,
  off: { kind: "no_draft" },
  remarks: [],
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
  vi.restoreAllMocks();
});

function show(change: Partial<EngineStatus>): HTMLButtonElement {
  app = new App({} as never);
  app.engine.status = { ...app.engine.status, phase: "ready", message: null, ...change };
  shown = mount(SpeedPill, { target: document.body, props: { brief: false } });
  flushSync();
  const button = document.querySelector<HTMLButtonElement>(".pill");
  if (!button) throw new Error("there is no pill");
  return button;
}

const popover = () => document.querySelector(".card")?.textContent ?? null;

test("screen readers get the whole sentence, even if it is cut", () => {
  const why: Why = { ...off, state: "paused", reason: "cannot_pay", off: null };
  const button = show({ why });
  expect(button.getAttribute("aria-label")).toBe(lineWords(why));
  expect(document.querySelector(".mark.paused")).not.toBeNull();
});

test("focus opens the whole sentence, Escape closes it and does nothing else", () => {
  const button = show({ why: off });
  expect(popover()).toBeNull();
  button.focus();
  flushSync();
  expect(popover()).toContain("No draft model chosen");
  const onkeydown = vi.fn();
  window.addEventListener("keydown", onkeydown, { once: true });
  button.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  flushSync();
  expect(popover()).toBeNull();
  expect(onkeydown).not.toHaveBeenCalled();
});

test("while a model is loaded the mark does not show drafting", () => {
  show({
    phase: "loading",
    loading: { label: "Big", percent: 43, draft: false },
    why: { ...off, state: "on", drafter: "Draft", off: null },
  });
  expect(document.querySelector(".mark.on")).toBeNull();
  expect(document.querySelector(".words")?.textContent).toBe("Loading 43%");
});

const on: Why = { ...off, state: "on", drafter: "Qwen2.5 0.5B · Q8_0", off: null };
const words = () => document.querySelector(".words")?.textContent;

/** Shows a page with a reply of this speed-up. */
function showReply(factor: number, why: Why) {
  vi.spyOn(App.prototype, "inspected", "get").mockReturnValue({ id: 7 } as never);
  vi.spyOn(App.prototype, "speedupOf").mockReturnValue({
    factor,
    saved_ms: (factor - 1) * 1000,
    plain_ms: factor * 1000,
    elapsed_ms: 1000,
    replies: 1,
  });
  return show({ why });
}

test("the pill shows the speed-up of the inspected reply, and the card the time saved", () => {
  const button = showReply(1.6, on);
  expect(words()).toBe("1.6× faster");
  expect(button.getAttribute("aria-label")).toContain("1.6× faster. ");
  button.focus();
  flushSync();
  expect(popover()).toContain("Saved 600\u00a0ms in this reply");
});

test("a speed-up within the noise is no gain, and without a draft there is no number", () => {
  showReply(1.02, on);
  expect(words()).toBe("No faster");
  expect(document.querySelector(".pill.gain")).toBeNull();
  if (shown) void unmount(shown);
  showReply(1.6, off);
  expect(words()).toBe("Drafting off");
});

test("before any measurement the pill names the drafter", () => {
  show({ why: { ...on, drafter: "n-gram" } });
  expect(words()).toBe("N-gram drafts");
  if (shown) void unmount(shown);
  show({ why: on });
  expect(words()).toBe("Drafting on");
});

test("with a remote target the pill names the server's drafts and shows its measurements", () => {
  const target = { ...new App({} as never).engine.status.target, kind: "remote" } as never;
  const why: Why = { ...off, off: { kind: "server" } };
  const button = show({ target, why });
  expect(words()).toBe("Remote server");
  expect(button.getAttribute("aria-label")).toBe("The server drafts, if it is configured to");
  if (shown) void unmount(shown);
  vi.spyOn(App.prototype, "inspected", "get").mockReturnValue({ id: 7 } as never);
  const times = { saved_ms: 600, plain_ms: 1600, elapsed_ms: 1000, replies: 1 };
  vi.spyOn(App.prototype, "speedupOf").mockReturnValue({ factor: 1.6, ...times });
  show({ target, why });
  expect(words()).toBe("1.6× faster");
});
