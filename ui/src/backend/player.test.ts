import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ArenaEvent } from "../bindings/ArenaEvent";
import type { ArenaRequest } from "../bindings/ArenaRequest";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { Message } from "../bindings/Message";
import type { Reply } from "../bindings/Reply";
import type { ReplyEvent } from "../bindings/ReplyEvent";
import { emitted } from "../trace/round";
import { textOf } from "../trace/text";
import { player } from "./player";
import { textOnly } from "../attachments/textOnly";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function ready(options = "") {
  const replay = player(new URLSearchParams(options));
  await vi.advanceTimersByTimeAsync(1000);
  return replay;
}

test("a reply streams a round at a time and is stored as it streamed", async () => {
  const replay = await ready();
  const events: ReplyEvent[] = [];
  const sent = replay.send(null, textOnly("Tell me a story"), (event) => events.push(event));
  await vi.advanceTimersByTimeAsync(500);
  const early = events.filter(({ type }) => type === "round").length;
  await vi.advanceTimersByTimeAsync(60_000);
  const { reply } = await sent;
  const rounds = events.flatMap((event) => (event.type === "round" ? [event.round] : []));
  expect(events[0]?.type).toBe("started");
  expect(early).toBeGreaterThan(0);
  expect(early).toBeLessThan(rounds.length);
  expect(reply.text).toBe(textOf(rounds));
  expect(await replay.trace(reply.id)).toEqual(rounds);
});

test("stopping keeps the text so far", async () => {
  const replay = await ready();
  const sent = replay.send(null, textOnly("Tell me a story"), () => undefined);
  await vi.advanceTimersByTimeAsync(800);
  await replay.stop();
  await vi.advanceTimersByTimeAsync(1000);
  const { reply } = await sent;
  expect(reply.finish).toBe("cancelled");
  expect(reply.text).not.toBe("");
});

test("a second question is refused while a reply is under way", async () => {
  const replay = await ready();
  void replay.send(null, textOnly("Tell me a story"), () => undefined);
  await expect(replay.send(null, textOnly("And another"), () => undefined)).rejects.toMatchObject({
    code: "busy",
  });
});

test("with drafting off it decodes plainly and reports so", async () => {
  const replay = await ready();
  const settings = await replay.settings();
  const off = { ...settings.speculation, length: { type: "off" as const } };
  await replay.saveSettings({ ...settings, speculation: off });
  let status: EngineStatus | undefined;
  await replay.watchEngine((now) => (status = now));
  expect(status?.why).toMatchObject({ state: "off", off: { kind: "settings" } });
  const sent = replay.send(null, textOnly("Tell me a story"), () => undefined);
  await vi.advanceTimersByTimeAsync(120_000);
  const rounds = await replay.trace((await sent).reply.id);
  expect(rounds.every(({ drafted }) => drafted.length === 0)).toBe(true);
});

test("a draft takes effect from the next reply", async () => {
  const replay = await ready();
  await replay.saveSettings({ ...(await replay.settings()), drafts: { starter: "none" } });
  const sent = replay.send(null, textOnly("Tell me a story"), () => undefined);
  await vi.advanceTimersByTimeAsync(120_000);
  const rounds = await replay.trace((await sent).reply.id);
  expect(rounds.every(({ drafted }) => drafted.length === 0)).toBe(true);
});

test("a failed engine reports its error and refuses questions", async () => {
  const replay = await ready("engine=failed");
  let status: EngineStatus | undefined;
  await replay.watchEngine((now) => (status = now));
  expect(status?.phase).toBe("failed");
  await expect(replay.send(null, textOnly("Hello"), () => undefined)).rejects.toMatchObject({
    code: "no_target",
  });
});

test("an arena runs in alternating order, is stored, and can be deleted", async () => {
  const replay = await ready("speed=1");
  const { speculation } = await replay.settings();
  const setup = { draft: "starter-draft", speculation, mode: "reproducible" as const };
  const events: ArenaEvent[] = [];
  const request: ArenaRequest = {
    prompt: "Tell me a story",
    setups: [setup, { ...setup, draft: "none" }],
    pairs: 2,
    max_tokens: 64,
  };
  const running = replay.runArena(request, (event) => events.push(event));
  await vi.advanceTimersByTimeAsync(60_000);
  const arena = await running;
  const order = events.flatMap((event) => (event.type === "run" ? [event.setup] : []));
  expect(order).toEqual([0, 1, 1, 0]);
  expect(arena.first_difference).toBeNull();
  expect(await replay.arenas()).toEqual([arena]);
  await replay.deleteArena(arena.id);
  expect(await replay.arenas()).toEqual([]);
});

