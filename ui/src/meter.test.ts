import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ReplyEvent } from "./bindings/ReplyEvent";
import { Replay } from "./backend/replay";
import { Meter } from "./meter";
import { round } from "./trace/fixtures";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["requestAnimationFrame", "cancelAnimationFrame"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const rendered = () => new Promise((resolve) => setTimeout(resolve, 5));

test("each frame is counted once, and none after the end", async () => {
  const meter = new Meter();
  meter.start();
  for (let frame = 0; frame < 4; frame += 1) {
    vi.advanceTimersToNextFrame();
    await rendered();
  }
  const { frames, median_ms, p99_ms, worst_ms } = meter.stop();
  expect(frames).toBe(4);
  expect(median_ms).toBeLessThanOrEqual(p99_ms);
  expect(p99_ms).toBeLessThanOrEqual(worst_ms);
  vi.advanceTimersToNextFrame();
  await rendered();
  expect(meter.stop().frames).toBe(4);
});

test("a round's delay ends with the frame after its arrival", async () => {
  const meter = new Meter();
  let arrive: (event: ReplyEvent) => void = () => undefined;
  const backend = new Replay(new URLSearchParams());
  backend.send = (_conversation, _text, onEvent) => {
    arrive = onEvent;
    return new Promise(() => undefined);
  };
  const seen: ReplyEvent[] = [];
  meter.start();
  void meter.watch(backend).send(null, "go", (event) => seen.push(event));
  arrive({ type: "round", round: round(0) });
  arrive({ type: "round", round: round(1) });
  await rendered();
  expect(meter.stop().rounds).toBe(0);
  meter.start();
  arrive({ type: "round", round: round(2) });
  await rendered();
  vi.advanceTimersToNextFrame();
  await rendered();
  const { rounds, delay_median_ms, delay_worst_ms } = meter.stop();
  expect(rounds).toBe(1);
  expect(delay_median_ms).toBeGreaterThan(4);
  expect(delay_worst_ms).toBe(delay_median_ms);
  expect(seen).toHaveLength(3);
});

test("what the meter does not watch is asked of the backend as before", async () => {
  const backend = new Replay(new URLSearchParams());
  const watched = new Meter().watch(backend);
  expect(await watched.conversations()).toEqual(await backend.conversations());
});

test("nothing measured is nothing, not an error", () => {
  expect(new Meter().stop()).toMatchObject({ frames: 0, median_ms: 0, delay_worst_ms: 0 });
});
