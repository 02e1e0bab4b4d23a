/**
 * Installed models, the catalogue, the last repository looked up, downloads, the access token, and
 * advice on drafts. All data comes from the backend.
 */
import type { Advice } from "../bindings/Advice";
import type { CatalogueFamily } from "../bindings/CatalogueFamily";
import type { Download } from "../bindings/Download";
import type { ErrorCode } from "../bindings/ErrorCode";
import type { Dropped } from "../bindings/Dropped";
import type { FileDrag } from "../bindings/FileDrag";
import type { FileKind } from "../bindings/FileKind";
import type { FoundRepository } from "../bindings/FoundRepository";
import type { ModelEntry } from "../bindings/ModelEntry";
import type { PairSpeedup } from "../bindings/PairSpeedup";
import type { Recommendation } from "../bindings/Recommendation";
import type { Repository } from "../bindings/Repository";
import type { TokenSource } from "../bindings/TokenSource";
import { BackendError, type Backend } from "../backend/backend";
import { sorted, unprobed } from "./advice";
import type { Filter } from "./catalogue";
import type { Engine } from "./engine.svelte";
import { fetchOf, modelsOf } from "./pairFetch";
import { errorWords } from "../messages/errors";

/** Why an action failed, and where it was started. */
export interface Problem {
  code: ErrorCode;
  message: string;
  /** The shell's own message, if `message` simplifies it. */
  details: string | null;
}

/** Owner and name of a repository. */
const REPOSITORY = /^[\w.-]+\/[\w.-]+$/;

export type Hits =
  | { state: "none" }
  | { state: "asking" }
  | { state: "found"; repositories: FoundRepository[] }
  | { state: "failed"; problem: Problem };

export type Lookup =
  | { state: "none" }
  | { state: "asking"; name: string }
  | { state: "found"; repository: Repository }
  | { state: "failed"; name: string; problem: Problem };

/** A downloadable model, from the catalogue or from a repository. */
export interface Offer {
  id: string;
  repository: string;
  file: string | null;
}

const UNDER_WAY = ["queued", "running", "waiting", "verifying"];

export function isActive({ state }: Download): boolean {
  return UNDER_WAY.includes(state);
}

export class Library {
  families = $state.raw<CatalogueFamily[] | null>(null);
  /** Filters of the catalogue. */
  filters = $state.raw<readonly Filter[]>([]);
  lookup = $state.raw<Lookup>({ state: "none" });
  /** Repositories found on the hub. */
  hits = $state.raw<Hits>({ state: "none" });
  /** Two or three pairs that suit this computer. */
  recommendations = $state.raw<Recommendation[]>([]);
  /** Speed-up by pair over all stored replies. */
  pairSpeedups = $state.raw<PairSpeedup[]>([]);
  downloads = $state.raw<Download[]>([]);
  token = $state<TokenSource | null>(null);
  /** Why the last action failed. */
  problem = $state.raw<Problem | null>(null);
  /** Id of the last model added. */
  newest = $state<string | null>(null);
  /** Kinds of the files dragged over the window, one per file. */
  dragged = $state.raw<readonly FileKind[]>([]);
  /** Ids of requested downloads that are not listed yet. */
  asked = $state.raw<readonly string[]>([]);
  advising = $state(false);