test("an arena and a check can be stopped, and keep the engine busy until then", async () => {
  const replay = await ready();
  const { speculation } = await replay.settings();
  const setup = { draft: "starter-draft", speculation, mode: "fastest" as const };
  const request: ArenaRequest = { prompt: "x", setups: [setup, setup], pairs: 1, max_tokens: 64 };
  const stopped = { code: "cancelled" };
  const running = expect(replay.runArena(request, () => undefined)).rejects.toMatchObject(stopped);
  await expect(replay.send(null, textOnly("And?"), () => undefined)).rejects.toMatchObject({
    code: "busy",
  });
  await replay.stop();
  await vi.advanceTimersByTimeAsync(5000);
  await running;
  const [first] = await replay.conversations();
  const reply = (await replay.messages(first?.id ?? 0)).at(-1)?.id ?? 0;
  const checking = expect(replay.checkReply(reply, () => undefined)).rejects.toMatchObject(stopped);
  await vi.advanceTimersByTimeAsync(100);
  await replay.stop();
  await vi.advanceTimersByTimeAsync(5000);
  await checking;
});

test("a reply without a trace cannot be checked", async () => {
  const replay = await ready();
  const [first] = await replay.conversations();
  const reply = (await replay.messages(first?.id ?? 0)).at(-1)?.id ?? 0;
  expect((await replay.traceStorage()).replies).toBe(4);
  expect(await replay.deleteTraces(null)).toEqual({ bytes: 0, replies: 0 });
  await expect(replay.checkReply(reply, () => undefined)).rejects.toMatchObject({
    code: "not_found",
  });
  await replay.saveSettings({ ...(await replay.settings()), keep_traces: false });
  const sent = replay.send(null, textOnly("Tell me a story"), () => undefined);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await replay.trace((await sent).reply.id)).toEqual([]);
});

test("a deleted conversation is restored unchanged", async () => {
  const replay = await ready();
  const before = await replay.conversations();
  const first = before[0]?.id ?? 0;
  await replay.delete(first);
  expect(await replay.conversations()).toHaveLength(before.length - 1);
  await replay.restore(first);
  expect(await replay.conversations()).toEqual(before);
});

test("a search marks hits", async () => {
  const replay = await ready();
  const hits = await replay.search("LANTERN");
  expect(hits.length).toBeGreaterThan(0);
  expect(hits[0]?.excerpt).toContain("\u0002lantern\u0003");
});

test("a synthetic reply streams at its rate, after the rounds that come at once, until it is stopped", async () => {
  const replay = await ready("rate=2000&rounds=300");
  let tokens = 0;
  let rounds = 0;
  const sent = replay.send(null, textOnly("go"), (event) => {
    if (event.type !== "round") return;
    rounds += 1;
    if (rounds > 300) tokens += emitted(event.round);
  });
  expect(rounds).toBe(300);
  await vi.advanceTimersByTimeAsync(1000);
  expect(Math.abs(tokens - 2000)).toBeLessThan(60);
  await replay.stop();
  await vi.advanceTimersByTimeAsync(100);
  const { reply } = await sent;
  expect(reply.finish).toBe("cancelled");
  expect((await replay.trace(reply.id)).length).toBe(rounds);
});

/** Sends a question in the newest conversation, or continues there, and waits for the reply. */
async function played(reply: Promise<Reply>): Promise<Message> {
  await vi.advanceTimersByTimeAsync(120_000);
  return (await reply).reply;
}

const nothing = () => undefined;

test("a conversation is a tree with one shown branch, and a search covers all branches", async () => {
  const replay = await ready();
  const first = await played(replay.send(null, textOnly("Tell me a story"), nothing));
  const { conversation } = first;
  const shown = async () => (await replay.messages(conversation)).map(({ id }) => id);
  const question = (await shown())[0] ?? expect.fail();
  const second = await played(replay.regenerate(first.id, nothing));
  expect(second).toMatchObject({ parent: question, siblings: [first.id, second.id] });
  expect(await shown()).toEqual([question, second.id]);
  const third = await played(replay.sendInstead(question, textOnly("Count to zebra"), nothing));
  const [changed] = await replay.messages(conversation);
  expect(changed).toMatchObject({ text: "Count to zebra", parent: null });
  expect(changed?.siblings).toEqual([question, changed?.id]);
  expect(await shown()).toEqual([changed?.id, third.id]);
  await replay.chooseBranch(question);
  expect(await shown(), "the newest of its branches").toEqual([question, second.id]);
  await replay.chooseBranch(first.id);
  await replay.chooseBranch(question);
  expect(await shown(), "shown already").toEqual([question, first.id]);
  expect((await replay.search("zebra"))[0]?.message).toBe(changed?.id);
  const answer = await played(replay.regenerate(question, nothing));
  expect(answer, "a question is answered").toMatchObject({ parent: question });
  await expect(replay.regenerate(-1, nothing)).rejects.toMatchObject({ code: "not_found" });
  await expect(replay.sendInstead(question, textOnly(" "), nothing)).rejects.toMatchObject({
    code: "empty_prompt",
  });
});

