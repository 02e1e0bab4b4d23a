/** One speed-up: every place that shows one shows the same. */
import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Message } from "./bindings/Message";
import type { Speedup } from "./bindings/Speedup";
import { App } from "./state/app.svelte";
import { pairWords } from "./state/speedWords";
import { Trace } from "./state/trace.svelte";
import SpeedPill from "./components/conversation/SpeedPill.svelte";
import Inspector from "./components/inspector/Inspector.svelte";
import ReplyFoot from "./components/reply/ReplyFoot.svelte";
import { stubResizeObserver } from "./resizeObserver";
import { summary, threeRounds } from "./trace/fixtures";

// uPlot needs a canvas, which jsdom lacks.
vi.mock("uplot", () => ({ default: vi.fn() }));

let app: App;
vi.mock("./state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

vi.mock("./state/chat.svelte", async (original) => ({
  ...(await original<object>()),
  getChat: () => app.chat,
}));

// The actions of a reply do not show speeds.
vi.mock("./commands/command", async (original) => ({
  ...(await original<object>()),
  getWindowActions: () => ({}),
}));

const by = (factor: number): Speedup => ({
  factor,
  saved_ms: 1000 * (factor - 1),
  plain_ms: 1000 * factor,
  elapsed_ms: 1000,
  replies: 1,
});

/** A part whose own speed-up differs from that of the whole, which the last part has. */
const part = (id: number, parent: number, own: number, whole: number): Message => ({
  id,
  conversation: 1,
  role: "assistant",
  text: "a b c d e",
  created_at: 0,
  finish: "length",
  summary: summary({ speedup: by(own), plain_tokens_per_second: 77 }),
  target: "Starter",
  draft: "Starter draft",
  problem: null,
  parent,
  siblings: [id],
  attachments: [],
  excerpts: [],
  calls: [],
  calls_start: null,
  unstored: null,
  speedup: by(whole),
});

let shown: ReturnType<typeof mount>[] = [];

beforeEach(() => {
  stubResizeObserver();
  Object.defineProperty(document, "fonts", { value: { status: "loaded" }, configurable: true });
  HTMLCanvasElement.prototype.getContext = () => null;
  app = new App({ trace: () => Promise.resolve([]) } as never);
  const why = { ...app.engine.status.why, state: "on", drafter: "Starter draft" } as const;
  app.engine.status = { ...app.engine.status, phase: "ready", message: null, why };
  app.conversations.current = 1;
  app.conversations.messages = [part(7, 6, 3.4, 3.4), part(8, 7, 1.2, 2.3)];
  app.traces.keep(7, Trace.of(threeRounds));
  app.traces.keep(8, Trace.of(threeRounds));
});
afterEach(async () => {
  await Promise.all(shown.map((component) => unmount(component)));
  shown = [];
});

/** Factors in the header, the inspector, and the line under the reply. */
function factors(): (string | undefined)[] {
  const { messages } = app.conversations;
  const message = messages.at(-1);
  if (!message) throw new Error("there is no reply");
  const foot = { message, parts: messages, last: true };
  shown.push(mount(SpeedPill, { target: document.body, props: { brief: false } }));
  shown.push(mount(Inspector, { target: document.body }));
  shown.push(mount(ReplyFoot, { target: document.body, props: foot }));
  flushSync();
  const places = ["stat-speedup", "reply-numbers"].map((id) => `[data-testid="${id}"]`);
  const words = [".pill", ...places].map((place) => document.querySelector(place)?.textContent);
  return words.map((text) => /[\d.]+(?=×)/.exec(text ?? "")?.[0]);
}

test("a stored reply that was continued shows that of all its parts, everywhere", () => {
  expect(factors()).toEqual(["2.3", "2.3", "2.3"]);
  expect(app.speedupOf(7)).toEqual(app.speedupOf(8));
});

test("so does the Library, which says the same of the only reply of a pair", () => {
  const pair = { target: "Starter", draft: "Starter draft", speedup: by(2.3) };
  expect(pairWords(pair)).toContain(`${factors()[0]}× faster`);
});

test("a reply under way shows the latest that came with its rounds, everywhere", () => {
  app.reply.message = app.conversations.messages[1] ?? null;
  app.reply.speedup = by(1.7);
  expect(factors()).toEqual(["1.7", "1.7", "1.7"]);
});

test("a replay shows that of the rounds until then, everywhere", () => {
  const speedups = [null, by(0.6), by(1.9)];
  app.playback.open(8, threeRounds, false, speedups);
  app.playback.seek(app.playback.clock.momentOf(2));
  app.playback.trace = Trace.of(threeRounds.slice(0, 2));
  expect(factors()).toEqual(["0.6", "0.6", "0.6"]);
});
