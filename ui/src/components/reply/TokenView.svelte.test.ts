import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Round } from "../../bindings/Round";
import { Trace } from "../../state/trace.svelte";
import { View } from "../../state/view.svelte";
import { drafted, extra, round, threeRounds } from "../../trace/fixtures";
import { textOf } from "../../trace/text";
import TokenView from "./TokenView.svelte";
import { stubResizeObserver } from "../../resizeObserver";

const MESSAGE = 1;
let view: View;
let shown: ReturnType<typeof mount> | undefined;

vi.mock("../../state/app.svelte", () => ({ getApp: () => ({ view, littleMotion: false }) }));

vi.mock("../../state/chat.svelte", () => ({ getChat: () => ({ inspected: { id: MESSAGE } }) }));

vi.mock("../../commands/command", async (original) => ({
  ...(await original<object>()),
  getWindowActions: () => ({}),
}));

beforeEach(() => {
  view = new View();
  Element.prototype.scrollIntoView = () => undefined;
  stubResizeObserver();
});
afterEach(async () => {
  if (shown) await unmount(shown);
});

function show(rounds: readonly Round[], text: string | null = textOf(rounds)) {
  const trace = Trace.of(rounds);
  const parts = [{ message: MESSAGE, trace }] as const;
  shown = mount(TokenView, { target: document.body, props: { parts, text } });
  flushSync();
  return trace;
}

const find = (id: string) => document.querySelector<HTMLElement>(`[data-testid=${id}]`);
const all = (selector: string) => [...document.querySelectorAll<HTMLElement>(selector)];

function press(key: string) {
  find("token-view")?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  flushSync();
}

/** `count` rounds of one plain token each. */
const words = (count: number) =>
  Array.from({ length: count }, (_, index) => round(index, { extra: extra(" w", "plain") }));

test("every token is a chip with its outcome", () => {
  show(threeRounds);
  expect(all("[data-testid=token-chip]").map(({ dataset }) => dataset["outcome"])).toEqual([
    ...["accepted", "accepted", "bonus"],
    ...["rejected", "discarded", "recovered", "plain"],
  ]);
});

test("screen readers read the text of the reply, without rejected tokens", () => {
  const rounds = [...threeRounds, round(3, { extra: extra("\n\n**next**", "plain") })];
  show(rounds);
  for (const hidden of all("[data-testid=token-view] [aria-hidden=true]")) hidden.remove();
  expect(find("token-view")?.textContent).toBe(textOf(rounds));
});

test("the arrow keys move through the tokens in reading order, and announce each", () => {
  show(threeRounds);
  const walked = ["ArrowRight", "ArrowRight", "End", "ArrowLeft", "Home"].map((key) => {
    press(key);
    return view.selected;
  });
  expect(walked).toEqual([
    { round: 0, slot: 0 },
    { round: 0, slot: 1 },
    { round: 2, slot: 0 },
    { round: 1, slot: 2 },
    { round: 0, slot: 0 },
  ]);
  expect(document.querySelector("[role=status]")?.textContent).toContain("a: accepted");
  expect(find("token-card")).not.toBeNull();
  press("Escape");
  expect(view.selected).toBeNull();
});

test("all pieces of the token selected in the heatmap are marked", () => {
  show([
    round(0, { extra: extra("**a", "plain") }),
    round(1, { drafted: [drafted("b** c", "accepted")] }),
  ]);
  view.inspect(MESSAGE, { round: 1, slot: 0 });
  view.hovered = { round: 0, slot: 0 };
  flushSync();
  expect(all(".picked").map(({ textContent }) => textContent)).toEqual(["b", "**", " c"]);
  expect(all(".lit").map(({ textContent }) => textContent)).toEqual(["**", "a"]);
});

test("tokens that differ from the stored text are shown with a note", () => {
  show(threeRounds, "another text");
  expect(find("trace-differs")?.textContent).toContain("do not match the stored reply");
  expect(all("[data-testid=token-chip]")).toHaveLength(7);
});

test("a growing reply is not compared, and gets more tokens", () => {
  const trace = show(threeRounds, null);
  expect(find("trace-differs")).toBeNull();
  trace.push(round(3, { extra: extra(" f", "plain") }));
  trace.flush();
  flushSync();
  expect(all("[data-testid=token-chip]")).toHaveLength(8);
});

test("of a long reply the end is shown, and more on demand", () => {
  show(words(5000));
  expect(all("[data-testid=token-chip]")).toHaveLength(2000);
  expect(find("tokens-earlier")?.textContent).toContain("earlier rounds (3,000 not shown)");
  find("tokens-earlier")?.click();
  flushSync();
  expect(all("[data-testid=token-chip]")).toHaveLength(4000);
});

test("a long reply is shown around its reading position", () => {
  view.reading = { first: MESSAGE, from: 2 * 3000 };
  show(words(9000));
  const [chip] = all("[data-testid=token-chip]");
  expect(Number(chip?.dataset["round"])).toBe(3000 - 60);
  expect(find("tokens-later")).not.toBeNull();
});

