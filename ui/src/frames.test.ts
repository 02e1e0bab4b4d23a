import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Frames, LONGEST_MS } from "./frames";

const MINUTE_MS = 60_000;

/** Simulated cost of a frame. */
let cost: number;
let frames: Frames;
let hidden: boolean;

/** Frames with a simulated rendering time. */
function made(): Frames {
  return new Frames((rendered) => () => {
    vi.spyOn(performance, "now").mockReturnValueOnce(performance.now() + cost);
    rendered();
  });
}

function hide(isHidden: boolean) {
  hidden = isHidden;
  document.dispatchEvent(new Event("visibilitychange"));
}

/** Requests frames continuously, as a fast reply does; returns their number. */
function counted(forMs: number): number {
  let painted = 0;
  const paint = () => (painted += 1);
  for (let at = 0; at < forMs; at += 4) {
    frames.request(paint);
    vi.advanceTimersByTime(4);
  }
  frames.cancel(paint);
  return painted;
}

beforeEach(() => {
  vi.useFakeTimers();
  hidden = false;
  cost = 0;
  vi.spyOn(document, "hidden", "get").mockImplementation(() => hidden);
  frames = made();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test("all requests are painted in one frame, each once", () => {
  const painted: string[] = [];
  const one = () => painted.push("one");
  const other = () => painted.push("other");
  for (const paint of [one, other, one]) frames.request(paint);
  expect(painted).toEqual([]);
  vi.advanceTimersByTime(20);
  expect(painted).toEqual(["one", "other"]);
});

test("a request made within a frame is painted in the next", () => {
  let painted = 0;
  const paint = () => {
    painted += 1;
    if (painted < 3) frames.request(paint);
  };
  frames.request(paint);
  vi.advanceTimersByTime(16);
  expect(painted).toBe(1);
  vi.advanceTimersByTime(100);
  expect(painted).toBe(3);
});

test("an error in one request does not stop later frames", () => {
  frames.request(() => {
    throw new Error("a paint that fails");
  });
  expect(() => vi.advanceTimersByTime(20)).toThrow("a paint that fails");
  let painted = 0;
  frames.request(() => (painted += 1));
  vi.advanceTimersByTime(20);
  expect(painted).toBe(1);
});

test("without requests there are no frames and no timers", () => {
  frames.request(() => undefined);
  vi.advanceTimersByTime(MINUTE_MS);
  expect(vi.getTimerCount()).toBe(0);
});

test("cheap frames come at the rate of the display", () => {
  cost = 0.2;
  expect(counted(1000)).toBeGreaterThan(55);
});

test.each([3, 6, 10])("frames of %d ms stay within their share of the time", (ms) => {
  cost = ms;
  counted(2000);
  const share = (counted(MINUTE_MS) * ms) / MINUTE_MS;
  expect(share).toBeLessThan(0.066);
  expect(share).toBeGreaterThan(0.042);
});

test("very expensive frames still come four times a second", () => {
  cost = 80;
  counted(2000);
  const perSecond = counted(MINUTE_MS) / 60;
  expect(perSecond).toBeGreaterThan(3.7);
  expect(perSecond).toBeLessThan(1000 / LONGEST_MS + 0.1);
});

test("expensive frames show either the text or the content beside it, the latter half as often", () => {
  cost = 30;
  counted(2000);
  const painted: ("text" | "beside")[] = [];
  const text = () => painted.push("text");
  const beside = () => painted.push("beside");
  let together = 0;
  for (let at = 0; at < MINUTE_MS; at += 4) {
    frames.request(text);
    frames.request(beside, "beside");
    const before = painted.length;
    vi.advanceTimersByTime(4);
    together += Number(painted.length - before > 1);
  }
  expect(together).toBe(0);
  const texts = painted.filter((lane) => lane === "text").length / 60;
  const besides = painted.filter((lane) => lane === "beside").length / 60;
  expect(texts).toBeGreaterThan(3.7);
  expect(besides).toBeGreaterThan(1.8);
  expect(besides).toBeLessThan(2.1);
});

test("cheap frames show both lanes", () => {
  cost = 0.5;
  counted(2000);
  const painted: string[] = [];
  frames.request(() => painted.push("text"));
  frames.request(() => painted.push("beside"), "beside");
  vi.advanceTimersByTime(20);
  expect(painted).toEqual(["text", "beside"]);
});

test("a request after a pause is painted in the display's next frame", () => {
  cost = 15;
  counted(2000);
  vi.advanceTimersByTime(1000);
  let painted = 0;
  frames.request(() => (painted += 1));
  vi.advanceTimersByTime(17);
  expect(painted).toBe(1);
});

test("a hidden page paints nothing and loses nothing", () => {
  hide(true);
  let painted = 0;
  frames.request(() => (painted += 1));
  vi.advanceTimersByTime(MINUTE_MS);
  expect(painted).toBe(0);
  hide(false);
  vi.advanceTimersByTime(20);
  expect(painted).toBe(1);
});

test("a change of the useful interval of events is reported", () => {
  const reported: number[] = [];
  frames.onpace = (intervalMs) => reported.push(intervalMs);
  cost = 10;
  counted(3000);
  expect(reported.length).toBeLessThan(10);
  expect(reported.at(-1)).toBeGreaterThan(120);
  hide(true);
  expect(reported.at(-1)).toBe(1000);
  hide(false);
  expect(reported.at(-1)).toBeLessThan(260);
});
