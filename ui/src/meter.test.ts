import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ReplyEvent } from "./bindings/ReplyEvent";
import { player } from "./backend/player";
import { Frames } from "./frames";
import { Meter } from "./meter";
import { round } from "./trace/fixtures";
import { textOnly } from "./attachments/textOnly";

let rendered: () => void;
let frames: Frames;
let meter: Meter;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["requestAnimationFrame", "performance"] });
  frames = new Frames((done) => {
    rendered = done;
    return () => undefined;
  });
  meter = new Meter(frames);
});
afterEach(() => {
  vi.useRealTimers();
});

/** A frame with this cost. */
function frame(costMs: number) {
  frames.request(() => undefined);
  vi.advanceTimersToNextFrame();
  vi.advanceTimersByTime(costMs);
  rendered();
}

test("each frame is counted once with its cost, and none after the end", () => {
  meter.start();
  for (const cost of [1, 2, 9]) frame(cost);
  const measured = meter.stop();
  expect(measured).toMatchObject({ frames: 3, median_ms: 2, worst_ms: 9 });
  expect(measured.share).toBeCloseTo(0.012 / measured.seconds);
  expect(measured.frames_per_second).toBeCloseTo(3 / measured.seconds);
  frame(1);
  expect(meter.stop().frames).toBe(3);
});

test("a round's delay ends with the frame that showed it, which began after its arrival", () => {
  let arrive: (event: ReplyEvent) => void = () => undefined;
  const backend = player(new URLSearchParams());
  backend.send = (_conversation, _text, onEvent) => {
    arrive = onEvent;
    return new Promise(() => undefined);
  };
  const seen: ReplyEvent[] = [];
  void meter.watch(backend).send(null, textOnly("go"), (event) => seen.push(event));
  arrive({ type: "round", round: round(0) });
  meter.start();
  frames.request(() => undefined);
  vi.advanceTimersByTime(2);
  arrive({ type: "round", round: round(1) });
  vi.advanceTimersToNextFrame();
  vi.advanceTimersByTime(1);
  arrive({ type: "round", round: round(2) });
  vi.advanceTimersByTime(5);
  rendered();
  const { rounds, delay_worst_ms } = meter.stop();
  expect(rounds).toBe(1);
  expect(delay_worst_ms).toBeGreaterThan(5);
  expect(delay_worst_ms).toBeLessThan(25);
  expect(seen).toHaveLength(3);
});

test("methods that the meter does not watch reach the backend unchanged", async () => {
  const backend = player(new URLSearchParams());
  const watched = meter.watch(backend);
  expect(await watched.conversations()).toEqual(await backend.conversations());
});

test("an empty measurement is zero, not an error", () => {
  expect(meter.stop()).toMatchObject({ frames: 0, median_ms: 0, delay_worst_ms: 0 });
});
