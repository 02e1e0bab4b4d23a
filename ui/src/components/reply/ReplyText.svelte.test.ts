import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ReplyDocument } from "../../markdown/document";
import { App } from "../../state/app.svelte";
import { Trace } from "../../state/trace.svelte";
import { threeRounds } from "../../trace/fixtures";
import ReplyText from "./ReplyText.svelte";

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => new App({} as never),
}));

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

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

test("a text that grows without rounds is followed by one document, until it is another text", async () => {
  const update = vi.spyOn(ReplyDocument.prototype, "update");
  const { props, leave } = show(null, "one", true);
  for (const text of ["one two", "one two three"]) {
    props.text = text;
    flushSync();
    expect(read()).toBe(text);
  }
  expect(update).toHaveBeenCalledTimes(3);
  expect(new Set(update.mock.contexts).size).toBe(1);
  props.text = "other";
  flushSync();
  props.growing = false;
  flushSync();
  expect(read()).toBe("other");
  expect(new Set(update.mock.contexts).size).toBe(3);
  update.mockRestore();
  await leave();
});
