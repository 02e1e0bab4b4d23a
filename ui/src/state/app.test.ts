import { beforeEach, expect, test, vi } from "vitest";
import type { Call } from "../bindings/Call";
import type { Conversation } from "../bindings/Conversation";
import type { Message } from "../bindings/Message";
import type { Reply } from "../bindings/Reply";
import type { ReplyEvent } from "../bindings/ReplyEvent";
import type { Sent } from "../bindings/Sent";
import type { Settings } from "../bindings/Settings";
import { defaults } from "../bindings/defaults";
import { BackendError, type Backend } from "../backend/backend";
import { STARTER } from "../backend/modelFixtures";
import { threeRounds } from "../trace/fixtures";
import { App } from "./app.svelte";
import { textOnly } from "../attachments/textOnly";

const home: Conversation = {
  id: 1,
  title: "Fox",
  pinned: false,
  updated_at: 5,
  seen_from: null,
  folder: null,
};
const message = (id: number, change: Partial<Message> = {}): Message => ({
  id,
  conversation: 1,
  role: "assistant",
  text: "",
  created_at: 5,
  finish: null,
  summary: null,
  target: null,
  draft: null,
  problem: null,
  parent: null,
  siblings: [id],
  attachments: [],
  excerpts: [],
  calls: [],
  calls_start: null,
  unstored: null,
  speedup: null,
  ...change,
});
const question = message(2, { role: "user", text: "Hello" });
const preview = message(3, { parent: 2 });
const stored = message(3, { parent: 2, text: "a b c d e", finish: "stop" });

/** A backend whose replies a test ends by hand. */
class Fake {
  emit: (event: ReplyEvent) => void = () => undefined;
  settle: { resolve: (reply: Reply) => void; reject: (error: unknown) => void } | undefined;
  saved: Settings[] = [];
  refuse: BackendError | null = null;
  stored: Message[] = [];
  stops = 0;
  branches: [string, number][] = [];
  onBranch: () => void = () => undefined;
  leftOut: [number, Sent | null][] = [];
  startedAt: (number | null)[] = [];

  readonly backend = {
    conversations: () => Promise.resolve([]),
    folders: () => Promise.resolve([]),
    settings: () => Promise.resolve(defaults),
    saveSettings: (settings: Settings) => {
      if (this.refuse) return Promise.reject(this.refuse);
      this.saved.push(settings);
      return Promise.resolve(settings);
    },
    messages: () => Promise.resolve(this.stored),
    unsentFiles: () => Promise.resolve([]),
    trace: () => Promise.resolve([...threeRounds]),
    send: (_: number | null, __: Sent, onEvent: (event: ReplyEvent) => void) => this.#ask(onEvent),
    regenerate: (_: number, onEvent: (event: ReplyEvent) => void) => this.#ask(onEvent),
    sendInstead: (_: number, __: Sent, onEvent: (event: ReplyEvent) => void) => this.#ask(onEvent),
    continueReply: (_: number, onEvent: (event: ReplyEvent) => void) => this.#ask(onEvent),
    followReply: (onEvent: (event: ReplyEvent) => void) => this.#ask(onEvent),
    chooseBranch: (id: number) => this.#branch("choose", id),
    deleteMessage: (id: number) => this.#branch("delete", id),
    restoreMessage: (id: number) => this.#branch("restore", id),
    leaveOutOldest: (conversation: number, next: Sent | null) => {
      this.leftOut.push([conversation, next]);
      return this.refuse ? Promise.reject(this.refuse) : Promise.resolve({ ...home, seen_from: 7 });
    },
    setContextStart: (_: number, question: number | null) => {
      this.startedAt.push(question);
      return Promise.resolve({ ...home, seen_from: question ?? 9 });
    },
    clearContextStart: () => Promise.resolve(home),
    writeTitle: () => Promise.resolve(null),
    stop: () => {
      this.stops += 1;
      return Promise.resolve();
    },
  } as unknown as Backend;

  #branch(change: string, id: number): Promise<Message[]> {
    if (this.refuse) return Promise.reject(this.refuse);
    this.branches.push([change, id]);
    this.onBranch();
    return Promise.resolve(this.stored);
  }

  #ask(onEvent: (event: ReplyEvent) => void): Promise<Reply> {
    this.emit = onEvent;
    return new Promise((resolve, reject) => (this.settle = { resolve, reject }));
  }

  begin(user: Message | null = question, reply = preview) {
    this.emit({ type: "started", conversation: home, user, reply });
  }
}

