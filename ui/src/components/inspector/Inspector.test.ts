import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Message } from "../../bindings/Message";
import type { Round } from "../../bindings/Round";
import { App } from "../../state/app.svelte";
import { Trace } from "../../state/trace.svelte";
import { drafted, extra, round, summary, threeRounds } from "../../trace/fixtures";
import Inspector from "./Inspector.svelte";
import { stubResizeObserver } from "../../resizeObserver";

// uPlot needs a canvas, which jsdom lacks.
vi.mock("uplot", () => ({ default: vi.fn() }));

let app: App;
vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

const SPEEDUP = { factor: 2, saved_ms: 20, plain_ms: 40, elapsed_ms: 20, replies: 1 };

const reply: Message = {
  id: 7,
  conversation: 1,
  role: "assistant",
  text: "a b c d e",
  created_at: 0,
  finish: "stop",
  summary: summary(),
  target: "Starter",
  draft: "Starter draft",
  problem: null,
  parent: null,
  siblings: [7],
  attachments: [],
  excerpts: [],
  calls: [],
  calls_start: null,
  unstored: null,
  speedup: SPEEDUP,
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

/** Mounts the inspector with a reply. */
function show(message: Message | null, trace: Trace | null): HTMLElement {
  app.conversations.current = 1;
  app.conversations.messages = message ? [message] : [];
  if (message && trace) app.traces.keep(message.id, trace);
  shown = mount(Inspector, { target: document.body });
  flushSync();
  return document.querySelector<HTMLElement>("aside") ?? document.body;
}

function unfold(section: string) {
  app.view.folds.toggle(section);
}

const text = (testid: string) =>
  document.querySelector(`[data-testid="${testid}"]`)?.textContent.trim().replaceAll(/\s+/g, " ");

test("before the first reply the inspector says what it will show", () => {
  expect(show(null, null).textContent).toContain("The drafts of each reply appear here");
});

test("a reply shows the time saved by drafting, in words", () => {
  unfold("details");
  show(reply, Trace.of(threeRounds));
  expect(text("stat-speedup")).toBe("2.0× faster");
  expect(text("stat-saved")).toBe("Saved 20 ms in this reply");
  expect(text("stat-drafted")).toBe("2 / 3 / 4");
  expect(text("stat-experts")).toBeUndefined();
});

test("with an MoE model the number of experts read per layer is shown", () => {
  unfold("details");
  show(reply, Trace.of(threeRounds.map((round) => ({ ...round, experts: 12.25 }))));
  expect(text("stat-experts")).toBe("12.3");
});

test("tokens of the prompt that came from the disk are counted", () => {
  unfold("memory");
  const reused = { prompt_tokens: 400, reused_tokens: 300 };
  show({ ...reply, summary: summary({ ...reused, restored_tokens: 256 }) }, Trace.of(threeRounds));
  expect(text("reply-prompt")).toBe(
    "The prompt had 400 tokens; 75% of them were still in the cache. 256 tokens of the context were loaded from the disk.",
  );
  app.conversations.messages = [{ ...reply, summary: summary(reused) }];
  flushSync();
  expect(text("reply-prompt")).not.toContain("disk");
});

test("the heatmap stays when the stored reply replaces the streamed one", () => {
  const drafted = threeRounds[0]?.drafted ?? [];
  const rounds = Array.from({ length: 100 }, (_, index) => round(index, { drafted }));
  show({ ...reply, finish: null, summary: null }, Trace.of(rounds));
  const more = () => document.querySelector("[aria-label='Show the whole reply']");
  expect(more()).not.toBeNull();
  app.conversations.place(reply);
  flushSync();
  expect(more()).not.toBeNull();
});

test("a reply without stored rounds says so, and shows its summary", () => {
  unfold("details");
  const words = show(reply, Trace.of([]));
  expect(text("without-rounds")).toContain("The rounds of this reply are not stored");
  expect(text("stat-acceptance")).toBe("67%");
  expect(text("stat-token-ms")).toBe("–");
  expect(words.querySelector("canvas")).toBeNull();
});

test("a reply of a remote server shows the numbers that it reports, and why there is no heatmap", () => {
  unfold("details");
  const times = { draft_ms: 0, verify_ms: 0, sample_ms: 0, rest_ms: 0 };
  const remote = { ...reply, summary: summary({ rounds: 0, times }), speedup: null };
  const words = show(remote, Trace.of([]));
  expect(text("without-rounds")).toContain("Written by a remote server");
  expect(text("stat-acceptance")).toBe("67%");
  expect(text("stat-tokens-per-round")).toBeUndefined();
  expect(words.textContent).not.toContain("–");
  expect(words.textContent).not.toContain("0 rounds");
});

test("the start of a replay has no numbers, unlike a reply without rounds", () => {
  const begun = new Trace();
  vi.spyOn(app, "inspectedTrace", "get").mockReturnValue(begun);
  show(reply, Trace.of(threeRounds));
  expect(text("without-rounds")).toBeUndefined();
  expect(text("stat-speedup")).toBe("–");
  expect(text("stat-saved")).toBe("");
});

test("a reply that failed before its first round shows the reason", () => {
  const failed = { ...reply, summary: null, problem: "the model's file is gone" };
  show(failed, Trace.of([]));
  expect(text("without-rounds")).toContain("The model's file is gone");
});

test("a reply without drafts is called plain decoding, without a saving", () => {
  const plain = Trace.of(threeRounds.map((round) => ({ ...round, drafted: [] })));
  const undrafted = summary({ drafted: 0, judged: 0, accepted: 0 });
  show({ ...reply, summary: undrafted, speedup: null }, plain);
  expect(text("stat-speedup")).toBe("100 tokens/s");
  expect(text("stat-saved")).toBe("Written without drafts");
});

test("a reply without drafts has no heatmap and no draft length, and one time", () => {
  const plain = threeRounds.map((round) => {
    return { ...round, drafted: [], times: { ...round.times, draft_ms: 0 } };
  });
  const words = show({ ...reply, speedup: null }, Trace.of(plain));
  expect(words.querySelector("canvas")).toBeNull();
  expect(text("value-governor")).toBeUndefined();
  expect(text("value-times")).toMatch(/^\d+ ms$/);
});

test("drafts that made no difference leave the speed in large type", () => {
  show({ ...reply, speedup: { ...SPEEDUP, factor: 1.02 } }, Trace.of(threeRounds));
  expect(text("stat-speedup")).toBe("100 tokens/s");
  expect(text("stat-saved")).toBe("Drafts made no difference here");
});

test("an incomplete reply does not say that nothing was measured", () => {
  const incomplete = { ...reply, finish: null, summary: null, speedup: null };
  show(incomplete, Trace.of(threeRounds));
  expect(text("stat-saved")).toBe("");
});

test("a section is a line with its value until it is unfolded, which is remembered", () => {
  show(reply, Trace.of(threeRounds));
  const button = document.querySelector<HTMLElement>('[data-testid="section-details"] button');
  expect(text("value-details")).toBe("5 tokens, 3 rounds");
  expect(text("stat-drafted")).toBeUndefined();
  button?.click();
  flushSync();
  expect(button?.getAttribute("aria-expanded")).toBe("true");
  expect(text("stat-drafted")).toBe("2 / 3 / 4");
  expect(app.view.state.unfolded).toEqual(["details"]);
});

test("folded lines show the speed, the draft length and the time by phase", () => {
  const decision = {
    before: null,
    chosen: 2,
    drafting_ms: [1, 2, 3],
    verify_ms: [10, 11, 12, 13],
    acceptance: [0.8, 0.5, 0.5],
    tokens_per_second: [50, 90, 95, 80],
  };
  show(reply, Trace.of(threeRounds.map((round) => ({ ...round, decision }))));
  expect(text("value-speed")).toBe("100 tokens/s");
  expect(text("value-governor")).toBe("2 tokens, about 1.2 accepted");
  expect(text("value-times")).toBe("60% checking, 20% drafting");
});

test("every line has its place from the start, so that nothing moves while rounds arrive", () => {
  const sections = () =>
    [...document.querySelectorAll("[data-testid]")]
      .map((element) => element.getAttribute("data-testid") ?? "")
      .filter((name) => /^(section-|hero|heatmap$|legend-outcomes)/.test(name));
  const trace = new Trace();
  const streamed = { ...reply, finish: null, summary: null };
  vi.spyOn(app.reply, "message", "get").mockReturnValue(streamed);
  const why = { ...app.engine.status.why, state: "on", off: null } as const;
  app.engine.status = { ...app.engine.status, why };
  show(streamed, trace);
  const before = sections();
  expect(before).toHaveLength(8);
  trace.show(threeRounds, 1000);
  flushSync();
  expect(text("value-details")).toBe("5 tokens, 3 rounds");
  expect(sections()).toEqual(before);
});

test("the legend has only the marks that occur", () => {
  show(reply, Trace.of(threeRounds.slice(0, 1)));
  const marks = [...document.querySelectorAll('[data-testid="legend-outcomes"] li')];
  expect(marks.map(({ textContent }) => textContent)).toEqual(["accepted", "bonus"]);
});

test("a heatmap docked below the conversation is not shown in the inspector as well", () => {
  app.view.dockHeatmap(true);
  const words = show(reply, Trace.of(threeRounds));
  expect(words.querySelector("canvas")).toBeNull();
  expect(text("value-details")).toBe("5 tokens, 3 rounds");
});

test("while a model is loaded, the memory of the previous one is not shown", () => {
  unfold("memory");
  const { memory } = app.engine.status;
  const used = { ...memory, target_bytes: 1e9, process_bytes: 2e9, free_bytes: 3e9 };
  app.engine.status = { ...app.engine.status, phase: "loading", memory: used };
  show(reply, Trace.of(threeRounds));
  expect(text("value-memory")).toBe("");
  expect(text("memory")).toBeUndefined();
  app.engine.status = { ...app.engine.status, phase: "ready" };
  flushSync();
  expect(text("value-memory")).toBe("2.0 GB");
});

test("a click on a decision selects its round and shows its curve", () => {
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
  unfold("governor");
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
  expect(text("governor-plot")).toContain("As it was in round 1. K = 1: 1.8× expected next");
});

/** A round of a chain of two tokens, expected at 80% and 50%. */
const expecting = (index: number) =>
  round(index, {
    drafted: [
      drafted("a", "accepted", { survival: 0.8 }),
      drafted(" b", "rejected", { survival: 0.5, parent: 0 }),
    ],
    extra: extra(" c", "recovered"),
    reason: "step_too_dear",
    expected: 2.3,
    row_price: 0.1,
  });

test("the expected tokens are compared with those written, and the latest draft is shown", () => {
  unfold("governor");
  show(reply, Trace.of([expecting(0), expecting(1), round(2, { expected: 1 })]));
  expect(text("expected-tokens")).toBe("Expected 1.9 tokens per round, got 1.3 (last 3 rounds)");
  expect(text("draft")).toContain("Draft of round 2");
  expect(text("draft")).toContain("price of a row");
  expect(text("draft-reason")).toContain("another step would have cost more time");
  expect(text("formula")).toContain("= 1.75 tokens per round with a draft. Measured: 2.00.");
  const tokens = [...document.querySelectorAll('[data-testid="draft"] button')];
  expect(tokens.map((token) => token.getAttribute("aria-label"))).toEqual([
    "a: position 1, 80% expected, accepted",
    "b: position 2, 50% expected, rejected",
  ]);
});

test("a click on a draft token selects it, and a round without a draft says so", () => {
  unfold("governor");
  show(reply, Trace.of([expecting(0), round(1, { expected: 1, reason: "no_match" })]));
  document.querySelectorAll<HTMLElement>('[data-testid="draft"] button')[1]?.click();
  flushSync();
  expect(app.view.selected).toEqual({ round: 0, slot: 1 });
  app.view.inspect(reply.id, { round: 1, slot: 0 });
  flushSync();
  expect(text("draft")).toContain("No draft in this round. Nothing to repeat was found");
});

test("a length set by hand has no price of a row", () => {
  unfold("governor");
  show(reply, Trace.of([{ ...expecting(0), row_price: 0 }]));
  expect(text("draft")).not.toContain("price of a row");
});

test("the calibration appears once enough tokens are known", () => {
  unfold("details");
  const rounds = Array.from({ length: 24 }, (_, index) => expecting(index));
  const trace = new Trace();
  show(reply, trace);
  trace.show(rounds, 0);
  flushSync();
  expect(text("calibration-plot")).toBeUndefined();
  trace.show([expecting(24)], 2000);
  flushSync();
  expect(text("calibration-plot")).toContain("80% expected, 100% of 25 tokens accepted.");
});

test("a reply of an earlier version has no expectations, and no place for them", () => {
  for (const section of ["governor", "details"]) unfold(section);
  show(
    reply,
    Trace.of(Array.from({ length: 60 }, (_, index) => ({ ...threeRounds[0], index }) as Round)),
  );
  for (const testid of ["expected-tokens", "draft", "formula", "calibration-plot"]) {
    expect(text(testid)).toBeUndefined();
  }
});

test("a reply whose drafts were all withheld has no place for a draft", () => {
  unfold("governor");
  const decision = { before: null, chosen: 0, drafting_ms: [], verify_ms: [], acceptance: [] };
  const paused = { expected: 1, decision: { ...decision, tokens_per_second: [10, 8] } };
  show(reply, Trace.of([round(0, { ...paused, reason: "would_not_pay" })]));
  expect(text("governor-plot")).toContain("20% slower");
  for (const testid of ["draft", "formula"]) expect(text(testid)).toBeUndefined();
});

test("expectations have their place before the first round", () => {
  unfold("governor");
  const streamed = { ...reply, finish: null, summary: null };
  vi.spyOn(app.reply, "message", "get").mockReturnValue(streamed);
  const why = { ...app.engine.status.why, state: "on", off: null } as const;
  app.engine.status = { ...app.engine.status, why };
  const trace = new Trace();
  show(streamed, trace);
  for (const testid of ["expected-tokens", "draft", "formula"]) expect(text(testid)).toBe("");
  trace.show([expecting(0)], 0);
  flushSync();
  expect(text("draft")).toContain("Draft of round 1");
});
