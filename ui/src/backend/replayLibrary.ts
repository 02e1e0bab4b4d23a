/**
 * Library of the backend in a browser: simulated downloads and a sample hub. `?downloads=sample`
 * begins with a download in every state, `?catalogue=none` with an empty catalogue and no
 * recommendations. Repository names with `missing`, `offline` or `empty`, and those of
 * `meta-llama/`, get the matching answers.
 */
import type { Advice } from "../bindings/Advice";
import type { Download } from "../bindings/Download";
import type { DraftOption } from "../bindings/DraftOption";
import type { FoundRepository } from "../bindings/FoundRepository";
import type { ModelEntry } from "../bindings/ModelEntry";
import type { Probe } from "../bindings/Probe";
import type { TokenSource } from "../bindings/TokenSource";
import { BackendError } from "./backend";
import {
  FAMILIES,
  RECOMMENDATIONS,
  SAMPLE_DOWNLOADS,
  fileDetail,
  foundBy,
  STARTER,
  memoryOf,
  repositoryCalled,
} from "./replayModels";

const TICK_MS = 100;
const ANSWER_MS = 700;
const BYTES_PER_SECOND = 180e6;

export class ReplayLibrary {
  #downloads: Download[] = [];
  #watchers: ((downloads: Download[]) => void)[] = [];
  #token: TokenSource = "none";
  #timer: ReturnType<typeof setInterval> | undefined;
  #stopped = false;

  readonly #empty: boolean;
  readonly #onArrival: (model: ModelEntry) => void;

  constructor(options: URLSearchParams, onArrival: (model: ModelEntry) => void) {
    this.#empty = options.get("catalogue") === "none";
    this.#onArrival = onArrival;
    // Sample downloads stand still.
    if (options.get("downloads") === "sample") this.#downloads = SAMPLE_DOWNLOADS;
  }

