import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Message } from "../../bindings/Message";
import { App } from "../../state/app.svelte";
import { Trace } from "../../state/trace.svelte";
import ReplyMessage from "./ReplyMessage.svelte";

/** A reply by who has text alone. */
const REPLY: Message = {
  id: 1,
  conversation: 1,
  role: "assistant",
  text: "plain words",
  created_at: 0,
  finish: "stop",
  summary: null,
  target: "Elsewhere",
  draft: null,
  problem: null,
  parent: null,
  siblings: [1],
  attachments: [],
  unstored: null,
};

let app: App;
let shown: ReturnType<typeof mount> | undefined;
const writeText = vi.fn(() => Promise.resolve());

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

beforeEach(() => {
  app = new App({} as never);
  app.traces.keep(REPLY.id, Trace.of([]));
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  vi.stubGlobal(
    "IntersectionObserver",
    class {
      readonly #onChange: (entries: object[]) => void;
      constructor(onChange: (entries: object[]) => void) {
        this.#onChange = onChange;
      }
      observe(target: Element) {
        this.#onChange([{ target, isIntersecting: true }]);
      }
      unobserve() {}
    },
  );
});
afterEach(async () => {
  writeText.mockClear();
  if (shown) await unmount(shown);
  vi.unstubAllGlobals();
});

function show(message = REPLY, { last = true, before = [] as Message[] } = {}) {
  shown = mount(ReplyMessage, { target: document.body, props: { message, before, last } });
  flushSync();
}

const find = (id: string) => document.querySelector<HTMLElement>(`[data-testid=${id}]`);

test("a reply without rounds shows its text, also where tokens are asked for", () => {
  app.view.showAllAs("tokens");
  show();
  expect(find("reply-text")?.textContent.trim()).toBe("plain words");
});

test("a reply without rounds that is still being written is copied as its text", () => {
  app.reply.message = REPLY;
  show();
  find("copy-reply")?.click();
  expect(writeText).toHaveBeenCalledExactlyOnceWith("plain words");
});

test.each([
  ["that reached its maximum length", { finish: "length" }, true],
  ["that was stopped", { finish: "cancelled" }, true],
  ["that a closed program left", { finish: null }, true],
  ["that failed half way", { finish: null, problem: "it broke." }, true],
  ["that is whole", { finish: "stop" }, false],
  ["that filled the context", { finish: "context_full" }, false],
  ["in which nothing is", { finish: "cancelled", text: "" }, false],
] as const)("a reply %s can be continued, or not", (_, change, offered) => {
  show({ ...REPLY, ...change });
  expect(find("continue-reply") !== null).toBe(offered);
});

test("a reply that something follows cannot be continued", () => {
  show({ ...REPLY, finish: "cancelled" }, { last: false });
  expect(find("continue-reply")).toBeNull();
});

test("a reply that was cut within code and continued is one text, and is copied as one", () => {
  const cut = { ...REPLY, text: "So:\n\n```js\nlet", finish: "length" } as const;
  const rest = { ...REPLY, id: 2, parent: 1, text: " a = 1;\n```\n\nDone.", siblings: [2] };
  app.view.showAllAs("text");
  show(rest, { before: [cut] });
  const texts = [...document.querySelectorAll("[data-testid=reply-text]")];
  expect(texts).toHaveLength(1);
  expect(texts[0]?.querySelectorAll("pre")).toHaveLength(1);
  expect(texts[0]?.querySelector("pre")?.textContent).toBe("let a = 1;");
  expect(texts[0]?.textContent).not.toContain("`");
  expect(find("reply-ending")).toBeNull();
  const parts = [...document.querySelectorAll("[data-testid=reply-part]")];
  expect(parts.map(({ textContent }) => textContent.trim())).toEqual([
    "Part 1 of 2",
    "Part 2 of 2",
  ]);
  expect(document.querySelectorAll("[data-testid=copy-reply]")).toHaveLength(1);
  find("copy-reply")?.click();
  expect(writeText).toHaveBeenCalledExactlyOnceWith(cut.text + rest.text);
});

test("a reply is copied as plain text from its menu", () => {
  show({ ...REPLY, text: "# One\n\n**two**" });
  find("reply-more")?.click();
  flushSync();
  find("copy-text")?.click();
  expect(writeText).toHaveBeenCalledExactlyOnceWith("One\n\ntwo");
});
