import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Call } from "../../bindings/Call";
import type { Message } from "../../bindings/Message";
import { t } from "../../messages/say";
import { App } from "../../state/app.svelte";
import { Trace } from "../../state/trace.svelte";
import { drafted, extra, round, summary, threeRounds } from "../../trace/fixtures";
import ReplyMessage from "./ReplyMessage.svelte";

/** A remote reply without rounds. */
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
  excerpts: [],
  calls: [],
  calls_start: null,
  unstored: null,
  speedup: null,
};

let app: App;
let shown: ReturnType<typeof mount> | undefined;

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

vi.mock("../../state/chat.svelte", async (original) => ({
  ...(await original<object>()),
  getChat: () => app.chat,
}));

const actions = { copyReply: vi.fn(), exportTrace: vi.fn(), copy: vi.fn() };

vi.mock("../../commands/command", async (original) => ({
  ...(await original<object>()),
  getWindowActions: () => actions,
}));

beforeEach(() => {
  actions.copyReply.mockClear();
  app = new App({} as never);
  app.view.showAllAs("tokens");
  app.traces.keep(REPLY.id, Trace.of([]));
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

function show(message = REPLY, { last = true, before = [] as Message[] } = {}) {
  shown = mount(ReplyMessage, { target: document.body, props: { message, before, last } });
  flushSync();
}

const find = (id: string) => document.querySelector<HTMLElement>(`[data-testid=${id}]`);

test("a reply without rounds shows its text, even if tokens are requested", () => {
  app.view.showAllAs("tokens");
  show();
  expect(find("reply-text")?.textContent.trim()).toBe("plain words");
});

test("a reply without rounds can be copied while it is written", () => {
  app.reply.message = REPLY;
  show();
  find("copy-reply")?.click();
  expect(actions.copyReply).toHaveBeenCalledExactlyOnceWith(REPLY, "markdown");
});

test.each([
  ["that reached its maximum length", { finish: "length" }, true],
  ["that was stopped", { finish: "cancelled" }, true],
  ["that ran in circles", { finish: "repeating" }, true],
  ["that a closed program left", { finish: null }, true],
  ["that failed half way", { finish: null, problem: "it broke." }, true],
  ["that is whole", { finish: "stop" }, false],
  ["that filled the context", { finish: "context_full" }, false],
  ["in which nothing is", { finish: "cancelled", text: "" }, false],
] as const)("a reply %s can be continued, or not", (_, change, offered) => {
  show({ ...REPLY, ...change });
  expect(find("continue-reply") !== null).toBe(offered);
});

test.each([
  ["with an earlier turn to drop", [1, 3], "drop-and-continue", "full-new-chat"],
  ["that is all there is in the context", [3], "full-new-chat", "drop-and-continue"],
] as const)(
  "a reply %s that filled the context offers remedies",
  (_, questions, offered, missing) => {
    const asked = (id: number): Message => ({ ...REPLY, id, role: "user", siblings: [id] });
    app.conversations.messages = questions.map(asked);
    const proceed = vi.spyOn(app.reply, "continue").mockResolvedValue();
    show({ ...REPLY, id: 4, finish: "context_full" });
    expect(find("reply-ending")?.textContent).toContain("Context full.");
    expect(find(missing)).toBeNull();
    find(offered)?.click();
    expect(proceed.mock.calls).toEqual(offered === "drop-and-continue" ? [[4]] : []);
    expect(app.conversations.current).toBeNull();
  },
);

test("a repetitive reply says so and can be regenerated with stronger penalties", async () => {
  const calls: string[] = [];
  vi.spyOn(app.setup, "penaliseMore").mockImplementation(() => {
    calls.push("penalise");
    return Promise.resolve();
  });
  vi.spyOn(app.reply, "regenerate").mockImplementation((message) => {
    calls.push(`regenerate ${String(message)}`);
    return Promise.resolve();
  });
  show({ ...REPLY, finish: "repeating" });
  expect(find("reply-ending")?.textContent).toContain(t("reply.ending.repeating"));
  expect(document.querySelectorAll("[data-testid=continue-reply]")).toHaveLength(1);
  find("regenerate-with-penalty")?.click();
  await vi.waitFor(() => expect(calls).toEqual(["penalise", `regenerate ${String(REPLY.id)}`]));
});

test("a reply with a later message cannot be continued", () => {
  show({ ...REPLY, finish: "cancelled" }, { last: false });
  expect(find("continue-reply")).toBeNull();
});

test("a reply cut within code and continued is one text, and is copied as one", () => {
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
  expect(actions.copyReply).toHaveBeenCalledExactlyOnceWith(rest, "markdown");
});

test("a reply is copied as plain text from its menu", () => {
  show();
  find("reply-more")?.click();
  flushSync();
  find("copy-text")?.click();
  expect(actions.copyReply).toHaveBeenCalledExactlyOnceWith(REPLY, "text");
});

const WRITTEN = {
  ...REPLY,
  summary: { ...summary(), acceptance_rate: 0.84, tokens_per_second: 33.2 },
};

test.each([
  [6.378, "6.4 tokens/s"],
  [2803, "2,800 tokens/s"],
])("a speed of %d tokens/s has two significant digits in the foot", (rate, words) => {
  const written = { ...WRITTEN, summary: { ...WRITTEN.summary, tokens_per_second: rate } };
  show(written);
  expect(find("reply-numbers")?.querySelector("span")?.textContent).toBe(words);
});

test("a reply's foot shows its speed, acceptance rate and speed-up", () => {
  app.conversations.messages = [WRITTEN];
  vi.spyOn(app.chat, "speedupOf").mockReturnValue({ factor: 1.6 } as never);
  show(WRITTEN);
  const words = [...document.querySelectorAll("[data-testid=reply-numbers] > span")];
  expect(words.map(({ textContent }) => textContent.replace(/\s/g, " "))).toEqual([
    "33 tokens/s",
    "84% of drafts accepted",
    "1.6× faster",
  ]);
  find("reply-numbers")?.click();
  expect(app.view.inspected).toBe(REPLY.id);
});

test("frequent actions come first, and destructive ones last and marked", () => {
  app.traces.keep(REPLY.id, Trace.of(threeRounds));
  show();
  const buttons = [...document.querySelectorAll<HTMLElement>(".actions > button")];
  expect(buttons.map(({ dataset }) => dataset["testid"])).toEqual([
    ...["copy-reply", "regenerate", "toggle-tokens", "reply-more"],
  ]);
  find("reply-more")?.click();
  flushSync();
  const entries = [...document.querySelectorAll<HTMLElement>("[role=menuitem]")];
  expect(entries.map(({ dataset }) => dataset["testid"])).toEqual([
    ...["replay-open", "check-reply", "show-drafts", "copy-text"],
    ...["new-chat-from-here", "trace-export", "delete-reply"],
  ]);
  expect(entries.filter((entry) => entry.matches(".dangerous"))).toEqual(entries.slice(-1));
});

test("a line explains the marks that occur in the first reply shown as tokens, until it is dismissed", () => {
  const words = () =>
    [...document.querySelectorAll("[data-testid=reply-key] > span")].map(({ textContent }) =>
      textContent.trim(),
    );
  const lines = ["accepted", "corrected", "bonus"];
  app.conversations.messages = [REPLY];
  const plain = [round(0, { extra: extra("Yes", "plain") })];
  app.traces.keep(
    REPLY.id,
    Trace.of([...plain, round(1, { drafted: [drafted(" a", "accepted")] })]),
  );
  show({ ...REPLY, text: "Yes a" });
  expect(words()).toEqual(["accepted"]);
  app.traces.keep(REPLY.id, Trace.of(threeRounds));
  flushSync();
  expect(words()).toEqual([...lines, "rejected, hidden"]);
  app.view.unfoldDrafts(true);
  flushSync();
  expect(words()).toEqual([...lines, "rejected", "not checked"]);
  app.view.unfoldDrafts(false);
  find("reply-key-dismiss")?.click();
  flushSync();
  expect(words()).toEqual([]);
  app.view.showKey();
  flushSync();
  expect(words()).toEqual([...lines, "rejected, hidden"]);
});

test("a reply without text cannot be copied, and one that has not ended cannot be checked", () => {
  app.conversations.messages = [REPLY];
  show({ ...REPLY, text: "", finish: null, summary: null });
  expect(find("regenerate")).not.toBeNull();
  expect(find("copy-reply")).toBeNull();
  expect(find("toggle-tokens")).toBeNull();
  find("reply-more")?.click();
  flushSync();
  expect(find("copy-text")).toBeNull();
  expect(find("check-reply")?.hasAttribute("disabled")).toBe(true);
  expect(find("check-reply")?.dataset["tooltip"]).toBe("Only a finished reply can be checked");
});

test("a reply of the maximum length has a link to the setting", () => {
  app.conversations.messages = [REPLY];
  show({ ...WRITTEN, finish: "length" });
  expect(find("reply-ending")?.textContent).toContain("Reached the maximum length.");
  find("change-length")?.click();
  expect(app.view).toMatchObject({ settingsOpen: true, settingsSection: "sampling" });
});

test("the line stands above the first reply alone", () => {
  const question = { ...REPLY, id: 3, role: "user" as const };
  app.conversations.messages = [REPLY, question, { ...REPLY, id: 4 }];
  for (const id of [REPLY.id, 4]) app.traces.keep(id, Trace.of(threeRounds));
  show({ ...REPLY, id: 4 });
  expect(find("reply-key")).toBeNull();
  app.view.shownAs.set(REPLY.id, "text");
  flushSync();
  expect(find("reply-key")).not.toBeNull();
});

const CALL: Call = {
  id: 5,
  message: 1,
  server: "files",
  tool: "read",
  arguments: '{"path":"<b>a</b>"}',
  state: "asked",
  result: "",
  is_error: false,
  took_ms: null,
  tokens: null,
};

test("a call replaces its text by a card, which asks once and shows the result as plain text", () => {
  const decide = vi.fn();
  app.reply.decide = decide;
  const text = "Look: <tool_call>";
  const asking = { ...REPLY, text, calls: [CALL], calls_start: 5 };
  app.reply.message = asking;
  app.reply.calling = true;
  show(asking);
  expect(find("reply-text")?.textContent.trim()).toBe("Look:");
  expect(find("call")?.textContent).toContain("files");
  expect(find("call-arguments")?.textContent).toContain("<b>a</b>");
  find("call-conversation")?.click();
  expect(decide).toHaveBeenCalledWith(5, "conversation");
  app.reply.calling = false;
  app.reply.message = null;
  flushSync();
  expect(find("call-once"), "no reply waits for a decision any more").toBeNull();
});

test("a stored call shows its result as it is, and an error as one", () => {
  const result = "<script>alert(1)</script>";
  const tokens = { written: 24, drafted: 4, forced: 9 };
  const done = { ...CALL, state: "done" as const, result, took_ms: 1500, tokens };
  show({ ...REPLY, text: "", calls: [done], calls_start: 0 });
  expect(find("call-result")?.querySelector("script")).toBeNull();
  expect(find("call-result")?.textContent).toContain(result);
  expect(find("call")?.textContent).toContain("1.5\u00a0s");
  expect(find("call-tokens")?.textContent.trim()).toBe("24 tokens: 9 forced, 4 drafted");
});

test("a reply lists the excerpts that it cites or quotes as sources, which open", async () => {
  const excerpts = [1, 2, 3].map((page) => ({
    name: "a.pdf",
    page,
    heading: page === 3 ? "Foxes" : null,
    text: `page ${page} has all of these words about foxes`,
  }));
  const question = { ...REPLY, id: 1, role: "user" as const, text: "Why?", excerpts };
  const text = "A fox [3]; see [7]. “Page 1 has all of these words about foxes.”";
  const reply = { ...REPLY, id: 2, parent: 1, text };
  app.conversations.messages = [question, reply];
  app.view.showAllAs("text");
  show(reply);
  const sources = find("sources");
  const chips = [
    ...(sources?.querySelectorAll<HTMLElement>("[data-testid=attachment-open]") ?? []),
  ];
  const words = chips.map(({ textContent }) => textContent.replace(/\s+/g, " ").trim());
  expect(words).toEqual(["[1] a.pdf page 1", "[3] a.pdf page 3, Foxes"]);
  chips[1]?.click();
  await vi.waitFor(() => expect(sources?.textContent).toContain("page 3 has all"));
});

test("a reply without citations has no sources", () => {
  show({ ...REPLY, text: "A fox [1]." });
  expect(find("sources")).toBeNull();
});