  catalogue = () => Promise.resolve(this.#empty ? [] : FAMILIES);
  recommendations = () => Promise.resolve(this.#empty ? [] : RECOMMENDATIONS);

  searchHub = async (words: string): Promise<FoundRepository[]> => {
    await wait(ANSWER_MS);
    if (words.includes("offline")) throw offline();
    return foundBy(words);
  };

  findRepository = async (name: string) => {
    await wait(ANSWER_MS);
    if (name.includes("offline")) throw offline();
    if (name.includes("missing")) {
      const message = `The hub has no repository called ${name}, or it is private. Check the name, or set a token that may read it.`;
      throw new BackendError("not_found", message);
    }
    if (name.startsWith("meta-llama/") && this.#token === "none") throw gated(name);
    const repository = repositoryCalled(name);
    return name.includes("empty") ? { ...repository, files: [] } : repository;
  };

  cancelHubRequests = () => Promise.resolve();

  watchDownloads = (onChange: (downloads: Download[]) => void) => {
    this.#watchers.push(onChange);
    onChange(this.#downloads);
    return Promise.resolve();
  };

  startDownload = async (repository: string, file: string | null) => {
    await wait(ANSWER_MS / 2);
    const id = file === null ? repository : `${repository}:${file}`;
    const offered = [
      ...FAMILIES.flatMap(({ targets, drafts }) => [...targets, ...drafts]),
      ...RECOMMENDATIONS.flatMap(({ target, draft }) => [target, draft]),
    ];
    const known = offered.find((model) => model.id === id);
    if (known?.gated && this.#token === "none") throw gated(repository);
    const found = repositoryCalled(repository).files.find((one) => one.id === id);
    const download: Download = {
      id,
      repository,
      file,
      done_bytes: 0,
      total_bytes: known?.size_bytes ?? found?.size_bytes ?? 4e9,
      bytes_per_second: 0,
      state: "queued",
      reason: null,
    };
    this.#tell([...this.#downloads.filter((other) => other.id !== id), download]);
    this.#run();
    return download;
  };

  pauseDownload = (id: string) => this.#change(id, { state: "paused", bytes_per_second: 0 });
  resumeDownload = (id: string) => {
    const resumed = this.#change(id, { state: "queued", reason: null });
    this.#run();
    return resumed;
  };
  cancelDownload = (id: string) => this.#forget(id);
  dismissDownload = (id: string) => this.#forget(id);

  hubToken = () => Promise.resolve(this.#token);

  setHubToken = async (token: string | null) => {
    await wait(ANSWER_MS / 2);
    if (token?.includes("wrong")) {
      throw new BackendError("needs_token", "The hub refused the token: make a new one there.");
    }
    this.#token = token === null ? "none" : "keyring";
    return this.#token;
  };

  /** Simulates probes of all usable drafts, one after the other. */
  async advise(options: readonly DraftOption[], onAdvice: (advice: Advice) => void) {
    this.#stopped = false;
    const usable = options.filter(({ id, problem }) => id !== "none" && problem === null);
    for (const [index, { id }] of usable.entries()) {
      onAdvice({ id, state: "probing", probe: null, reason: null });
      await wait(2 * ANSWER_MS);
      if (this.#hasStopped()) {
        onAdvice({ id, state: "waiting", probe: null, reason: null });
        return;
      }
      onAdvice({ id, state: "done", probe: probe(index), reason: null });
    }
  }

  stopAdvice = () => {
    this.#stopped = true;
    return Promise.resolve();
  };

  /** Read through a method, since the value changes while `advise` waits. */
  #hasStopped() {
    return this.#stopped;
  }

  #run() {
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
  }

  /** Advances one download at a time. */
  #tick() {
    const current = this.#downloads.find(({ state }) => ["queued", "running"].includes(state));
    if (!current) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const wanted = current.done_bytes + (BYTES_PER_SECOND * TICK_MS) / 1000;
    const done_bytes = Math.min(wanted, current.total_bytes);
    if (done_bytes === current.total_bytes) {
      void this.#change(current.id, { state: "done", done_bytes, bytes_per_second: 0 });
      this.#onArrival(arrived(current));
      return;
    }
    const change: Partial<Download> = { state: "running", bytes_per_second: BYTES_PER_SECOND };
    void this.#change(current.id, { ...change, done_bytes });
  }

  #change(id: string, change: Partial<Download>): Promise<void> {
    this.#tell(this.#downloads.map((one) => (one.id === id ? { ...one, ...change } : one)));
    return Promise.resolve();
  }

  #forget(id: string): Promise<void> {
    this.#tell(this.#downloads.filter((download) => download.id !== id));
    return Promise.resolve();
  }

  #tell(downloads: Download[]) {
    this.#downloads = downloads;
    for (const watcher of this.#watchers) watcher(downloads);
  }
}

function offline(): BackendError {
  const message =
    "the hub at https://huggingface.co could not be reached: failed to lookup address information. Check the connection and try again.";
  return new BackendError("offline", message);
}

function gated(repository: string): BackendError {
  const message = `${repository} is gated: accept its licence at https://huggingface.co/${repository} and set a token.`;
  return new BackendError("needs_token", message);
}

function arrived({ id, file, repository, total_bytes }: Download): ModelEntry {
  return {
    ...STARTER,
    id: `/home/me/.cache/huggingface/hub/${id}`,
    label: file?.split("/").at(-1)?.replace(".gguf", "") ?? repository,
    detail: fileDetail("qwen3", total_bytes, 40_960),
    kind: "downloaded",
    name: id,
    size_bytes: total_bytes,
    ...memoryOf(total_bytes),
    parameters: total_bytes * 1.6,
    context: 40_960,
  };
}

function probe(index: number): Probe {
  const plain_tokens_per_second = 16.8;
  const speedup = [2.3, 1.4, 0.9][index % 3] ?? 1;
  return {
    acceptance: [0.81, 0.55, 0.22][index % 3] ?? 0,
    draft_length: speedup > 1 ? 5 - index : 0,
    tokens_per_second: plain_tokens_per_second * speedup,
    plain_tokens_per_second,
    speedup,
    tokens: 96,
  };
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
