/**
 * Models that are here, could be, or are on their way: the catalogue, the repository last looked up,
 * downloads, the access token, and what probes say of the drafts. Asks the backend for everything.
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
import type { Engine } from "./engine.svelte";
import { fetchOf } from "./pairFetch";
import { errorWords } from "../messages/shell";

/** Why something did not happen, and where it was asked for. */
export interface Problem {
  code: ErrorCode;
  message: string;
  /** What the shell says of it, where the message is a simpler one. */
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

/** What can be downloaded: a model of the catalogue or of a repository. */
export interface Offer {
  id: string;
  repository: string;
  file: string | null;
}

const UNDER_WAY = ["queued", "running", "waiting", "verifying"];

export function underWay({ state }: Download): boolean {
  return UNDER_WAY.includes(state);
}

export class Library {
  families = $state.raw<CatalogueFamily[] | null>(null);
  lookup = $state.raw<Lookup>({ state: "none" });
  /** Repositories that the hub's search found. */
  hits = $state.raw<Hits>({ state: "none" });
  /** Pairs that suit this computer, two or three. */
  recommendations = $state.raw<Recommendation[]>([]);
  /** What drafts brought over all stored replies, by pair. */
  pairSpeedups = $state.raw<PairSpeedup[]>([]);
  downloads = $state.raw<Download[]>([]);
  token = $state<TokenSource | null>(null);
  /** Why the last thing asked for did not happen. */
  problem = $state.raw<Problem | null>(null);
  /** Id of the model that was added last. */
  newest = $state<string | null>(null);
  /** What is held over the window, file by file. */
  dragged = $state.raw<readonly FileKind[]>([]);
  /** Downloads that were asked for and are not in the list yet. */
  asked = $state.raw<readonly string[]>([]);
  advising = $state(false);

