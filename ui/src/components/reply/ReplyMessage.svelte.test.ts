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
  instead_of: null,
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
  if (shown) await unmount(shown);
  vi.unstubAllGlobals();
});

function show() {
  shown = mount(ReplyMessage, { target: document.body, props: { message: REPLY, last: true } });
  flushSync();
}

test("what is kept beside a reply can be read, shown instead and discarded", () => {
  const stopped = { ...REPLY, id: 2, text: "half", finish: "cancelled" as const, instead_of: 1 };
  const failed = { ...REPLY, id: 3, text: "", finish: null, problem: "it broke.", instead_of: 1 };
  const elsewhere = { ...stopped, id: 4, instead_of: 9 };
  app.conversations.alternatives = [stopped, failed, elsewhere];
  const [choose, discard] = [vi.fn(), vi.fn()];
  Object.assign(app.conversations, { choose, discard });
  show();
  const kept = [...document.querySelectorAll<HTMLElement>("[data-testid=alternative]")];
  expect(kept.map((other) => other.textContent)).toEqual([
    expect.stringContaining("begun and stopped"),
    expect.stringContaining("Another reply failed: it broke."),
  ]);
  expect(kept[0]?.querySelector("p")?.textContent).toBe("half");
  expect(kept[1]?.querySelector("[data-testid=choose-alternative]")).toBeNull();
  find("choose-alternative")?.click();
  expect(choose).toHaveBeenCalledExactlyOnceWith(2);
  kept[1]?.querySelector<HTMLElement>("[data-testid=discard-alternative]")?.click();
  expect(discard).toHaveBeenCalledExactlyOnceWith(3);
});

const find = (id: string) => document.querySelector<HTMLElement>(`[data-testid=${id}]`);

test("a reply without rounds shows its text, also where tokens are asked for", () => {
  app.view.remember("tokens");
  show();
  expect(find("reply-text")?.textContent.trim()).toBe("plain words");
});

test("a reply without rounds that is still being written is copied as its text", () => {
  app.reply.message = REPLY;
  show();
  find("copy-reply")?.click();
  expect(writeText).toHaveBeenCalledExactlyOnceWith("plain words");
});