let fake: Fake;
let app: App;

beforeEach(() => {
  vi.useRealTimers();
  fake = new Fake();
  app = new App(fake.backend);
});

test("the stored reply replaces the streamed preview", async () => {
  const asked = app.reply.send(textOnly("Hello"), () => undefined);
  fake.begin();
  for (const round of threeRounds) fake.emit({ type: "round", round });
  expect(app.conversations.current).toBe(1);
  expect(app.conversations.messages).toEqual([question, preview]);
  fake.settle?.resolve({ conversation: home, reply: stored });
  await asked;
  expect(app.conversations.messages).toEqual([question, stored]);
  expect(app.reply.active).toBe(false);
  expect(app.traces.of(3)?.rounds).toEqual(threeRounds);
});

test("a reply that fills the context goes on in a second part, and the context starts later", async () => {
  const accepted = vi.fn();
  const asked = app.reply.send(textOnly("Hello"), accepted);
  fake.begin();
  for (const round of threeRounds) fake.emit({ type: "round", round });
  const part: Message = { ...stored, finish: "context_full" };
  fake.emit({ type: "part_ended", reply: part });
  const next = message(4, { parent: 3 });
  fake.emit({ type: "started", conversation: { ...home, seen_from: 2 }, user: null, reply: next });
  expect(app.conversations.messages).toEqual([question, part, next]);
  expect(app.conversations.contextStart).toBe(2);
  expect([app.traces.of(3)?.length, app.traces.of(4)?.length]).toEqual([3, 0]);
  expect(accepted).toHaveBeenCalledOnce();
  const last: Message = { ...next, text: " f", finish: "stop" };
  fake.settle?.resolve({ conversation: { ...home, seen_from: 2 }, reply: last });
  await asked;
  expect(app.conversations.messages).toEqual([question, part, last]);
});

test("a continued reply is shown with all its parts after a reload", async () => {
  const part: Message = { ...stored, finish: "context_full" };
  const next = message(4, { parent: 3 });
  app.conversations.current = 1;
  const taken = app.reply.follow(() => Promise.resolve());
  fake.begin();
  fake.emit({ type: "part_ended", reply: part });
  fake.emit({ type: "started", conversation: home, user: null, reply: next });
  expect(app.reply.message).toEqual(next);
  fake.settle?.resolve({ conversation: home, reply: { ...next, text: " f" } });
  await taken;
  expect(app.conversations.messages.map(({ id }) => id)).toEqual([2, 3, 4]);
});

test("a reply without rounds shows its text while it streams", async () => {
  const asked = app.reply.send(textOnly("Hello"), () => undefined);
  fake.begin();
  fake.emit({ type: "text", delta: "a " });
  fake.emit({ type: "text", delta: "b" });
  await vi.waitFor(() => expect(app.conversations.messages[1]?.text).toBe("a b"));
  expect(app.reply.message?.text).toBe("a b");
  fake.settle?.resolve({ conversation: home, reply: stored });
  await asked;
  expect(app.conversations.messages).toEqual([question, stored]);
});

test("the inspector switches from an older reply to a new one", async () => {
  const older = message(1, { text: "Once", finish: "stop" });
  fake.stored = [older];
  await app.open(1);
  app.view.inspect(older.id, { round: 0, slot: 0 });
  expect(app.inspected).toEqual(older);
  void app.reply.send(textOnly("Hello"), () => undefined);
  fake.begin();
  expect(app.inspected).toEqual(preview);
  expect(app.view.selected).toBeNull();
});

test("a refused question stays in the composer, with the reason", async () => {
  const accepted = vi.fn();
  const asked = app.reply.send(textOnly("Hello"), accepted);
  fake.settle?.reject({ code: "prompt_too_long", message: "the prompt is too long" });
  await asked;
  expect(accepted).not.toHaveBeenCalled();
  expect(app.reply.problem).toBe("the prompt is too long");
  expect(app.conversations.messages).toEqual([]);
});

