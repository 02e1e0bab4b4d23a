import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { extra, round, threeRounds, treeRound } from "../trace/fixtures";
import { statisticsOf } from "../trace/statistics";
import { textOf } from "../trace/text";
import { Playback, SPEEDS } from "./playback.svelte";

const FRAME_MS = 16;
/** Rounds that end at 100, 110, 120 and 150 ms. */
const rounds = [...threeRounds, { ...treeRound, index: 3, at_ms: 150 }];

let playback: Playback;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["requestAnimationFrame", "cancelAnimationFrame", "performance"] });
  playback = new Playback();
});
afterEach(() => {
  playback.close();
  vi.useRealTimers();
});

function frames(count = 2) {
  for (let i = 0; i < count; i += 1) vi.advanceTimersToNextFrame();
}

const shown = () => playback.trace.rounds.map(({ index }) => index);
const long = (length: number) =>
  Array.from({ length }, (_, index) => round(index, { extra: extra(" e", "plain") }));

test.each([0, 99.9, 100, 105, 110, 119, 120, 149, 150])(
  "at %d ms the rounds shown are those that had ended, with their text and numbers",
  (moment) => {
    playback.open(1, rounds, false);
    playback.seek(150);
    frames();
    playback.seek(moment);
    frames();
    const ended = rounds.filter(({ at_ms }) => at_ms <= moment);
    expect(playback.trace.rounds).toEqual(ended);
    expect(playback.trace.length).toBe(ended.length);
    expect(textOf(playback.trace.rounds)).toBe(textOf(ended));
    expect(playback.trace.statistics).toEqual(statisticsOf(ended));
  },
);

test("after any seek the rounds shown are those that had ended", () => {
  const many = long(500);
  playback.open(1, many, false);
  let moment = 0;
  for (let i = 0; i < 300; i += 1) {
    moment = (moment * 7919 + 104_729) % (playback.clock.end + 50);
    playback.seek(moment);
    frames();
    expect(playback.trace.rounds).toEqual(many.filter(({ at_ms }) => at_ms <= moment));
  }
});

test("a replay begins before the first round and plays to the end, where it is paused", () => {
  playback.open(1, rounds, true);
  playback.speed = 1;
  frames(1);
  expect(shown()).toEqual([]);
  expect(playback.playing).toBe(true);
  frames(20);
  expect(shown()).toEqual([0, 1, 2, 3]);
  expect(playback.position).toBe(150);
  expect(playback.playing).toBe(false);
});

test("with reduced motion it begins paused", () => {
  playback.open(1, rounds, false);
  frames(30);
  expect(playback.position).toBe(0);
  playback.play();
  playback.speed = 1;
  frames(30);
  expect(playback.position).toBe(150);
});

test.each(SPEEDS.filter((speed) => speed !== null))("at %dx time passes at that speed", (speed) => {
  playback.open(1, long(2000), true);
  playback.speed = speed;
  frames(1);
  frames(10);
  expect(playback.position).toBeCloseTo(10 * FRAME_MS * speed);
});

test.each([
  [60_000, 1],
  [4000, 1],
  [3999, 0.5],
  [500, 0.1],
  [139, 0.02],
])("a reply of %d ms begins at %dx, to last a while", (ms, speed) => {
  playback.open(1, [round(0, { at_ms: ms })], false);
  expect(playback.speed).toBe(speed);
});

test("full speed is a round per frame, or as many as needed to end within seconds", () => {
  playback.open(1, rounds, true);
  playback.speed = null;
  frames(2);
  expect(playback.count).toBe(2);
  playback.open(1, long(60_000), true);
  playback.speed = null;
  frames(10);
  expect(playback.count).toBe(1000);
});

test("play at the end starts again", () => {
  playback.open(1, rounds, false);
  playback.toEnd();
  frames();
  expect(shown()).toHaveLength(4);
  playback.play();
  frames(2);
  expect(playback.playing).toBe(true);
  expect(shown()).toEqual([]);
});

test("a paused replay keeps its position, and continues from there", () => {
  playback.open(1, long(1000), true);
  frames(10);
  playback.toggle();
  const { position } = playback;
  frames(50);
  expect(playback.position).toBe(position);
  playback.toggle();
  frames(2);
  expect(playback.position).toBeCloseTo(position + FRAME_MS);
});

