/**
 * Syntax highlighting in a worker. Some grammars take quadratic time, so a slow worker is
 * terminated. The characters stay the same.
 */
import type { Uncoloured } from "./colour";
import type { Shape } from "./shapes";

/** Longest code that is highlighted: more would make thousands of elements. */
const LONGEST = 30_000;
/** Time after which a worker is terminated and its code stays plain. */
const PATIENCE_MS = 1500;
/** Number of cached results. Blocks on the page keep theirs. */
const MAX_CACHED = 64;
/** Most results shown at once. */
const MAX_AT_ONCE = MAX_CACHED / 2;

interface Cached extends Uncoloured {
  /** Highlighted code; null if it stays plain. */
  shapes: readonly Shape[] | null;
}

interface Request extends Uncoloured {
  callers: Set<() => void>;
}

/** Cached results, least recently used first. */
let cached: Cached[] = [];
const queue: Request[] = [];
let active: { request: Request; timer: ReturnType<typeof setTimeout> } | null = null;
let worker: Worker | null = null;
let done: Request[] = [];

/**
 * Shapes of code, highlighted if cached; `onReady` is called once if highlighting arrives later.
 */
export function highlighted(code: string, name: string, onReady: () => void): readonly Shape[] {
  const language = name.toLowerCase();
  if (language === "" || code.length > LONGEST || typeof Worker === "undefined") return [code];
  const found = longestCached(language, code);
  if (found) cached = [...cached.filter((one) => one !== found), found];
  if (found && (found.code === code || !found.shapes)) return found.shapes ?? [code];
  ask({ language, code, callers: new Set([onReady]) });
  // Growing code keeps the highlighting of its beginning.
  return found?.shapes ? [...found.shapes, code.slice(found.code.length)] : [code];
}

function longestCached(language: string, code: string): Cached | null {
  let longest: Cached | null = null;
  for (const one of cached) {
    const fits = one.language === language && code.startsWith(one.code);
    if (fits && one.code.length >= (longest?.code.length ?? 0)) longest = one;
  }
  return longest;
}

function ask(request: Request) {
  const same = [active?.request, ...queue].find((one) => one && isSame(one, request));
  if (same) {
    for (const caller of request.callers) same.callers.add(caller);
    return;
  }
  // Of growing code only the latest version is needed.
  const before = queue.findIndex((one) => isPart(one, request));
  if (before >= 0) queue.splice(before, 1);
  queue.push(request);
  next();
}

function isSame(a: Uncoloured, b: Uncoloured): boolean {
  return a.language === b.language && a.code === b.code;
}

function isPart(part: Uncoloured, whole: Uncoloured): boolean {
  return part.language === whole.language && whole.code.startsWith(part.code);
}

function next() {
  if (active) return;
  const request = queue.shift();
  if (!request) return;
  if (!worker) {
    worker = new Worker(new URL("./colour.worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<Shape[] | null>) => finish(data);
    worker.onerror = stop;
  }
  const { language, code } = request;
  active = { request, timer: setTimeout(stop, PATIENCE_MS) };
  worker.postMessage({ language, code } satisfies Uncoloured);
}

function stop() {
  worker?.terminate();
  worker = null;
  finish(null);
}

function finish(shapes: Shape[] | null) {
  if (!active) return;
  clearTimeout(active.timer);
  const { request } = active;
  active = null;
  cached = cached.filter((one) => !isPart(one, request));
  cached.push({ language: request.language, code: request.code, shapes });
  cached = cached.slice(-MAX_CACHED);
  if (shapes) done.push(request);
  const isLast = queue.length === 0;
  next();
  if (!isLast && done.length < MAX_AT_ONCE) return;
  const here = done;
  done = [];
  for (const { callers } of here) for (const call of callers) call();
}
