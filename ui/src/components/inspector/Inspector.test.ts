import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Message } from "../../bindings/Message";
import { App } from "../../state/app.svelte";
import { Trace } from "../../state/trace.svelte";
import { round, summary, threeRounds } from "../../trace/fixtures";
import Inspector from "./Inspector.svelte";
import { stubResizeObserver } from "../../resizeObserver";

// It draws on a canvas, which the tests' page does not have.
vi.mock("uplot", () => ({ default: vi.fn() }));

let app: App;
vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

const reply: Message = {
  id: 7,
  conversation: 1,
  role: "assistant",
  text: "a b c d e",
  created_at: 0,
  finish: "stop",
  summary: summary({ plain_tokens_per_second: 50 }),
  target: "Starter",
  draft: "Starter draft",
  problem: null,
  parent: null,
  siblings: [7],
  attachments: [],
  unstored: null,
};

let shown: ReturnType<typeof mount> | undefined;

beforeEach(() => {
  stubResizeObserver();
  Object.defineProperty(document, "fonts", { value: { status: "loaded" }, configurable: true });
  HTMLCanvasElement.prototype.getContext = () => null;
  app = new App({ trace: () => Promise.resolve([]) } as never);
});
afterEach(async () => {
  if (shown) await unmount(shown);
  shown = undefined;
  vi.unstubAllGlobals();
});

/** The words of the inspector with this reply in it. */
function show(message: Message | null, trace: Trace | null): HTMLElement {
  app.conversations.current = 1;
  app.conversations.messages = message ? [message] : [];
  if (message && trace) app.traces.keep(message.id, trace);
  shown = mount(Inspector, { target: document.body });
  flushSync();
  return document.querySelector<HTMLElement>("aside") ?? document.body;
}

const text = (testid: string) =>
  document.querySelector(`[data-testid="${testid}"]`)?.textContent.trim().replaceAll(/\s+/g, " ");

test("before the first reply it says what will be there", () => {
  expect(show(null, null).textContent).toContain("Each reply appears here");
});

test("a reply shows what drafting saved, in words and with its sign", () => {
  show(reply, Trace.of(threeRounds));
  expect(text("stat-speedup")).toBe("2.0x");
  expect(text("stat-saved")).toBe("+20 ms");
  expect(text("verdict")).toBe("20 ms saved, 2.0x the speed without drafts");
  expect(text("stat-drafted")).toBe("2 / 3 / 4");
  expect(text("stat-experts")).toBeUndefined();
});

test("of a model with experts it says how many of a layer a pass read", () => {
  show(reply, Trace.of(threeRounds.map((round) => ({ ...round, experts: 12.25 }))));
  expect(text("stat-experts")).toBe("12.3");
});

test("the heatmap stays when the stored reply takes the place of the one that was streaming", () => {
  const rounds = Array.from({ length: 100 }, (_, index) => round(index));
  show({ ...reply, finish: null, summary: null }, Trace.of(rounds));
  const more = () => document.querySelector("[aria-label='Show the whole reply']");
  expect(more()).not.toBeNull();
  app.conversations.place(reply);
  flushSync();
  expect(more()).not.toBeNull();
});

test("a reply whose rounds are not stored says so, and has the numbers of its summary", () => {
  const words = show(reply, Trace.of([]));
  expect(text("without-rounds")).toContain("No trace of this reply is stored");
  expect(text("stat-acceptance")).toBe("67 %");
  expect(text("stat-token-ms")).toBe("–");
  expect(words.querySelector("canvas")).toBeNull();
});

test("a reply from a server elsewhere has the numbers that the server tells of, and says why there is no heatmap", () => {
  const times = { draft_ms: 0, verify_ms: 0, sample_ms: 0, rest_ms: 0 };
  const words = show({ ...reply, summary: summary({ rounds: 0, times }) }, Trace.of([]));
  expect(text("without-rounds")).toContain("A server elsewhere wrote this reply");
  expect(text("stat-acceptance")).toBe("67 %");
  expect(text("stat-tokens-per-round")).toBe("–");
  expect(text("verdict")).toBeUndefined();
  expect(words.textContent).not.toContain("0 rounds");
});

test("the beginning of a replay has no numbers yet, and is not taken for a reply without rounds", () => {
  const begun = new Trace();
  vi.spyOn(app, "inspectedTrace", "get").mockReturnValue(begun);
  show(reply, Trace.of(threeRounds));
  expect(text("without-rounds")).toBeUndefined();
  expect(text("stat-speedup")).toBeUndefined();
});

test("a reply that failed before its first round says why", () => {
  const failed = { ...reply, summary: null, problem: "the model's file is gone" };
  show(failed, Trace.of([]));
  expect(text("without-rounds")).toContain("The model's file is gone");
});

test("a reply without drafts is called plain decoding, and nothing is said to be saved", () => {
  const plain = Trace.of(threeRounds.map((round) => ({ ...round, drafted: [] })));
  show({ ...reply, summary: summary({ drafted: 0, judged: 0, accepted: 0 }) }, plain);
  expect(text("verdict")).toBe("No drafts were used: this is plain decoding.");
  expect(text("stat-saved")).toBe("–");
});

test("a collapsed section draws nothing, and is open again after another click", () => {
  show(reply, Trace.of(threeRounds));
  const button = document.querySelector<HTMLElement>('[data-testid="section-numbers"] button');
  button?.click();
  flushSync();
  expect(button?.getAttribute("aria-expanded")).toBe("false");
  expect(text("stat-speedup")).toBeUndefined();
  button?.click();
  flushSync();
  expect(text("stat-speedup")).toBe("2.0x");
});

test("a decision of the history selects its round, whose curve is then shown", () => {
  const decision = {
    before: null,
    chosen: 1,
    drafting_ms: [1],
    verify_ms: [10, 11],
    acceptance: [0.8],
    tokens_per_second: [50, 90],
  };
  const rounds = threeRounds.map((round, index) => {
    if (index === 0) return { ...round, decision };
    return index === 2 ? { ...round, decision: { ...decision, before: 1, chosen: 0 } } : round;
  });
  show(reply, Trace.of(rounds));
  expect(text("governor-plot")).not.toContain("As it was");
  const entries = document.querySelectorAll<HTMLElement>('[data-testid="decisions"] button');
  expect([...entries].map((entry) => entry.querySelector("b")?.textContent)).toEqual([
    "K 1 → 0",
    "K = 1",
  ]);
  entries[1]?.click();
  flushSync();
  expect(app.view.selected).toEqual({ round: 0, slot: 0 });
  expect(text("governor-plot")).toContain("As it was in round 1. K = 1: 1.8x plain speed expected");
});