test("a failed reply shows its stored part", async () => {
  const asked = app.reply.send(textOnly("Hello"), () => undefined);
  fake.begin();
  fake.stored = [question, message(3, { text: "a", problem: "the computation failed" })];
  fake.settle?.reject(new BackendError("internal", "the computation failed"));
  await asked;
  expect(app.conversations.messages[1]?.problem).toBe("the computation failed");
});

test("a gap in the rounds is filled from the store", async () => {
  const asked = app.reply.send(textOnly("Hello"), () => undefined);
  fake.begin();
  for (const round of threeRounds.toSpliced(1, 1)) fake.emit({ type: "round", round });
  fake.settle?.resolve({ conversation: home, reply: stored });
  await asked;
  await vi.waitFor(() => expect(app.traces.of(3)?.gap).toBeNull());
  expect(app.traces.of(3)?.length).toBe(3);
});

test("rounds after the stored reply are still shown, at once", async () => {
  const asked = app.reply.send(textOnly("Hello"), () => undefined);
  fake.begin();
  const [first, ...late] = threeRounds;
  if (first) fake.emit({ type: "round", round: first });
  fake.settle?.resolve({ conversation: home, reply: stored });
  await asked;
  for (const round of late) fake.emit({ type: "round", round });
  expect(app.traces.of(3)?.plotted).toBe(3);
});

test("a regenerated reply replaces the one shown after its question", async () => {
  const old = message(9, { text: "old", parent: 2, siblings: [9] });
  const later = message(10, { role: "user", text: "And?", parent: 9 });
  app.conversations.current = 1;
  app.conversations.messages = [question, old, later, message(11, { parent: 10 })];
  const asked = app.reply.regenerate(9);
  const begun = { ...preview, siblings: [9, 3] };
  fake.begin(null, begun);
  expect(app.conversations.messages).toEqual([question, begun]);
  const whole = { ...stored, siblings: [9, 3] };
  fake.settle?.resolve({ conversation: home, reply: whole });
  await asked;
  expect(app.conversations.messages).toEqual([question, whole]);
});

test("calls are shown while they are written, then with their states", async () => {
  app.conversations.current = 1;
  app.conversations.messages = [question];
  const asked = app.reply.regenerate(2);
  fake.begin(null, preview);
  fake.emit({ type: "call_began", server: "files", tool: "read", start: 5 });
  fake.emit({ type: "call_arguments", json: '{"pa' });
  fake.emit({ type: "call_arguments", json: 'th":1}' });
  await vi.waitFor(() => {
    expect(app.reply.writing).toEqual([{ server: "files", tool: "read", arguments: '{"path":1}' }]);
  });
  expect(app.reply.callsStart).toBe(5);
  const call: Call = {
    id: 1,
    message: 3,
    server: "files",
    tool: "read",
    arguments: '{"path":1}',
    state: "asked",
    result: "",
    is_error: false,
    took_ms: null,
    tokens: null,
  };
  const part = { ...stored, calls: [call], calls_start: 5 };
  fake.emit({ type: "part_ended", reply: part });
  expect([app.reply.calling, app.reply.writing]).toEqual([true, []]);
  const done = { ...call, state: "done" as const, result: "fox" };
  fake.emit({ type: "call", call: done });
  expect(app.conversations.messages.at(-1)?.calls).toEqual([done]);
  const next = message(4, { parent: 3 });
  fake.begin(null, next);
  expect([app.reply.calling, app.reply.message]).toEqual([false, next]);
  const whole = { ...next, text: "It says fox.", finish: "stop" as const };
  fake.settle?.resolve({ conversation: home, reply: whole });
  await asked;
  expect(app.conversations.messages.map(({ id }) => id)).toEqual([2, 3, 4]);
});

test("an edit of the first question replaces all messages shown", async () => {
  app.conversations.current = 1;
  app.conversations.messages = [question, stored];
  const asked = app.reply.sendInstead(2, textOnly("Who?"));
  const other = message(5, { role: "user", text: "Who?", siblings: [2, 5] });
  fake.begin(other, message(6, { parent: 5 }));
  expect(app.conversations.messages.map(({ id }) => id)).toEqual([5, 6]);
  const whole = message(6, { parent: 5, text: "a hen", finish: "stop" });
  fake.settle?.resolve({ conversation: home, reply: whole });
  await asked;
  expect(app.conversations.messages).toEqual([other, whole]);
});