test("a deleted message takes later ones with it, keeps its siblings, and can be restored", async () => {
  const replay = await ready();
  const first = await played(replay.send(null, textOnly("Tell me a story"), nothing));
  const shown = async () => (await replay.messages(first.conversation)).map(({ id }) => id);
  const question = (await shown())[0] ?? expect.fail();
  const second = await played(replay.regenerate(first.id, nothing));
  await played(replay.send(first.conversation, textOnly("And?"), nothing));
  const all = await shown();
  await replay.deleteMessage(second.id);
  expect(await shown()).toEqual([question, first.id]);
  expect((await replay.messages(first.conversation))[1]?.siblings).toEqual([first.id]);
  await replay.deleteMessage(question);
  expect(await shown()).toEqual([]);
  await expect(replay.chooseBranch(first.id)).rejects.toMatchObject({ code: "not_found" });
  await expect(replay.restoreMessage(second.id)).rejects.toMatchObject({ code: "not_found" });
  await replay.restoreMessage(question);
  expect(await shown()).toEqual([question, first.id]);
  await replay.restoreMessage(second.id);
  expect(await shown()).toEqual(all);
});

test("a stopped reply is continued to its original text", async () => {
  const replay = await ready();
  const whole = await played(replay.send(null, textOnly("Tell me a story"), nothing));
  const sent = replay.send(null, textOnly("Tell me a story"), nothing);
  await vi.advanceTimersByTimeAsync(800);
  await replay.stop();
  const cut = await played(sent);
  const more = await played(replay.continueReply(cut.id, nothing));
  expect(more).toMatchObject({ parent: cut.id, finish: whole.finish });
  expect(cut.text + more.text).toBe(whole.text);
  expect((await replay.trace(more.id))[0]?.index).toBe(0);
  const again = await played(replay.continueReply(more.id, nothing));
  expect(again.id, "nothing is left to say").toBe(more.id);
  expect((await replay.messages(cut.conversation)).at(-1)?.id).toBe(more.id);
});

test("branches do not change while a reply is written", async () => {
  const replay = await ready();
  const first = await played(replay.send(null, textOnly("Tell me a story"), nothing));
  void replay.regenerate(first.id, nothing);
  const busy = { code: "busy" };
  await expect(replay.chooseBranch(first.id)).rejects.toMatchObject(busy);
  await expect(replay.deleteMessage(first.id)).rejects.toMatchObject(busy);
  await expect(replay.continueReply(first.id, nothing)).rejects.toMatchObject(busy);
});

test("a conversation can have any requested length", async () => {
  const replay = await ready("messages=40");
  const long = (await replay.conversations()).find(({ title }) => title === "A long conversation");
  const messages = await replay.messages(long?.id ?? 0);
  expect(messages).toHaveLength(40);
  const reply = messages.at(-1);
  expect(reply?.text).toBe(textOf(await replay.trace(reply?.id ?? 0)));
});

test("a trace from the page's own origin is opened, or refused with a message", async () => {
  const fetching = vi.fn((address: string) =>
    Promise.resolve(new Response("{}", { status: address.includes("gone") ? 404 : 200 })),
  );
  vi.stubGlobal("fetch", fetching);
  vi.stubGlobal(
    "File",
    class {
      constructor(
        readonly parts: Blob[],
        readonly name: string,
      ) {}
    },
  );
  expect(await (await ready()).traceToOpen()).toBeNull();
  const file = await (await ready("trace=/traces/fox.jsonl")).traceToOpen();
  expect(file?.name).toBe("fox.jsonl");
  await expect((await ready("trace=/gone.jsonl")).traceToOpen()).rejects.toThrow(
    "/gone.jsonl could not be fetched: the answer was 404",
  );
  vi.unstubAllGlobals();
});