  /** Advice by the draft's id, and the target of its probes. */
  #probed = $state.raw<{ target: string; advice: Record<string, Advice> }>({
    target: "",
    advice: {},
  });

  readonly #backend: Backend;
  readonly #engine: Engine;
  readonly #onDrop: (files: Dropped[]) => void;
  readonly #onDownloads: (before: readonly Download[], after: readonly Download[]) => void;

  /** Bytes received and bytes in total of all downloads under way; null without any. */
  readonly progress = $derived.by(() => {
    const running = this.downloads.filter(isActive);
    if (running.length === 0) return null;
    const sum = (of: (download: Download) => number) =>
      running.reduce((total, download) => total + of(download), 0);
    return { done: sum((one) => one.done_bytes), total: sum((one) => one.total_bytes) };
  });

  /** Recommended pairs that were requested and are not installed yet. */
  readonly awaited = $derived(
    this.recommendations.filter((pair) => {
      const { state } = fetchOf(pair, this);
      return state !== "missing" && state !== "here";
    }),
  );

  readonly advice = $derived.by(() => {
    const { target, advice } = this.#probed;
    const known = target === this.#engine.status.target?.id ? advice : {};
    return sorted(unprobed(this.#engine.status).map((draft) => ({ ...draft, ...known[draft.id] })));
  });

  /** `onDownloads` runs with the downloads before and after each change. */
  constructor(
    backend: Backend,
    engine: Engine,
    onDrop: (files: Dropped[]) => void,
    onDownloads: (before: readonly Download[], after: readonly Download[]) => void,
  ) {
    this.#backend = backend;
    this.#engine = engine;
    this.#onDrop = onDrop;
    this.#onDownloads = onDownloads;
  }

  async watch() {
    await this.#try(async () => {
      await this.#backend.watchFileDrags((drag) => this.#onDrag(drag));
      await this.#backend.watchDownloads((downloads) => {
        this.#onDownloads(this.downloads, downloads);
        this.downloads = downloads;
      });
    });
  }

  /** Fetches the catalogue. Repeated, since the models that fit may change. */
  async load() {
    void this.loadPairSpeedups();
    await this.#try(async () => {
      this.families = await this.#backend.catalogue();
    });
  }

  /** Fetches the speed-ups of pairs; an error leaves the old ones. */
  async loadPairSpeedups() {
    this.pairSpeedups = await this.#backend.pairSpeedups().catch(() => this.pairSpeedups);
  }

  /**
   * Speed-up of a target, by its label: with `draft` if it has replies; for null with the most used
   * draft.
   */
  pairSpeedup(target: string, draft: string | null): PairSpeedup | null {
    const own = this.pairSpeedups.filter((pair) => pair.target === target);
    return own.find((pair) => pair.draft === draft) ?? (draft === null ? null : own[0]) ?? null;
  }

  /** Fetches recommended pairs. Not while one is being downloaded: that changes the free space. */
  async loadRecommendations() {
    void this.loadPairSpeedups();
    if (this.awaited.length > 0) return;
    try {
      this.recommendations = await this.#backend.recommendations();
    } catch {
      // The Library still shows the catalogue.
      this.recommendations = [];
    }
  }

  /** Fetches the token's source; a locked keyring may prompt for a password. */
  async loadToken() {
    await this.#try(async () => {
      this.token = await this.#backend.hubToken();
    });
  }

  /** The installed model of an offer. */
  installed(id: string): ModelEntry | undefined {
    return this.#engine.status.targets.find(
      ({ kind, name }) => kind === "downloaded" && name === id,
    );
  }

  download(id: string): Download | undefined {
    return this.downloads.find((download) => download.id === id);
  }

  /**
   * Opens a repository by its full name, or searches the hub; an empty query clears the results.
   */
  async find(words: string) {
    const wanted = words.trim();
    if (REPOSITORY.test(wanted)) {
      this.hits = { state: "none" };
      return this.openRepository(wanted);
    }
    return this.search(wanted);
  }

  /** Searches the hub for repositories by words of their names. */
  async search(words: string) {
    const wanted = words.trim();
    this.lookup = { state: "none" };
    if (wanted === "") {
      this.hits = { state: "none" };
      await this.#try(() => this.#backend.cancelHubRequests());
      return;
    }
    const asking: Hits = { state: "asking" };
    this.hits = asking;
    let answer: Hits;
    try {
      answer = { state: "found", repositories: await this.#backend.searchHub(wanted) };
    } catch (thrown) {
      answer = { state: "failed", problem: problemOf(thrown) };
    }
    // A newer search may have started.
    if (this.hits === asking) this.hits = answer;
  }

  /** Cancels the request to the hub; earlier results stay. */
  async cancelFind() {
    if (this.lookup.state === "asking") this.lookup = { state: "none" };
    if (this.hits.state === "asking") this.hits = { state: "none" };
    await this.#try(() => this.#backend.cancelHubRequests());
  }

  closeRepository() {
    this.lookup = { state: "none" };
  }

  async openRepository(wanted: string) {
    const asking: Lookup = { state: "asking", name: wanted };
    this.lookup = asking;
    let answer: Lookup;
    try {
      answer = { state: "found", repository: await this.#backend.findRepository(wanted) };
    } catch (thrown) {
      answer = { state: "failed", name: wanted, problem: problemOf(thrown) };
    }
    // A newer request may have started.
    if (this.lookup === asking) this.lookup = answer;
  }

  /** Downloads all offers, except installed ones and those under way. */
  async get(...offers: Offer[]) {
    const missing = offers.filter(({ id }) => !this.installed(id) && !this.isComing(id));
    this.asked = [...this.asked, ...missing.map(({ id }) => id)];
    await Promise.all(
      missing.map(async ({ id, repository, file }) => {
        await this.#try(() => this.#backend.startDownload(repository, file));
        this.asked = this.asked.filter((asked) => asked !== id);
      }),
    );
  }

  /** Downloads what an installed model lacks: its vision file. */
  async complete({ id, repository, file }: Offer) {
    if (this.isComing(id)) return;
    this.asked = [...this.asked, id];
    await this.#try(() => this.#backend.startDownload(repository, file));
    this.asked = this.asked.filter((asked) => asked !== id);
  }

  /** Whether a download is requested or under way. */
  isComing(id: string): boolean {
    const download = this.download(id);
    return (download !== undefined && isActive(download)) || this.asked.includes(id);
  }

  getPair = (pair: Recommendation) => this.get(...modelsOf(pair));
  pausePair = (pair: Recommendation) => this.#each(pair, isActive, this.pause);
  resumePair = (pair: Recommendation) =>
    this.#each(pair, ({ state }) => state === "paused", this.resume);
  /**
   * Cancels a pair's downloads. Finished files stay, and a draft shared with another pair goes on.
   */
  async cancelPair(pair: Recommendation) {
    const { target, draft } = pair;
    const others = this.awaited.filter((one) => one.target.id !== target.id);
    const isShared = others.some((one) => draft !== null && one.draft?.id === draft.id);
    const isFor = ({ id }: Download) => id === target.id || !isShared;
    await this.#each(pair, (one) => isFor(one) && one.state !== "done", this.cancel);
    await this.#each(pair, (one) => isFor(one) && one.state === "done", this.dismiss);
  }

  pause = (id: string) => this.#try(() => this.#backend.pauseDownload(id));
  resume = (id: string) => this.#try(() => this.#backend.resumeDownload(id));
  cancel = (id: string) => this.#try(() => this.#backend.cancelDownload(id));
  dismiss = (id: string) => this.#try(() => this.#backend.dismissDownload(id));

  /** Deletes an installed model and its finished download. */
  async delete(id: string): Promise<boolean> {
    const name = this.#engine.status.targets.find((model) => model.id === id)?.name;
    const deleted = await this.#try(() => this.#backend.deleteModel(id));
    const download = this.downloads.find((one) => one.id === name && one.state === "done");
    if (deleted && download) await this.dismiss(download.id);
    return deleted;
  }

  /** Stores the token, or removes it for null; resolves with whether that succeeded. */
  setToken(token: string | null): Promise<boolean> {
    return this.#try(async () => {
      this.token = await this.#backend.setHubToken(token);
    });
  }

  /** Probes every draft, on a conversation if there is one; results are shown one by one. */
  async advise(conversation: number | null) {
    const target = this.#engine.status.target?.id;
    if (this.advising || target === undefined) return;
    this.advising = true;
    this.#probed = { target, advice: {} };
    await this.#try(async () => {
      await this.#backend.advise(conversation, (advice) => {
        if (this.#probed.target !== target) return;
        this.#probed = { target, advice: { ...this.#probed.advice, [advice.id]: advice } };
      });
    });
    this.advising = false;
  }

  async stopAdvice() {
    await this.#try(async () => {
      await this.#backend.stopAdvice();
    });
  }

  /** Runs `act` for the downloads of a pair that pass `isFor`. */
  async #each(
    pair: Recommendation,
    isFor: (download: Download) => boolean,
    act: (id: string) => Promise<boolean>,
  ) {
    const downloads = modelsOf(pair).map(({ id }) => this.download(id));
    await Promise.all(
      downloads.flatMap((download) => (download && isFor(download) ? [act(download.id)] : [])),
    );
  }

  #onDrag(drag: FileDrag) {
    this.dragged = drag.type === "over" ? drag.kinds : [];
    if (drag.type === "dropped") this.#onDrop(drag.files);
  }

  async #try(act: () => Promise<unknown>): Promise<boolean> {
    this.problem = null;
    try {
      await act();
      return true;
    } catch (thrown) {
      this.problem = problemOf(thrown);
      return false;
    }
  }
}

function problemOf(thrown: unknown): Problem {
  const error = BackendError.from(thrown);
  const details = error.code === "offline" ? error.message : null;
  return { code: error.code, message: errorWords(error), details };
}