test("a continuation stands after the reply that was cut", async () => {
  const cut = { ...stored, finish: "cancelled" as const };
  app.conversations.current = 1;
  app.conversations.messages = [question, cut];
  const asked = app.reply.continue(3);
  fake.begin(null, message(4, { parent: 3 }));
  const more = message(4, { parent: 3, text: " f", finish: "stop" });
  fake.settle?.resolve({ conversation: home, reply: more });
  await asked;
  expect(app.conversations.messages).toEqual([question, cut, more]);
});

test("an empty reply leaves the earlier branch", async () => {
  const old = message(9, { text: "old", finish: "stop", parent: 2 });
  app.conversations.current = 1;
  app.conversations.messages = [question, old];
  const asked = app.reply.regenerate(9);
  fake.begin(null, preview);
  fake.stored = [question, old];
  fake.settle?.resolve({ conversation: home, reply: old });
  await asked;
  expect(app.conversations.messages).toEqual([question, old]);
});

test("an empty continuation leaves the reply that was cut as the last", async () => {
  const cut = { ...stored, finish: "length" as const };
  app.conversations.current = 1;
  app.conversations.messages = [question, cut];
  const asked = app.reply.continue(3);
  fake.begin(null, message(4, { parent: 3 }));
  fake.stored = [question, cut];
  fake.settle?.resolve({ conversation: home, reply: cut });
  await asked;
  expect(app.conversations.messages).toEqual([question, cut]);
});

test("a message whose parent is not shown is not added to the page", () => {
  app.conversations.current = 1;
  app.conversations.messages = [question];
  app.conversations.place(message(8, { parent: 7 }));
  expect(app.conversations.messages).toEqual([question]);
});

test("another branch is shown and announced, and a replay is closed", async () => {
  const old = message(9, { text: "old", parent: 2, siblings: [9, 3] });
  app.conversations.current = 1;
  app.conversations.messages = [question, { ...stored, siblings: [9, 3] }];
  app.playback.message = 3;
  fake.stored = [question, old];
  await app.conversations.choose(9);
  expect(fake.branches).toEqual([["choose", 9]]);
  expect(app.conversations.messages).toEqual([question, old]);
  expect(app.conversations.announcement).toBe("Branch 1 of 2");
  expect(app.conversations.reveal).toEqual({ message: 9, found: false });
  expect(app.playback.message).toBeNull();
});

test("a refused change of the branch changes nothing, and explains why", async () => {
  app.conversations.current = 1;
  app.conversations.messages = [question, stored];
  app.playback.message = 3;
  fake.refuse = new BackendError("busy", "a reply is under way");
  await app.conversations.choose(9);
  await app.conversations.deleteMessage(stored);
  expect(app.conversations.messages).toEqual([question, stored]);
  expect(app.playback.message).toBe(3);
  expect(app.toasts.list.map(({ action }) => action)).toEqual([null, null]);
});

test("deleting a message deletes everything after it, and both can be restored", async () => {
  app.conversations.current = 1;
  app.conversations.messages = [question, stored];
  fake.stored = [];
  await app.conversations.deleteMessage(question);
  expect(app.conversations.messages).toEqual([]);
  const [toast] = app.toasts.list;
  expect(toast?.text).toBe("Message deleted, with everything after it");
  fake.stored = [question, stored];
  toast?.action?.run();
  await vi.waitFor(() => expect(app.conversations.messages).toEqual([question, stored]));
  expect(fake.branches).toEqual([
    ["delete", 2],
    ["restore", 2],
  ]);
});

test("a message restored from another conversation opens its own", async () => {
  app.conversations.current = 1;
  app.conversations.messages = [question, stored];
  fake.stored = [question];
  await app.conversations.deleteMessage(stored);
  app.conversations.show(2, []);
  fake.stored = [question, stored];
  app.toasts.list[0]?.action?.run();
  await vi.waitFor(() => expect(fake.branches).toHaveLength(2));
  expect(app.conversations.current).toBe(1);
  expect(app.conversations.messages).toEqual([question, stored]);
});

test("a search result does not highlight words in a conversation opened meanwhile", async () => {
  fake.stored = [question, stored];
  const late = app.open(1, 3, "fox");
  app.startNew();
  await late;
  expect(app.find.open).toBe(false);
  expect(app.conversations.current).toBeNull();
});

