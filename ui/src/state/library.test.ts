import { beforeEach, expect, test } from "vitest";
import type { Advice } from "../bindings/Advice";
import type { Download } from "../bindings/Download";
import type { DraftOption } from "../bindings/DraftOption";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { FileDrag } from "../bindings/FileDrag";
import type { ModelEntry } from "../bindings/ModelEntry";
import type { Probe } from "../bindings/Probe";
import type { Problem } from "../bindings/Problem";
import type { Repository } from "../bindings/Repository";
import { BackendError, type Backend } from "../backend/backend";
import { STARTER, TARGETS } from "../backend/modelFixtures";
import { App } from "./app.svelte";

const GATED = new BackendError("needs_token", "owner/gated is gated: set a token.");
const download = (id: string, change: Partial<Download> = {}): Download => ({
  id,
  repository: id.split(":")[0] ?? "",
  file: id.split(":")[1] ?? null,
  done_bytes: 0,
  total_bytes: 100,
  bytes_per_second: 0,
  state: "running",
  reason: null,
  ...change,
});
const offer = (id: string) => ({ id, repository: id.split(":")[0] ?? "", file: "m.gguf" });
const UNFIT: Problem = { kind: "other_vocabulary", reason: "the vocabularies differ" };
const option = (id: string, problem: Problem | null = null): DraftOption => ({
  id,
  label: id,
  detail: null,
  merit: null,
  problem,
});
const probe = (speedup: number): Probe => ({
  acceptance: 0.5,
  draft_length: 3,
  tokens_per_second: 10,
  plain_tokens_per_second: 5,
  speedup,
  tokens: 64,
});

/** A backend that records requests, and answers when a test lets it. */
class Fake {
  started: string[] = [];
  cancelled = 0;
  added: string[] = [];
  answers: Record<string, (found: Repository | BackendError) => void> = {};
  onDownloads: (downloads: Download[]) => void = () => undefined;
  drag: (drag: FileDrag) => void = () => undefined;
  advice: (advice: Advice) => void = () => undefined;
  endAdvice: () => void = () => undefined;

  readonly backend = {
    settings: () => Promise.resolve({}),
    watchDownloads: (onDownloads: (downloads: Download[]) => void) => {
      this.onDownloads = onDownloads;
      return Promise.resolve();
    },
    watchFileDrags: (drag: (drag: FileDrag) => void) => {
      this.drag = drag;
      return Promise.resolve();
    },
    findRepository: (name: string) =>
      new Promise((resolve, reject) => {
        this.answers[name] = (found) =>
          found instanceof BackendError ? reject(found) : resolve(found);
      }),
    cancelHubRequests: () => {
      this.cancelled += 1;
      return Promise.resolve();
    },
    startDownload: (repository: string) => {
      if (repository === "owner/gated") return Promise.reject(GATED);
      this.started.push(repository);
      return Promise.resolve(download(repository));
    },
    addModel: (path: string) => {
      if (path.endsWith(".txt")) {
        return Promise.reject(new BackendError("bad_model", `${path} is not a model.`));
      }
      this.added.push(path);
      return Promise.resolve({ ...STARTER, id: path });
    },
    advise: (_: number | null, advice: (advice: Advice) => void) => {
      this.advice = advice;
      return new Promise<void>((resolve) => (this.endAdvice = resolve));
    },
  } as unknown as Backend;
}

let fake: Fake;
let app: App;
let status: EngineStatus;

function engine(change: Partial<EngineStatus>) {
  status = { ...status, ...change };
  app.engine.status = status;
}

beforeEach(async () => {
  fake = new Fake();
  app = new App(fake.backend);
  status = app.engine.status;
  engine({ phase: "ready", target: STARTER, targets: TARGETS });
  await app.library.watch();
});

test("a pair is downloaded at once, except installed models and those under way", async () => {
  const here = "unsloth/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf";
  fake.onDownloads([
    download("owner/coming:m.gguf"),
    download("owner/paused:m.gguf", { state: "paused" }),
  ]);
  const ids = [here, "owner/coming:m.gguf", "owner/paused:m.gguf", "owner/new:m.gguf"];
  await app.library.get(...ids.map(offer));
  expect(fake.started).toEqual(["owner/paused", "owner/new"]);
  expect(app.library.asked).toEqual([]);
});

test("a refused download explains why, and the pair's other one starts", async () => {
  await app.library.get(offer("owner/gated:m.gguf"), offer("owner/open:m.gguf"));
  expect(fake.started).toEqual(["owner/open"]);
  expect(app.library.problem).toEqual({
    code: "needs_token",
    message: GATED.message,
    details: null,
  });
});

test("progress includes only downloads under way", () => {
  expect(app.library.progress).toBeNull();
  fake.onDownloads([
    download("a", { done_bytes: 30 }),
    download("b", { state: "queued" }),
    download("c", { state: "paused", done_bytes: 50 }),
    download("d", { state: "done", done_bytes: 100 }),
  ]);
  expect(app.library.progress).toEqual({ done: 30, total: 200 });
});

