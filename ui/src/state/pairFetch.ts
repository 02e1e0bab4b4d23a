/** The downloads of a target and its draft, if it has one of its own, shown as one. */
import type { CatalogueModel } from "../bindings/CatalogueModel";
import type { Download } from "../bindings/Download";
import type { ModelEntry } from "../bindings/ModelEntry";

export type PairFetch =
  /** Bytes still to download. */
  | { state: "missing"; bytes: number }
  | { state: "starting" }
  | { state: "coming"; done: number; total: number; speed: number; verifying: boolean }
  /** Paused by a person, or for `reason`. */
  | { state: "paused"; done: number; total: number; reason: string | null }
  | { state: "failed"; reason: string | null }
  | { state: "here"; target: ModelEntry; draft: ModelEntry | null };

/** A target and its draft; null if its own file drafts, or only n-grams do. */
export interface TargetAndDraft {
  target: CatalogueModel;
  draft: CatalogueModel | null;
}

/** The models, downloads and requests to look offers up in. */
interface Known {
  asked: readonly string[];
  installed(id: string): ModelEntry | undefined;
  download(id: string): Download | undefined;
}

const MOVING = ["queued", "running", "waiting", "verifying"];

/** The models of a pair that are downloaded. */
export function modelsOf({ target, draft }: TargetAndDraft): CatalogueModel[] {
  return draft === null ? [target] : [target, draft];
}

export function fetchOf(pair: TargetAndDraft, known: Known): PairFetch {
  const models = modelsOf(pair);
  const [target, draft = null] = models.map(({ id }) => known.installed(id));
  if (target && (draft || pair.draft === null)) return { state: "here", target, draft };
  const parts = models.map((model) => partOf(model, known));
  // The draft may be downloading for another target.
  if (parts[0]?.state === "none" && !known.asked.includes(pair.target.id)) {
    const bytes = parts.map((part) => (part.state === "none" ? part.total : 0));
    return { state: "missing", bytes: bytes.reduce((total, part) => total + part, 0) };
  }
  const sum = (of: (part: Part) => number) => parts.reduce((total, part) => total + of(part), 0);
  const [done, total] = [sum((part) => part.done), sum((part) => part.total)];
  const inState = (...states: string[]) => parts.filter(({ state }) => states.includes(state));
  const [failed] = inState("failed");
  if (failed) return { state: "failed", reason: failed.reason };
  if (inState(...MOVING).length > 0) {
    const verifying = inState(...MOVING).every(({ state }) => state === "verifying");
    return { state: "coming", done, total, speed: sum((part) => part.speed), verifying };
  }
  const paused = inState("paused");
  if (paused.length > 0) {
    const reason = paused.find((part) => part.reason !== null)?.reason ?? null;
    return { state: "paused", done, total, reason };
  }
  if (models.some(({ id }) => known.asked.includes(id))) return { state: "starting" };
  // Both downloads have finished, but the list of models is not updated yet.
  if (inState("none").length === 0)
    return { state: "coming", done, total, speed: 0, verifying: true };
  return { state: "missing", bytes: total - done };
}

interface Part {
  state: Download["state"] | "none";
  done: number;
  total: number;
  speed: number;
  reason: string | null;
}

function partOf({ id, size_bytes: bytes }: CatalogueModel, known: Known): Part {
  const download = known.download(id);
  if (known.installed(id))
    return { state: "done", done: bytes, total: bytes, speed: 0, reason: null };
  if (!download) return { state: "none", done: 0, total: bytes, speed: 0, reason: null };
  const { state, done_bytes, total_bytes, bytes_per_second, reason } = download;
  return { state, done: done_bytes, total: total_bytes, speed: bytes_per_second, reason };
}
