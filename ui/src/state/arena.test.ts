import { beforeEach, expect, test, vi } from "vitest";
import type { Arena } from "../bindings/Arena";
import type { ArenaEvent } from "../bindings/ArenaEvent";
import type { ArenaRequest } from "../bindings/ArenaRequest";
import type { DraftOption } from "../bindings/DraftOption";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { Problem } from "../bindings/Problem";
import { defaults } from "../bindings/defaults";
import { arena as finished, drafted, plain, run } from "../arena/fixtures";
import { BackendError, type Backend } from "../backend/backend";
import { App } from "./app.svelte";
import { Contest } from "./contest.svelte";
import { textOnly } from "../attachments/textOnly";

let emit: (event: ArenaEvent) => void;
let settle: { resolve: (arena: Arena) => void; reject: (error: unknown) => void };
let requests: ArenaRequest[];
let files: { name: string; text: string }[];
const stop = vi.fn(() => Promise.resolve());
let backend: Backend;
let app: App;

const UNFIT: Problem = { kind: "other_vocabulary", reason: "the vocabularies differ" };
const draft = (id: string, problem: Problem | null = null): DraftOption => ({
  id,
  label: id,
  detail: null,
  merit: null,
  problem,
});

function offer(...drafts: DraftOption[]) {
  app.engine.status = {
    ...app.engine.status,
    target: { id: "starter", label: "Starter" } as EngineStatus["target"],
    drafts,
    draft: drafts[0]?.id ?? "",
  };
}

/** Starts a contest of two pairs, and waits for the call to the backend. */
async function begun() {
  app.arena.prompt = "Tell me a story.";
  app.arena.pairs = 2;
  const ended = app.arena.start();
  await vi.waitFor(() => expect(requests).toHaveLength(1));
  return { ended };
}

beforeEach(() => {
  vi.useRealTimers();
  stop.mockClear();
  requests = [];
  files = [];
  backend = {
    settings: () => Promise.resolve(defaults),
    saveSettings: (settings: unknown) => Promise.resolve(settings),
    messages: () => Promise.resolve([]),
    unsentFiles: () => Promise.resolve([]),
    send: () => new Promise(() => undefined),
    checkReply: () => new Promise(() => undefined),
    stop,
    arenas: () => Promise.resolve([finished()]),
    deleteArena: () => Promise.resolve(),
    saveFile: (name: string, text: string) => {
      files.push({ name, text });
      return Promise.resolve(`/home/me/Downloads/${name}`);
    },
    runArena: (request: ArenaRequest, onEvent: (event: ArenaEvent) => void) => {
      requests.push(request);
      emit = onEvent;
      return new Promise<Arena>((resolve, reject) => (settle = { resolve, reject }));
    },
  } as unknown as Backend;
  app = new App(backend);
  offer(draft("starter-draft"), draft("ngram"), draft("none"));
});

test("by default the draft in use competes against none", () => {
  expect(app.arena.setups).toEqual([drafted, plain]);
  offer(draft("ngram"), draft("starter-draft"));
  expect(app.arena.setups[0].draft).toBe("ngram");
  app.arena.change(1, { mode: "reproducible" });
  offer(draft("starter-draft"), draft("ngram"));
  expect(app.arena.setups.map(({ draft, mode }) => [draft, mode])).toEqual([
    ["ngram", "fastest"],
    ["none", "reproducible"],
  ]);
});

test("without a draft in use the first usable draft is offered", () => {
  offer(draft("none"), draft("/other.gguf", UNFIT), draft("ngram"));
  expect(app.arena.setups.map(({ draft }) => draft)).toEqual(["ngram", "none"]);
});

test("a contest is requested as in the form, and its result is shown and listed", async () => {
  const { ended } = await begun();
  expect(requests[0]).toEqual({
    prompt: "Tell me a story.",
    setups: [drafted, plain],
    pairs: 2,
    max_tokens: 256,
  });
  expect(app.arena.running).toBe(true);
  emit({ type: "run", pair: 0, setup: 0 });
  emit({ type: "finished", run: run(0, 0, 100) });
  settle.resolve(finished());
  await ended;
  expect(app.arena.running).toBe(false);
  expect(app.arena.contest?.stored).toEqual(finished());
  expect(app.arena.stored.map(({ id }) => id)).toEqual([7]);
});

test("the text and the curve of a running set-up are shown in its own column", async () => {
  vi.useFakeTimers({ toFake: ["requestAnimationFrame"] });
  const contest = new Contest(
    { prompt: "x", setups: [drafted, plain], pairs: 1, max_tokens: 64 },
    ["a", "b"],
    "Starter",
  );
  contest.take({ type: "run", pair: 0, setup: 1 });
  contest.take({ type: "progress", tokens: 2, at_ms: 10, text: "Once <b>" });
  contest.take({ type: "progress", tokens: 3, at_ms: 20, text: " upon" });
  expect(contest.texts).toEqual(["", ""]);
  await vi.advanceTimersByTimeAsync(200);
  expect(contest.texts).toEqual(["", "Once <b> upon"]);
  expect(contest.curve).toEqual([
    [10, 2],
    [20, 3],
  ]);
  contest.take({ type: "finished", run: run(0, 1, 20, 3) });
  expect(contest.curve).toEqual([]);
  contest.take({ type: "run", pair: 1, setup: 1 });
  expect(contest.texts).toEqual(["", ""]);
});