test("a copy is opened, unless another conversation was opened meanwhile", async () => {
  const copy = { ...home, id: 8 };
  Object.assign(fake.backend, { duplicate: () => Promise.resolve(copy) });
  await app.duplicate(home);
  expect(app.conversations.current).toBe(8);
  const late = app.duplicate(home);
  app.startNew();
  await late;
  expect(app.conversations.current).toBeNull();
});

test("a hit on another branch shows that branch; one on the shown branch changes none", async () => {
  fake.stored = [question, stored];
  await app.open(1, 3);
  expect(fake.branches).toEqual([]);
  expect(app.conversations.reveal).toEqual({ message: 3, found: true });
  const hidden = message(9, { text: "old", parent: 2, siblings: [9, 3] });
  fake.onBranch = () => (fake.stored = [question, hidden]);
  await app.open(1, 9);
  expect(fake.branches).toEqual([["choose", 9]]);
  expect(app.conversations.messages).toEqual([question, hidden]);
  expect(app.conversations.reveal).toEqual({ message: 9, found: true });
});

test("a missing hit is reported, without waiting", async () => {
  fake.stored = [question];
  fake.refuse = new BackendError("not_found", "this message is gone");
  await app.open(1, 9);
  expect(app.conversations.messages).toEqual([question]);
  expect(app.conversations.reveal).toBeNull();
  expect(app.toasts.list).toHaveLength(1);
});

test("dropping the oldest messages is offered only for the last question and reply", async () => {
  const tooLong = new BackendError("prompt_too_long", "the prompt is too long");
  const second = message(4, { role: "user", text: "And?", parent: 3 });
  app.conversations.current = 1;
  app.conversations.messages = [question, stored, second, message(5, { parent: 4 })];
  const offered = async (ask: () => Promise<void>) => {
    const asked = ask();
    fake.settle?.reject(tooLong);
    await asked;
    return app.reply.tooLong !== null;
  };
  expect(await offered(() => app.reply.sendInstead(2, textOnly("Who?")))).toBe(false);
  expect(await offered(() => app.reply.sendInstead(4, textOnly("Who?")))).toBe(true);
  expect(await offered(() => app.reply.regenerate(3))).toBe(false);
  expect(await offered(() => app.reply.regenerate(5))).toBe(true);
  expect(await offered(() => app.reply.continue(5))).toBe(false);
});

test("an unsaved reply stays on the page and is looked for until it is stored", async () => {
  vi.useFakeTimers();
  const unstored = { ...stored, unstored: "This reply could not be stored: the disk is full." };
  const asked = app.reply.send(textOnly("Hello"), () => undefined);
  fake.begin();
  fake.stored = [question, unstored];
  fake.settle?.resolve({ conversation: home, reply: unstored });
  await asked;
  expect(app.conversations.messages).toEqual([question, unstored]);
  await vi.advanceTimersByTimeAsync(5000);
  expect(app.conversations.messages).toEqual([question, unstored]);
  fake.stored = [question, stored];
  await vi.advanceTimersByTimeAsync(5000);
  expect(app.conversations.messages).toEqual([question, stored]);
  expect(vi.getTimerCount()).toBe(0);
});

test("if a conversation outgrew the context the oldest messages are dropped and the question is sent again", async () => {
  const tooLong = new BackendError("prompt_too_long", "the prompt is too long");
  app.conversations.current = 1;
  app.conversations.messages = [question, stored];
  const accepted = vi.fn();
  const asked = app.reply.send(textOnly("More"), accepted);
  fake.settle?.reject(tooLong);
  await asked;
  expect(app.reply.tooLong).toMatchObject({ conversation: 1, next: textOnly("More") });
  const again = app.reply.makeRoom("oldest");
  await vi.waitFor(() => expect(app.reply.active).toBe(true));
  expect(fake.leftOut).toEqual([[1, textOnly("More")]]);
  expect(app.conversations.contextStart).toBe(7);
  expect([app.reply.problem, app.reply.tooLong]).toEqual([null, null]);
  fake.begin();
  expect(accepted).toHaveBeenCalledOnce();
  fake.settle?.resolve({ conversation: { ...home, seen_from: 7 }, reply: stored });
  await again;
  await app.conversations.clearContextStart();
  expect(app.conversations.contextStart).toBeNull();
});

