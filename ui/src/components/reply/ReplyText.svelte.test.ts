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

const HTML = "```html\n<!-- </iframe> --><b>bold</b>\n```";

function showWithPreview(text: string) {
  const documents: string[] = [];
  const showPreview = (document: string) =>
    Promise.resolve(`preview://localhost/${documents.push(document)}`);
  app = new App({ showPreview } as never);
  return { ...show(null, text), documents };
}
const press = async (at = 0) => {
  document.querySelectorAll<HTMLElement>("[data-preview]")[at]?.click();
  await vi.advanceTimersByTimeAsync(50);
  flushSync();
};
const frames = () => [...document.querySelectorAll("iframe")];

test("a preview opens below its code in a sealed frame, and closes again", async () => {
  const { leave, documents } = showWithPreview(`${HTML}\n\nwords\n\n${HTML}`);
  expect(frames()).toEqual([]);
  await press(1);
  const [frame, ...others] = frames();
  expect(others).toEqual([]);
  expect(frame?.closest(".code")).toBe(document.querySelectorAll(".code")[1]);
  expect(frame?.getAttribute("sandbox")).toBe("");
  expect(frame?.getAttribute("src")).toBe("preview://localhost/1");
  expect(frame?.hasAttribute("srcdoc")).toBe(false);
  expect(frame?.referrerPolicy).toBe("no-referrer");
  expect(frame?.title).toBe("Preview");
  expect(documents[0]).toMatch(/<!-- <\/iframe> --><b>bold<\/b>\s*$/);
  const pressed = () =>
    [...document.querySelectorAll("[data-preview]")].map((one) => one.getAttribute("aria-pressed"));
  expect(pressed()).toEqual(["false", "true"]);
  await press(0);
  expect(frames()).toHaveLength(2);
  expect(frames()[1]).toBe(frame);
  await press(1);
  expect(frames().map((one) => one.getAttribute("src"))).toEqual(["preview://localhost/2"]);
  expect(pressed()).toEqual(["true", "false"]);
  await leave();
});

test("a preview stays open and as it is while the text grows and code is wrapped", async () => {
  const { props, leave } = showWithPreview(`${HTML}\n\nwords`);
  await press();
  const [frame] = frames();
  app.view.wrapCode(true);
  flushSync();
  props.text = `${HTML}\n\nwords and more`;
  flushSync();
  expect(frames()).toEqual([frame]);
  await leave();
});

test("code of five megabytes has no preview, and a toast says why", async () => {
  const { leave, documents } = showWithPreview(
    `\`\`\`html\n${"<p>line of a page</p>\n".repeat(250_000)}\`\`\``,
  );
  await vi.advanceTimersByTimeAsync(20_000);
  flushSync();
  expect(document.querySelectorAll("[data-preview]").length).toBeLessThanOrEqual(1);
  await press();
  expect([frames().length, documents.length]).toEqual([0, 0]);
  await leave();
});
