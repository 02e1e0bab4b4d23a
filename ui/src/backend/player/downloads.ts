/** Simulated downloads of the player, one after the other. */
import type { CatalogueFamily } from "../../bindings/CatalogueFamily";
import type { CatalogueModel } from "../../bindings/CatalogueModel";
import type { Download } from "../../bindings/Download";
import type { Recommendation } from "../../bindings/Recommendation";

const TICK_MS = 100;
const BYTES_PER_SECOND = 180e6;
/** Size of files that no answer mentions. */
const USUAL_BYTES = 4e9;

export class Downloads {
  #list: Download[];
  readonly #watchers: ((downloads: Download[]) => void)[] = [];
  #timer: ReturnType<typeof setInterval> | undefined;
  readonly #onDone: (download: Download) => void;

  constructor(list: Download[], onDone: (download: Download) => void) {
    this.#list = list;
    this.#onDone = onDone;
  }

  watch(onChange: (downloads: Download[]) => void) {
    this.#watchers.push(onChange);
    onChange(this.#list);
  }

  start(repository: string, file: string | null, total_bytes = USUAL_BYTES): Download {
    const id = file === null ? repository : `${repository}:${file}`;
    const none = { done_bytes: 0, bytes_per_second: 0, reason: null };
    const download: Download = { id, repository, file, total_bytes, state: "queued", ...none };
    this.#replace([...this.#list.filter((other) => other.id !== id), download]);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
    return download;
  }

  pause(id: string) {
    this.#change(id, { state: "paused", bytes_per_second: 0 });
  }

  resume(id: string) {
    this.#change(id, { state: "queued", reason: null });
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
  }

  remove(id: string) {
    this.#replace(this.#list.filter((download) => download.id !== id));
  }

  #tick() {
    const current = this.#list.find(({ state }) => state === "queued" || state === "running");
    if (!current) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const { id, total_bytes } = current;
    const done_bytes = current.done_bytes + (BYTES_PER_SECOND * TICK_MS) / 1000;
    if (done_bytes < total_bytes) {
      this.#change(id, { state: "running", bytes_per_second: BYTES_PER_SECOND, done_bytes });
    } else {
      this.#change(id, { state: "done", bytes_per_second: 0, done_bytes: total_bytes });
      this.#onDone(current);
    }
  }

  #change(id: string, change: Partial<Download>) {
    this.#replace(this.#list.map((one) => (one.id === id ? { ...one, ...change } : one)));
  }

  #replace(list: Download[]) {
    this.#list = list;
    for (const watcher of this.#watchers) watcher(list);
  }
}

/** The model of this id in the catalogue or the recommendations. */
export function offered(
  id: string,
  families: readonly CatalogueFamily[],
  pairs: readonly Recommendation[],
): CatalogueModel | undefined {
  const models = [
    ...families.flatMap(({ targets, drafts }) => [...targets, ...drafts]),
    ...pairs.flatMap(({ target, draft }) => (draft === null ? [target] : [target, draft])),
  ];
  return models.find((model) => model.id === id);
}