test.each([
  ["the message that is sent", () => app.reply.send(textOnly("More"), () => undefined), null],
  ["the last question", () => app.reply.regenerate(3), 2],
] as const)(
  "the context can be started at %s, and the question is sent again",
  async (_, ask, start) => {
    app.conversations.current = 1;
    app.conversations.update(home);
    app.conversations.messages = [question, stored];
    const asked = ask();
    fake.settle?.reject(new BackendError("prompt_too_long", "the prompt is too long"));
    await asked;
    const again = app.reply.makeRoom("all");
    await vi.waitFor(() => expect(app.reply.active).toBe(true));
    expect(fake.startedAt).toEqual([start]);
    fake.settle?.resolve({ conversation: home, reply: stored });
    await again;
  },
);

test("a refusal for length stays until its context or the model changes", async () => {
  app.conversations.current = 1;
  app.conversations.update(home);
  app.conversations.messages = [question, stored];
  const refuse = async () => {
    const asked = app.reply.send(textOnly("More"), () => undefined);
    const size = { tokens: 8260, context: 8192 };
    fake.settle?.reject({ code: "prompt_too_long", message: "too long", prompt: size });
    await asked;
    expect(app.reply.problem).toBe("This conversation no longer fits: 8,260 of 8,192 tokens.");
  };
  await refuse();
  await app.conversations.setContextStart(2);
  expect(app.reply.problem).toBeNull();
  await refuse();
  app.conversations.messages = [question];
  expect(app.reply.problem).toBeNull();
  await refuse();
  app.reply.recount(null);
  expect(app.reply.problem).toBeNull();
});

test("the error of a remote server goes with its model, and stays while the model does", async () => {
  app.reply.recount("gpu");
  const asked = app.reply.send(textOnly("More"), () => undefined);
  fake.settle?.reject(new BackendError("remote", "Nothing listens at gpu:8000"));
  await asked;
  app.reply.recount("gpu");
  expect(app.reply.problem).toContain("Nothing listens");
  app.reply.recount("starter");
  expect(app.reply.problem).toBeNull();
});

test("a question is not sent again if another conversation was opened meanwhile", async () => {
  app.conversations.current = 1;
  const asked = app.reply.send(textOnly("More"), () => undefined);
  fake.settle?.reject(new BackendError("prompt_too_long", "the prompt is too long"));
  await asked;
  fake.settle = undefined;
  const again = app.reply.makeRoom("oldest");
  app.startNew();
  await again;
  expect(fake.leftOut).toHaveLength(1);
  expect(app.conversations.list[0]?.seen_from).toBe(7);
  expect(fake.settle).toBeUndefined();
});

test("for a message too long by itself, dropping others is not offered", async () => {
  const tooLong = new BackendError("prompt_too_long", "the prompt is too long");
  const first = app.reply.send(textOnly("A long one"), () => undefined);
  fake.settle?.reject(tooLong);
  await first;
  expect([app.reply.problem, app.reply.tooLong]).toEqual(["the prompt is too long", null]);
  app.conversations.current = 1;
  const later = app.reply.send(textOnly("A long one"), () => undefined);
  fake.settle?.reject(tooLong);
  await later;
  fake.refuse = new BackendError("prompt_too_long", "This message alone is too long: 4020 tokens.");
  await app.reply.makeRoom("oldest");
  expect(app.reply.problem).toContain("alone");
  expect(app.reply.tooLong).toBeNull();
});

test("a refused regeneration keeps the old reply", async () => {
  app.conversations.current = 1;
  app.conversations.messages = [question, message(9, { text: "old" })];
  const asked = app.reply.regenerate(9);
  fake.settle?.reject(new BackendError("busy", "a reply is under way"));
  await asked;
  expect(app.conversations.messages.at(-1)?.text).toBe("old");
});

test("a reply under way is found again after a reload", async () => {
  void app.reply.send(textOnly("Hello"), () => undefined);
  fake.begin();
  app.startNew();
  expect(app.conversations.messages).toEqual([]);
  // The store may not hold the reply yet.
  fake.stored = [question];
  await app.open(1);
  fake.emit({ type: "round", round: threeRounds[0] ?? expect.fail() });
  expect(app.conversations.messages).toHaveLength(2);
  expect(app.inspectedTrace).toBe(app.reply.trace);
});