test("a late answer does not replace that of a later request", async () => {
  const first = app.library.find("owner/first");
  const second = app.library.find(" owner/second ");
  expect(app.library.lookup).toEqual({ state: "asking", name: "owner/second" });
  const found: Repository = {
    id: "owner/second",
    licence: null,
    gated: false,
    files: [],
    vision_bytes: null,
    heads: [],
  };
  fake.answers["owner/second"]?.(found);
  await second;
  fake.answers["owner/first"]?.({ ...found, id: "owner/first" });
  await first;
  expect(app.library.lookup).toEqual({ state: "found", repository: found });
});

test("a request to the hub can be cancelled, and its answer is not shown", async () => {
  const asked = app.library.find("owner/slow");
  await app.library.cancelFind();
  expect([fake.cancelled, app.library.lookup.state]).toEqual([1, "none"]);
  fake.answers["owner/slow"]?.(new BackendError("cancelled", "Cancelled."));
  await asked;
  expect([app.library.lookup.state, app.library.problem]).toEqual(["none", null]);
});

test("an unavailable repository is reported where it was requested", async () => {
  const asked = app.library.find("owner/gated");
  fake.answers["owner/gated"]?.(GATED);
  await asked;
  expect(app.library.lookup).toMatchObject({ state: "failed", name: "owner/gated" });
  expect(app.library.problem).toBeNull();
  await app.library.find(" ");
  expect(app.library.lookup.state).toBe("none");
});

test("a model is installed once it is listed, by the name of its offer", () => {
  const id = "unsloth/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf";
  expect(app.library.installed(id)?.label).toContain("Qwen3 0.6B");
  const local: ModelEntry[] = TARGETS.map((model) => ({ ...model, kind: "local" }));
  engine({ targets: local });
  expect(app.library.installed(id)).toBeUndefined();
});

test("dropped models are added, and other files are named", async () => {
  app.view.settingsOpen = true;
  fake.drag({ type: "over", kinds: ["model", "model"] });
  expect(app.library.dragged).toEqual(["model", "model"]);
  const paths = ["/notes.txt", "/model.gguf"];
  fake.drag({ type: "dropped", files: paths.map((path) => ({ path, kind: "model" })) });
  expect(app.library.dragged).toEqual([]);
  await expect.poll(() => app.library.problem?.message).toBe("/notes.txt is not a model.");
  expect(fake.added).toEqual(["/model.gguf"]);
  expect(app.library.newest).toBe("/model.gguf");
  expect(app.view).toMatchObject({ settingsOpen: false, libraryOpen: true });
});

test("before a probe every draft has a hint, and the choice of no draft is not listed", () => {
  engine({ drafts: [option("none"), option("ngram"), option("starter-draft")] });
  const hints = app.library.advice.map(({ id, size_hint }) => [id, size_hint]);
  expect(hints).toEqual([
    ["ngram", "needs no model"],
    ["starter-draft", "14% of the target model's size: about right"],
  ]);
});

test("the best draft is first, and unusable ones are last with their reason", async () => {
  const drafts = [option("other", UNFIT), option("slow"), option("quick")];
  engine({ drafts: [...drafts, option("failed"), option("unprobed")] });
  const advised = app.library.advise(null);
  expect(app.library.advising).toBe(true);
  const report = (id: string, change: Partial<Advice>) => {
    fake.advice({ id, state: "probing", probe: null, reason: null, ...change });
  };
  report("slow", { probe: probe(0.9), state: "done" });
  report("quick", { probe: probe(2.1), state: "done" });
  report("failed", { state: "failed", reason: "the draft failed" });
  const order = app.library.advice.map(({ id }) => id);
  expect(order).toEqual(["quick", "slow", "unprobed", "failed", "other"]);
  fake.endAdvice();
  await advised;
  expect(app.library.advising).toBe(false);
});

test("measurements of another target are not shown", async () => {
  engine({ drafts: [option("quick")] });
  const advised = app.library.advise(null);
  fake.advice({ id: "quick", probe: probe(2), state: "done", reason: null });
  fake.endAdvice();
  await advised;
  expect(app.library.advice[0]?.probe?.speedup).toBe(2);
  engine({ target: TARGETS[2] ?? null });
  expect(app.library.advice[0]?.probe).toBeNull();
});

test("a loaded model keeps its name after it is deleted", async () => {
  Object.assign(fake.backend, {
    watchEngine: (onDownloads: (status: EngineStatus) => void) => {
      onDownloads({ ...status, drafts: [{ ...option("mine"), label: "Mine, 1 B" }] });
      onDownloads({ ...status, drafts: [] });
      return Promise.resolve();
    },
  });
  await app.engine.watch();
  expect(app.engine.label("mine")).toBe("Mine, 1 B");
  expect(app.engine.label("unheard of")).toBeUndefined();
});
