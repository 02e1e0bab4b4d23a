import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ReplyDocument } from "../../markdown/document";
import { App } from "../../state/app.svelte";
import { Trace } from "../../state/trace.svelte";
import { extra, round, threeRounds } from "../../trace/fixtures";
import ReplyText from "./ReplyText.svelte";

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

let app: App;

beforeEach(() => {
  app = new App({} as never);
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const TIMES = { draft_ms: 1000, verify_ms: 2500, sample_ms: 400, rest_ms: 100 };

function show(trace: Trace | null, text: string, growing = false) {
  const props = $state({ trace, text, growing });
  const shown = mount(ReplyText, { target: document.body, props });
  flushSync();
  return { props, leave: () => unmount(shown) };
}

const read = () => document.querySelector(".reply")?.textContent.trim();

test("the text follows the trace while it streams, and is the stored one afterwards", async () => {
  const { props, leave } = show(Trace.of(threeRounds), "");
  vi.advanceTimersByTime(200);
  flushSync();
  expect(read()).toBe("a b c d e");
  props.trace = null;
  props.text = "stored";
  flushSync();
  expect(read()).toBe("stored");
  await leave();
});

test("a reply that ends just before its text is drawn disturbs nothing", async () => {
  const { props, leave } = show(Trace.of(threeRounds), "");
  props.trace = null;
  props.text = "stored";
  flushSync();
  vi.advanceTimersByTime(200);
  flushSync();
  expect(read()).toBe("stored");
  await leave();
});

test("a text that grows without rounds is parsed incrementally, until it is replaced", async () => {
  const steps = vi.spyOn(ReplyDocument.prototype, "steps");
  const { props, leave } = show(null, "one", true);
  for (const text of ["one two", "one two three"]) {
    props.text = text;
    flushSync();
    expect(read()).toBe(text);
  }
  expect(steps).toHaveBeenCalledTimes(3);
  expect(new Set(steps.mock.contexts).size).toBe(1);
  props.text = "other";
  flushSync();
  props.growing = false;
  flushSync();
  expect(read()).toBe("other");
  expect(new Set(steps.mock.contexts).size).toBe(3);
  steps.mockRestore();
  await leave();
});

test("the wrapping of code applies to every reply at once, and is remembered", async () => {
  const { leave } = show(null, "```\na long line\n```\n\n```\nb\n```");
  const buttons = () => [...document.querySelectorAll<HTMLElement>("[data-wrap]")];
  const pressed = () => buttons().map((button) => button.getAttribute("aria-pressed"));
  expect(pressed()).toEqual(["false", "false"]);
  buttons()[0]?.focus();
  buttons()[0]?.click();
  flushSync();
  expect(pressed()).toEqual(["true", "true"]);
  expect(document.querySelector(".reply")?.classList).toContain("wraps");
  expect(document.activeElement, "the keyboard stays").toBe(buttons()[0]);
  expect(app.view.wrapsCode).toBe(true);
  await leave();
});

test("the time of thinking is shown if the rounds are known, and grows with them", async () => {
  const thought = round(0, { extra: extra("<think>\nhm", "plain"), times: TIMES });
  const answered = round(1, { extra: extra("\n</think>\n\nYes.", "plain"), times: TIMES });
  const growing = Trace.of([thought]);
  const props = $state<{ trace: Trace | null; text: string; timed: Trace | null }>({
    trace: growing,
    text: "",
    timed: growing,
  });
  const shown = mount(ReplyText, { target: document.body, props });
  const summary = () => document.querySelector("summary")?.textContent;
  flushSync();
  expect(summary()).toBe("Thinking… 4\u00a0s");
  growing.show([answered], 0);
  flushSync();
  expect(summary()).toBe("Thought for 8\u00a0s");
  Object.assign(props, { trace: null, text: growing.offsets.text, timed: null });
  flushSync();
  expect(summary()).toBe("Thoughts");
  await unmount(shown);
});