test("a reply of another conversation does not appear in the open one", async () => {
  const asked = app.reply.send(textOnly("Hello"), () => undefined);
  fake.begin();
  app.startNew();
  fake.settle?.resolve({ conversation: home, reply: stored });
  await asked;
  expect(app.conversations.messages).toEqual([]);
  expect(app.conversations.current).toBeNull();
});

test("only a reply under way can be stopped", async () => {
  await app.reply.stop();
  expect(fake.stops).toBe(0);
  void app.reply.send(textOnly("Hello"), () => undefined);
  await app.reply.stop();
  expect(fake.stops).toBe(1);
});

test("several changes of settings are saved once, a choice at once", async () => {
  await app.settings.load();
  vi.useFakeTimers();
  app.settings.change({ max_tokens: 5 });
  app.settings.change({ sampling: { ...app.settings.values.sampling, temperature: 0 } });
  expect(fake.saved).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(1000);
  expect(fake.saved).toHaveLength(1);
  expect(fake.saved[0]).toMatchObject({ max_tokens: 5, sampling: { temperature: 0 } });
  await app.settings.choose({ learn_from_earlier: true });
  expect(fake.saved[1]?.learn_from_earlier).toBe(true);
});

test("a draft is chosen only for the loaded target, and can be automatic again", async () => {
  await app.settings.load();
  app.engine.status = { ...app.engine.status, target: STARTER };
  await app.settings.chooseDraft("/models/other.gguf", "none");
  await app.chooseDraft("ngram");
  expect(fake.saved.at(-1)?.drafts).toEqual({ "/models/other.gguf": "none", starter: "ngram" });
  await app.chooseDraft(null);
  expect(fake.saved.at(-1)?.drafts).toEqual({ "/models/other.gguf": "none" });
});

test("a refused choice is reverted, with the reason", async () => {
  await app.settings.load();
  fake.refuse = new BackendError("bad_setting", "the model is gone: choose another.");
  app.settings.change({ max_tokens: 6 });
  await app.settings.choose({ target: "/gone.gguf" });
  expect(app.settings.values).toMatchObject({ target: defaults.target, max_tokens: 6 });
  expect(app.toasts.list[0]?.text).toContain("the model is gone");
});

test("settings are never saved before they are loaded, which would erase them", async () => {
  vi.useFakeTimers();
  app.settings.change({ max_tokens: 5 });
  await vi.advanceTimersByTimeAsync(1000);
  expect(fake.saved).toHaveLength(0);
});

test("an error of the settings is kept until a change is accepted", async () => {
  await app.settings.load();
  fake.refuse = new BackendError("bad_setting", "top-p: expected at most 1, found 2.");
  await app.settings.choose({ max_tokens: 3 });
  expect(app.settings.problem).toContain("top-p");
  fake.refuse = null;
  await app.settings.choose({ max_tokens: 4 });
  expect(app.settings.problem).toBeNull();
});

test("changes of the shell after a reset are not undone with it", async () => {
  await app.settings.load();
  app.settings.change({ max_tokens: 9 });
  app.settings.reset(null);
  expect(app.settings.undoReset).not.toBeNull();
  const remote_servers = [{ name: "gpu", address: "http://gpu:8000/v1", models: [] }];
  app.settings.takeModels({ ...app.settings.values, remote_servers });
  expect(app.settings.undoReset).toBeNull();
  expect(app.settings.values.remote_servers).toEqual(remote_servers);
});

test("set-ups of a removed model do not return", async () => {
  await app.settings.load();
  app.settings.change({ model_presets: { "/gone.gguf": "precise" } });
  app.settings.takeModels(defaults);
  expect(app.settings.values.model_presets).toEqual(defaults.model_presets);
});

test("removing a model saves other changes first and keeps the remaining drafts", async () => {
  const order: string[] = [];
  Object.assign(fake.backend, {
    saveSettings: (settings: Settings) => {
      order.push("save");
      return Promise.resolve(settings);
    },
    removeModel: () => {
      order.push("remove");
      return Promise.resolve();
    },
  });
  await app.settings.load();
  app.settings.change({ drafts: { starter: "/models/mine.gguf" } });
  expect(await app.removeModel("/models/mine.gguf")).toBeNull();
  expect(order).toEqual(["save", "remove"]);
  expect(app.settings.values.drafts).toEqual({});
});
