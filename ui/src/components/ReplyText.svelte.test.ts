import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { App } from "../state/app.svelte";
import { Trace } from "../state/trace.svelte";
import { threeRounds } from "../trace/fixtures";
import ReplyText from "./ReplyText.svelte";

vi.mock("../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => new App({} as never),
}));

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function show(trace: Trace | null, text: string) {
  const props = $state({ trace, text });
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