test("a page without frames for an hour continues where it was", () => {
  const drawn: FrameRequestCallback[] = [];
  vi.stubGlobal("requestAnimationFrame", (draw: FrameRequestCallback) => drawn.push(draw));
  const frame = (now: number) => drawn.splice(0).forEach((draw) => draw(now));
  playback.open(1, long(1000), true);
  frame(0);
  frame(FRAME_MS);
  expect(playback.position).toBe(FRAME_MS);
  frame(3_600_000);
  expect(playback.position).toBeLessThan(300);
  vi.unstubAllGlobals();
});

test("a step is a round, forwards and back, and pauses", () => {
  playback.open(1, rounds, true);
  const counts = [];
  for (const step of ["next", "next", "previous", "next", "next", "next", "next"] as const) {
    playback[step]();
    counts.push(playback.count);
  }
  expect(counts).toEqual([1, 2, 1, 2, 3, 4, 4]);
  expect(playback.playing).toBe(false);
  playback.toStart();
  playback.previous();
  expect(playback.count).toBe(0);
});

test("in stages a round is drafted, then judged, then emitted, and back the same way", () => {
  playback.open(1, rounds, false);
  playback.changeStaged(true);
  const seen = [];
  for (let i = 0; i < 5; i += 1) {
    playback.next();
    seen.push([playback.count, playback.stage]);
  }
  expect(seen).toEqual([
    [0, "drafted"],
    [0, "judged"],
    [1, "emitted"],
    [1, "drafted"],
    [1, "judged"],
  ]);
  const back = [];
  for (let i = 0; i < 6; i += 1) {
    playback.previous();
    back.push([playback.count, playback.stage]);
  }
  expect(back.reverse()).toEqual([[0, "emitted"], [0, "emitted"], ...seen.slice(0, -1)]);
});

test("a round without a draft has one stage", () => {
  playback.open(1, rounds, false);
  playback.changeStaged(true);
  playback.seek(110);
  playback.next();
  expect([playback.count, playback.stage]).toEqual([3, "emitted"]);
});

test("stages play at an even pace to the end", () => {
  playback.open(1, rounds, true);
  playback.changeStaged(true);
  frames(Math.ceil(800 / FRAME_MS));
  expect([playback.count, playback.stage]).toEqual([0, "drafted"]);
  frames(Math.ceil((11 * 716) / FRAME_MS));
  expect(playback.count).toBe(4);
  expect(playback.playing).toBe(false);
});

test("stepping back in a trace of 100,000 rounds is done in slices, and shows nothing in between", () => {
  const many = long(100_000);
  playback.open(1, many, false);
  playback.toEnd();
  frames(40);
  expect(playback.trace.length).toBe(100_000);
  playback.seek(playback.clock.momentOf(60_000));
  const lengths = [];
  for (let i = 0; i < 20; i += 1) {
    frames(1);
    lengths.push(playback.trace.length);
  }
  expect(new Set(lengths)).toEqual(new Set([100_000, 60_000]));
  expect(lengths.at(-1)).toBe(60_000);
});

test("a second step back before the first is done reaches its goal", () => {
  playback.open(1, long(50_000), false);
  playback.toEnd();
  frames(20);
  for (let count = 49_000; count > 20_000; count -= 1000) {
    playback.seek(playback.clock.momentOf(count));
    frames(1);
  }
  frames(10);
  expect(playback.trace.length).toBe(21_000);
});

test("a closed replay requests no more frames", () => {
  playback.open(1, rounds, true);
  playback.close();
  expect(vi.getTimerCount()).toBe(0);
  expect(playback.message).toBeNull();
});

test.each(["toStart", "toEnd"] as const)("seeking to an end pauses (%s)", (way) => {
  playback.open(1, long(1000), true);
  frames(5);
  playback[way]();
  frames(5);
  expect([0, playback.clock.end]).toContain(playback.position);
  expect(playback.playing).toBe(false);
});

test("opening another reply drops the first", () => {
  playback.open(1, rounds, false);
  playback.toEnd();
  frames();
  playback.open(2, long(2), false);
  expect(playback.message).toBe(2);
  expect(shown()).toEqual([]);
});
