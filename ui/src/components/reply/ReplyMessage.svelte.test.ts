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
