import { beforeEach, expect, test, vi } from "vitest";
import type { CheckProgress } from "../bindings/CheckProgress";
import type { ReplyCheck } from "../bindings/ReplyCheck";
import { BackendError, type Backend } from "../backend/backend";
import { threeRounds } from "../trace/fixtures";
import { App } from "./app.svelte";
import { textOnly } from "../attachments/textOnly";

const identical: ReplyCheck = { kind: "text", tokens: 5, seed: 7, difference: null };
const different: ReplyCheck = {
  ...identical,
  difference: { position: 3, with: null, without: null, gap: null, near_tie: false },
};

let report: (progress: CheckProgress) => void;
let settle: { resolve: (check: ReplyCheck) => void; reject: (error: unknown) => void };
let asked: number[];
const stop = vi.fn(() => Promise.resolve());
let app: App;

beforeEach(() => {
  asked = [];
  stop.mockClear();
  app = new App({
    messages: () => Promise.resolve([]),
    unsentFiles: () => Promise.resolve([]),
    trace: () => Promise.resolve([...threeRounds]),
    send: () => new Promise(() => undefined),
    stop,
    checkReply: (message: number, onProgress: typeof report) => {
      asked.push(message);
      report = onProgress;
      return new Promise((resolve, reject) => (settle = { resolve, reject }));
    },
  } as unknown as Backend);
});

test("a check shows its progress and its result", async () => {
  const checked = app.check.start(3);
  expect(app.check.running).toBe(3);
  report({ done: 2, total: 5 });
  expect(app.check.progress).toEqual({ done: 2, total: 5 });
  settle.resolve(identical);
  await checked;
  expect(app.check.of(3)).toEqual({ check: identical });
  expect(app.check.running).toBeNull();
  expect(app.check.progress).toBeNull();
});

test("the first token that differs is highlighted in the reply", async () => {
  const checked = app.check.start(3);
  settle.resolve(different);
  await checked;
  await vi.waitFor(() => expect(app.view.selected).toEqual({ round: 1, slot: 2 }));
  expect(app.view.inspected).toBe(3);
});

test("a difference beyond the trace's end highlights nothing", async () => {
  await app.showToken(3, 99);
  expect(app.view.selected).toBeNull();
});

test("a refused check keeps the shell's reason beside the reply", async () => {
  const checked = app.check.start(3);
  settle.reject(new BackendError("not_found", "the trace was not kept."));
  await checked;
  expect(app.check.of(3)).toEqual({ refusal: "the trace was not kept." });
});

test("one reply is checked at a time, and a second is refused with a reason", async () => {
  const checked = app.check.start(3);
  await app.check.start(4);
  await app.check.start(3);
  expect(asked).toEqual([3]);
  expect(app.check.of(4)).toEqual({
    refusal: "A reply is being checked: stop it or wait until it finishes.",
  });
  settle.resolve(identical);
  await checked;
});

test("nothing is checked while a reply is being written", async () => {
  void app.reply.send(textOnly("Hello"), () => undefined);
  await app.check.start(3);
  expect(asked).toEqual([]);
  expect(app.check.of(3)).toEqual({
    refusal: "A reply is being written: stop it or wait until it finishes.",
  });
});

test("a check can be stopped once, and only while it runs", async () => {
  await app.check.stop();
  expect(stop).not.toHaveBeenCalled();
  const checked = app.check.start(3);
  void app.check.stop();
  void app.check.stop();
  expect(stop).toHaveBeenCalledTimes(1);
  expect(app.check.stopping).toBe(true);
  settle.reject(new BackendError("cancelled", "the check was stopped."));
  await checked;
  expect(app.check.stopping).toBe(false);
  expect(app.check.of(3)).toEqual({ refusal: "the check was stopped." });
});

test("a new check replaces the earlier result", async () => {
  const first = app.check.start(3);
  settle.resolve(identical);
  await first;
  void app.check.start(3);
  expect(app.check.of(3)).toBeUndefined();
});

test("results are kept while the conversation is open, and no longer", async () => {
  const checked = app.check.start(3);
  settle.resolve(identical);
  await checked;
  app.check.retain(new Set([3]));
  expect(app.check.of(3)).toBeDefined();
  await app.open(1);
  expect(app.check.of(3)).toBeUndefined();
});