test("a long reply is shown from its end if another reply is being read", () => {
  view.reading = { first: MESSAGE + 1, from: 0 };
  show(words(9000));
  expect(find("tokens-later")).toBeNull();
});

test("a token selected outside of the window is shown with its surroundings", () => {
  show(words(9000));
  view.inspect(MESSAGE, { round: 3000, slot: 0 });
  flushSync();
  expect(all(".picked").map(({ dataset }) => dataset["round"])).toEqual(["3000"]);
  expect(all("[data-testid=token-chip]").length).toBeLessThanOrEqual(2000);
  expect(find("tokens-later")).not.toBeNull();
  find("tokens-later")?.click();
  flushSync();
  expect(all("[data-testid=token-chip]")).toHaveLength(4000);
  press("End");
  expect(all(".picked").map(({ dataset }) => dataset["round"])).toEqual(["8999"]);
});

test("a replay that steps back replaces the trace", () => {
  const replyParts = (rounds: readonly Round[]) =>
    [{ message: MESSAGE, trace: Trace.of(rounds) }] as const;
  const props = $state({ parts: replyParts(words(9)), text: null });
  shown = mount(TokenView, { target: document.body, props });
  flushSync();
  props.parts = replyParts(threeRounds);
  flushSync();
  expect(all("[data-testid=token-chip]")).toHaveLength(7);
  props.parts = replyParts(words(30));
  flushSync();
  expect(find("token-view")?.textContent).toBe(" w".repeat(30));
});

test("a continued reply is one text, with tokens of each part's trace", () => {
  const first = Trace.of([round(0, { extra: extra("```js\nlet", "plain") })]);
  const second = Trace.of([
    round(0, { extra: extra(" a;", "plain") }),
    round(1, { extra: extra("\n```", "plain") }),
  ]);
  const parts = [
    { message: 7, trace: first },
    { message: MESSAGE, trace: second },
  ] as const;
  shown = mount(TokenView, { target: document.body, props: { parts, text: null } });
  flushSync();
  expect(all("pre").map(({ textContent }) => textContent)).toEqual(["```js↵\nlet a;↵\n```"]);
  all("[data-testid=token-chip]")[1]?.click();
  flushSync();
  expect(view.inspected).toBe(MESSAGE);
  expect(view.selected).toEqual({ round: 0, slot: 0 });
  expect(all(".picked").map(({ textContent }) => textContent)).toEqual([" a;"]);
  press("ArrowLeft");
  expect(view.inspected).toBe(7);
  expect(view.selected).toEqual({ round: 0, slot: 0 });
  second.show([round(2, { extra: extra(" so", "plain") })], 0);
  flushSync();
  expect(find("token-view")?.textContent).toContain(" so");
});

test("a rejected token is folded into a mark, which a click unfolds and folds again", () => {
  show(threeRounds);
  const mark = all(".fold.wrong")[0] ?? expect.fail("no mark");
  expect(mark.querySelector(".rejected")?.textContent).toBe("x");
  mark.click();
  flushSync();
  expect(mark.matches(".open")).toBe(true);
  expect(view.selected).toEqual({ round: 1, slot: 0 });
  mark.click();
  flushSync();
  expect(mark.matches(".open")).toBe(false);
});

test("the arrow keys skip unverified tokens, unless all drafts are shown", () => {
  show(threeRounds);
  const walked = () => {
    press("Escape");
    const places = [];
    for (let step = 0; step < 8; step += 1) {
      press("ArrowRight");
      places.push([view.selected?.round, view.selected?.slot].join("."));
    }
    return [...new Set(places)];
  };
  expect(walked()).toEqual(["0.0", "0.1", "0.2", "1.0", "1.2", "2.0"]);
  view.unfoldDrafts(true);
  flushSync();
  expect(find("token-view")?.matches(".all")).toBe(true);
  expect(walked()).toEqual(["0.0", "0.1", "0.2", "1.0", "1.1", "1.2", "2.0"]);
  view.unfoldDrafts(false);
});

test("a code block has the same head as in the text view, and copies its code without drafts", async () => {
  const written = vi.fn(() => Promise.resolve());
  Object.assign(navigator, { clipboard: { writeText: written } });
  show([
    round(0, { extra: extra("> ```py\n> a = 1\n", "plain") }),
    round(1, { drafted: [drafted(" wrong", "rejected")], extra: extra("> b = 2\n", "recovered") }),
    round(2, { extra: extra("> ```", "plain") }),
  ]);
  const head = document.querySelector(".code > .code-head") ?? expect.fail("no head");
  expect(head.querySelector("span")?.textContent).toBe("py");
  head.querySelector<HTMLElement>("[data-copy]")?.click();
  await vi.waitFor(() => expect(written).toHaveBeenCalledWith("a = 1\nb = 2"));
  const wrap = () => document.querySelector("[data-wrap]")?.getAttribute("aria-pressed");
  expect(wrap()).toBe("false");
  document.querySelector<HTMLElement>("[data-wrap]")?.click();
  flushSync();
  expect([wrap(), view.wrapsCode]).toEqual(["true", true]);
  Reflect.deleteProperty(navigator, "clipboard");
});