test("a failed contest keeps its measurements, and is not listed", async () => {
  const { ended } = await begun();
  emit({ type: "run", pair: 0, setup: 0 });
  emit({ type: "finished", run: run(0, 0, 100) });
  emit({ type: "run", pair: 0, setup: 1 });
  emit({ type: "finished", run: run(0, 1, 150) });
  emit({ type: "run", pair: 1, setup: 1 });
  emit({ type: "progress", tokens: 3, at_ms: 10, text: "Half" });
  settle.reject(new BackendError("internal", "the computation failed."));
  await ended;
  const contest = app.arena.contest ?? expect.fail();
  expect(contest.stage).toBe("failed");
  expect(contest.problem).toBe("the computation failed.");
  expect(contest.runs).toHaveLength(2);
  expect(contest.texts).toEqual(["", "Half"]);
  expect(contest.verdict).toMatchObject({ winner: 0, ratio: 1.5, pairs: 1 });
  expect(contest.current).toBeNull();
  expect(app.arena.stored).toEqual([]);
});

test("stopping is requested once, and the measurements stay", async () => {
  const { ended } = await begun();
  emit({ type: "run", pair: 0, setup: 0 });
  emit({ type: "finished", run: run(0, 0, 100) });
  await app.arena.stop();
  expect(stop).toHaveBeenCalledTimes(1);
  expect(app.arena.contest?.stopping).toBe(true);
  settle.reject(new BackendError("cancelled", "the arena was stopped."));
  await ended;
  expect(app.arena.contest?.stage).toBe("stopped");
  expect(app.arena.contest?.runs).toHaveLength(1);
  await app.arena.stop();
  expect(stop).toHaveBeenCalledTimes(1);
});

test("a failed stop is reported, and can be repeated", async () => {
  const { ended } = await begun();
  stop.mockRejectedValueOnce(new BackendError("internal", "the shell is gone"));
  await app.arena.stop();
  expect(app.arena.contest?.stopping).toBe(false);
  expect(app.toasts.list[0]?.text).toBe("the shell is gone");
  settle.resolve(finished());
  await ended;
});

test("a refused prompt leaves the form unchanged, with the reason", async () => {
  const { ended } = await begun();
  settle.reject(new BackendError("prompt_too_long", "the prompt is too long: shorten it."));
  await ended;
  expect(app.arena.contest).toBeNull();
  expect(app.arena.problem).toContain("too long");
  expect(app.arena.prompt).toBe("Tell me a story.");
  app.arena.change(0, { mode: "reproducible" });
  expect(app.arena.problem).toBeNull();
});

test("a contest does not start without a model, or while the engine is busy", async () => {
  app.arena.prompt = "x";
  app.engine.status = { ...app.engine.status, target: null };
  await app.arena.start();
  expect(app.arena.problem).toContain("No model is loaded");
  offer(draft("starter-draft"), draft("none"));
  void app.reply.send(textOnly("Hello"), () => undefined);
  await app.arena.start();
  expect(app.arena.problem).toBe("A reply is being written: stop it or wait until it finishes.");
  expect(requests).toEqual([]);
});

test("a second arena does not start beside the first", async () => {
  await begun();
  await app.arena.start();
  await app.arena.again({ ...(requests[0] ?? expect.fail()), pairs: 9 });
  app.arena.open(finished());
  app.arena.showForm();
  expect(requests).toHaveLength(1);
  expect(app.arena.running).toBe(true);
});

test("a missing draft is an obstacle to repeating a contest, and the form shows it", async () => {
  app.arena.open(finished());
  offer(draft("none"));
  await app.arena.again(app.arena.contest?.request ?? expect.fail());
  expect(app.arena.contest).toBeNull();
  expect(app.arena.problem).toContain("starter-draft, is no longer on this computer");
  expect(app.arena.prompt).toBe("Tell me a story.");
  expect(requests).toEqual([]);
});

test("repeating a contest sends the same request", async () => {
  app.arena.open(finished());
  void app.arena.again(app.arena.contest?.request ?? expect.fail());
  await vi.waitFor(() => expect(requests).toHaveLength(1));
  expect(requests[0]).toMatchObject({ prompt: "Tell me a story.", pairs: 2, max_tokens: 256 });
});

test("equal set-ups are distinguished by a letter", () => {
  const setups = [plain, plain].map((setup) => ({ draft: "no draft", setup }));
  expect(Contest.of(finished({ setups }))?.names).toEqual(["no draft (A)", "no draft (B)"]);
});

test("a stored contest without a set-up is refused with a message", () => {
  app.arena.open(finished({ setups: [] }));
  expect(app.arena.contest).toBeNull();
  expect(app.toasts.list[0]?.text).toContain("expected two setups, found 0");
});

test("a deleted arena leaves the list and the screen", async () => {
  await app.arena.load();
  app.arena.open(finished());
  await app.arena.delete(7);
  expect(app.arena.stored).toEqual([]);
  expect(app.arena.contest).toBeNull();
});

test("a contest that cannot be deleted stays, with the reason", async () => {
  await app.arena.load();
  backend.deleteArena = () => Promise.reject(new BackendError("not_found", "it is gone"));
  await app.arena.delete(7);
  expect(app.arena.stored).toHaveLength(1);
  expect(app.toasts.list[0]?.text).toBe("it is gone");
});

test("a contest is exported with its format and version, named after its id", async () => {
  await app.arena.export(finished());
  expect(files[0]?.name).toBe("foretoken-arena-7.json");
  expect(JSON.parse(files[0]?.text ?? "")).toEqual({
    format: "foretoken-arena",
    version: 1,
    ...finished(),
    setups: ["Starter draft", "no draft"].map((label, side) => ({
      label,
      ...finished().setups[side],
    })),
  });
  expect(app.toasts.list[0]?.text).toBe("Saved as /home/me/Downloads/foretoken-arena-7.json");
});

test("opening a conversation leaves the arena, which continues", async () => {
  await begun();
  app.view.arenaOpen = true;
  await app.open(1);
  expect(app.view.arenaOpen).toBe(false);
  expect(app.arena.running).toBe(true);
});
