import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { ReplyEvent } from "../bindings/ReplyEvent";
import { textOf } from "../trace/text";
import { Replay } from "./replay";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function ready(options = "") {
  const replay = new Replay(new URLSearchParams(options));
  await vi.advanceTimersByTimeAsync(1000);
  return replay;
}

test("a reply streams a round at a time and is stored as it streamed", async () => {
  const replay = await ready();
  const events: ReplyEvent[] = [];
  const sent = replay.send(null, "Tell me a story", (event) => events.push(event));
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

test("stopping keeps what was said", async () => {
  const replay = await ready();
  const sent = replay.send(null, "Tell me a story", () => undefined);
  await vi.advanceTimersByTimeAsync(800);
  await replay.stop();
  await vi.advanceTimersByTimeAsync(1000);
  const { reply } = await sent;
  expect(reply.finish).toBe("cancelled");
  expect(reply.text).not.toBe("");
});

test("a second question is refused while a reply is under way", async () => {
  const replay = await ready();
  void replay.send(null, "Tell me a story", () => undefined);
  await expect(replay.send(null, "And another", () => undefined)).rejects.toMatchObject({
    code: "busy",
  });
});

test("a draft length of 0 decodes plainly and says so", async () => {
  const replay = await ready();
  const settings = await replay.settings();
  const off = { ...settings.speculation, length: { type: "fixed" as const, tokens: 0 } };
  await replay.saveSettings({ ...settings, speculation: off });
  let status: EngineStatus | undefined;
  await replay.watchEngine((now) => (status = now));
  expect(status?.why).toEqual({ state: "off", text: "off: the draft length is 0" });
  const sent = replay.send(null, "Tell me a story", () => undefined);
  await vi.advanceTimersByTimeAsync(120_000);
  const rounds = await replay.trace((await sent).reply.id);
  expect(rounds.every(({ drafted }) => drafted.length === 0)).toBe(true);
});

test("a draft takes effect from the next reply", async () => {
  const replay = await ready();
  await replay.saveSettings({ ...(await replay.settings()), draft: "none" });
  const sent = replay.send(null, "Tell me a story", () => undefined);
  await vi.advanceTimersByTimeAsync(120_000);
  const rounds = await replay.trace((await sent).reply.id);
  expect(rounds.every(({ drafted }) => drafted.length === 0)).toBe(true);
});

test("an engine that failed says so and refuses questions", async () => {
  const replay = await ready("engine=failed");
  let status: EngineStatus | undefined;
  await replay.watchEngine((now) => (status = now));
  expect(status?.phase).toBe("failed");
  await expect(replay.send(null, "Hello", () => undefined)).rejects.toMatchObject({
    code: "no_target",
  });
});

test("a deleted conversation comes back as it was", async () => {
  const replay = await ready();
  const before = await replay.conversations();
  const first = before[0]?.id ?? 0;
  await replay.delete(first);
  expect(await replay.conversations()).toHaveLength(before.length - 1);
  await replay.restore(first);
  expect(await replay.conversations()).toEqual(before);
});

test("a search marks the hit", async () => {
  const replay = await ready();
  const hits = await replay.search("LANTERN");
  expect(hits.length).toBeGreaterThan(0);
  expect(hits[0]?.excerpt).toContain("\u0002lantern\u0003");
});