  /** By the id of the draft; of the target it was measured on. */
  #probed = $state.raw<{ target: string; advice: Record<string, Advice> }>({
    target: "",
    advice: {},
  });

  readonly #backend: Backend;
  readonly #engine: Engine;
  readonly #onDrop: (files: Dropped[]) => void;

  /** Bytes here and in all of what is under way; null when nothing is. */
  readonly progress = $derived.by(() => {
    const running = this.downloads.filter(underWay);
    if (running.length === 0) return null;
    const sum = (of: (download: Download) => number) =>
      running.reduce((total, download) => total + of(download), 0);
    return { done: sum((one) => one.done_bytes), total: sum((one) => one.total_bytes) };
  });

  /** Those of the recommended pairs that were asked for and are not here yet. */
  readonly awaited = $derived(
    this.recommendations.filter(({ target, draft }) => {
      const { state } = fetchOf([target, draft], this);
      return state !== "missing" && state !== "here";
    }),
  );

  readonly advice = $derived.by(() => {
    const { target, advice } = this.#probed;
    const known = target === this.#engine.status.target?.id ? advice : {};
    return sorted(unprobed(this.#engine.status).map((draft) => ({ ...draft, ...known[draft.id] })));
  });

  constructor(backend: Backend, engine: Engine, onDrop: (files: Dropped[]) => void) {
    this.#backend = backend;
    this.#engine = engine;
    this.#onDrop = onDrop;
  }

  async watch() {
    await this.#try(async () => {
      await this.#backend.watchFileDrags((drag) => this.#hearDrag(drag));
      await this.#backend.watchDownloads((downloads) => {
        this.downloads = downloads;
      });
    });
  }

  /** Fetches the catalogue, also again: what fits may have changed. */
  async load() {
    void this.loadPairSpeedups();
    await this.#try(async () => {
      this.families = await this.#backend.catalogue();
    });
  }

  /** Fetches what drafts brought so far; it stays what it was where that fails. */
  async loadPairSpeedups() {
    this.pairSpeedups = await this.#backend.pairSpeedups().catch(() => this.pairSpeedups);
  }

  /** What drafts brought a target, by its label: with this draft if it has replies, else with the most used one. */
  pairSpeedup(target: string, draft: string | null): PairSpeedup | null {
    const own = this.pairSpeedups.filter((pair) => pair.target === target);
    return own.find((pair) => pair.draft === draft) ?? (draft === null ? null : own[0]) ?? null;
  }

  /** Fetches the pairs that suit this computer; they stay while one of them is on its way, which changes what is free. */
  async loadRecommendations() {
    void this.loadPairSpeedups();
    if (this.awaited.length > 0) return;
    try {
      this.recommendations = await this.#backend.recommendations();
    } catch {
      // The catalogue is in the Library all the same.
      this.recommendations = [];
    }
  }

  /** Asks where the token comes from, for which a locked keyring asks the person. */
  async loadToken() {
    await this.#try(async () => {
      this.token = await this.#backend.hubToken();
    });
  }

  /** The installed model that came from this offer. */
  installed(id: string): ModelEntry | undefined {
    return this.#engine.status.targets.find(
      ({ kind, name }) => kind === "downloaded" && name === id,
    );
  }

  download(id: string): Download | undefined {
    return this.downloads.find((download) => download.id === id);
  }

  /** Opens the repository of that name, or searches for what is no name of one; nothing clears all results. */
  async find(words: string) {
    const wanted = words.trim();
    if (REPOSITORY.test(wanted)) {
      this.hits = { state: "none" };
      return this.openRepository(wanted);
    }
    return this.search(wanted);
  }

  /** Asks the hub for repositories whose names contain these words. */
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
    // Something else may have been searched for since.
    if (this.hits === asking) this.hits = answer;
  }

  /** Stops waiting for the hub; what it answered before stays. */
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
    // Something else may have been asked for since.
    if (this.lookup === asking) this.lookup = answer;
  }

  /** Asks for all of them; what is here or under way already is left alone. */
  async get(...offers: Offer[]) {
    const missing = offers.filter(({ id }) => {
      const download = this.download(id);
      return !this.installed(id) && !(download && underWay(download)) && !this.asked.includes(id);
    });
    this.asked = [...this.asked, ...missing.map(({ id }) => id)];
    await Promise.all(
      missing.map(async ({ id, repository, file }) => {
        await this.#try(() => this.#backend.startDownload(repository, file));
        this.asked = this.asked.filter((asked) => asked !== id);
      }),
    );
  }

  getPair = ({ target, draft }: Recommendation) => this.get(target, draft);
  pausePair = (pair: Recommendation) => this.#each(pair, underWay, this.pause);
  resumePair = (pair: Recommendation) =>
    this.#each(pair, ({ state }) => state === "paused", this.resume);
  /** What is here of it stays, and a draft that another pair waits for goes on. */
  async cancelPair(pair: Recommendation) {
    const { target, draft } = pair;
    const others = this.awaited.filter((one) => one.target.id !== target.id);
    const isShared = others.some((one) => one.draft.id === draft.id);
    const isFor = ({ id }: Download) => id === target.id || !isShared;
    await this.#each(pair, (one) => isFor(one) && one.state !== "done", this.cancel);
    await this.#each(pair, (one) => isFor(one) && one.state === "done", this.dismiss);
  }

  pause = (id: string) => this.#try(() => this.#backend.pauseDownload(id));
  resume = (id: string) => this.#try(() => this.#backend.resumeDownload(id));
  cancel = (id: string) => this.#try(() => this.#backend.cancelDownload(id));
  dismiss = (id: string) => this.#try(() => this.#backend.dismissDownload(id));

  /** Deletes an installed model, and forgets that it was downloaded. */
  async delete(id: string): Promise<boolean> {
    const name = this.#engine.status.targets.find((model) => model.id === id)?.name;
    const deleted = await this.#try(() => this.#backend.deleteModel(id));
    const download = this.downloads.find((one) => one.id === name && one.state === "done");
    if (deleted && download) await this.dismiss(download.id);
    return deleted;
  }

  /** Resolves with whether the token was kept, or with null removed. */
  setToken(token: string | null): Promise<boolean> {
    return this.#try(async () => {
      this.token = await this.#backend.setHubToken(token);
    });
  }

  /** Probes every draft on a conversation, where there is one; what comes is shown as it comes. */
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

  /** Does this with those downloads of a pair that it is for. */
  async #each(
    { target, draft }: Recommendation,
    isFor: (download: Download) => boolean,
    act: (id: string) => Promise<boolean>,
  ) {
    const downloads = [target, draft].map(({ id }) => this.download(id));
    await Promise.all(
      downloads.flatMap((download) => (download && isFor(download) ? [act(download.id)] : [])),
    );
  }

  #hearDrag(drag: FileDrag) {
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
