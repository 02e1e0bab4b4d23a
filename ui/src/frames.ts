/**
 * Schedules frames for content that changes by itself, such as a streamed reply. Frames are
 * requested, and their interval limits their cost to a share of one core. A hidden page paints
 * none.
 *
 * Where frames are expensive, the text and the content beside it get separate frames: a CPU
 * renderer that repaints two regions also repaints everything between them.
 */

/**
 * Share of one core for frames on this thread. Their cost outside of the page, mainly for display,
 * is about half as much again; together they stay below a tenth.
 */
const SHARE = 0.06;
const SHORTEST_MS = 16;
/** Longest interval at any cost: with a longer one the page would seem to stand still. */
export const LONGEST_MS = 250;
/** Interval of events for a hidden page. */
const HIDDEN_MS = 1000;
/** Interval up to which both lanes share frames, since frames are cheap then. */
const TOGETHER_MS = 2 * SHORTEST_MS;
/** Frames of the text per frame of the content beside it. */
const BESIDE_EVERY = 2;
/** Weight of the newest frame in the average cost. */
const NEWEST = 0.2;
/** Relative change of the interval that is reported. */
const NOTABLE = 0.25;

export type Paint = (now: number) => void;

/** Content that is painted together. */
export type Lane = "text" | "beside";
const LANES = ["text", "beside"] as const;

/** Calls `done` after the rendering of a frame: messages posted in a frame are handled after it. */
function onRendered(done: () => void): () => void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = done;
  return () => port2.postMessage(null);
}

export class Frames {
  /** Milliseconds between the starts of frames of the text. */
  interval = SHORTEST_MS;
  /** Receives the useful interval of events after a change. */
  onpace: ((intervalMs: number) => void) | null = null;
  /** Receives each frame: its start, the end of its rendering, and its lane. */
  onframe: ((begin: number, end: number, lane: Lane) => void) | null = null;

  readonly #requests: Record<Lane, Set<Paint>> = { text: new Set(), beside: new Set() };
  readonly #costMs: Record<Lane, number> = { text: 0, beside: 0 };
  /** Earliest time of the next frame of each lane. */
  readonly #dueMs: Record<Lane, number> = { text: 0, beside: 0 };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isScheduled = false;
  #begun = 0;
  #lane: Lane = "text";
  #reportedMs = SHORTEST_MS;
  readonly #awaitRendering: () => void;

  constructor(awaitRendering = onRendered) {
    this.#awaitRendering = awaitRendering(() => this.#rendered());
    document.addEventListener("visibilitychange", () => {
      this.#report();
      this.#schedule();
    });
  }

  /** Paints in the lane's next frame; several requests until then count as one. */
  request(paint: Paint, lane: Lane = "text") {
    this.#requests[lane].add(paint);
    this.#schedule();
  }

  /** Cancels a request. */
  cancel(paint: Paint) {
    for (const lane of LANES) this.#requests[lane].delete(paint);
  }

  /** The lane to paint next; null without requests. */
  get #next(): Lane | null {
    const [first, second] = LANES.filter((lane) => this.#requests[lane].size > 0);
    if (!first || !second) return first ?? null;
    return this.#dueMs[second] < this.#dueMs[first] ? second : first;
  }

  #schedule() {
    clearTimeout(this.#timer);
    const next = this.#next;
    if (this.#isScheduled || next === null || document.hidden) return;
    // The display's next frame is half an interval away on average.
    const rest = this.#dueMs[next] - SHORTEST_MS / 2 - performance.now();
    if (rest > 0 && this.interval > SHORTEST_MS) {
      this.#timer = setTimeout(() => this.#schedule(), rest);
    } else {
      this.#isScheduled = true;
      requestAnimationFrame(this.#paint);
    }
  }

  readonly #paint = (now: number) => {
    this.#isScheduled = false;
    this.#lane = this.#next ?? "text";
    this.#begun = performance.now();
    this.#awaitRendering();
    const wanted = this.#take();
    this.#delayNext();
    try {
      for (const paint of wanted) paint(now);
    } finally {
      this.#schedule();
    }
  };

  /** Sets the earliest time of the next frames, with both lanes apart from each other. */
  #delayNext() {
    const begun = this.#begun;
    const apart = begun + this.interval / 2;
    this.#dueMs.text = Math.max(this.#dueMs.text, apart);
    this.#dueMs.beside = Math.max(this.#dueMs.beside, apart);
    const every = this.#lane === "text" ? 1 : BESIDE_EVERY;
    this.#dueMs[this.#lane] = begun + this.interval * every;
  }

  /** Removes and returns the requests for the current frame. */
  #take(): Paint[] {
    const lanes = this.interval <= TOGETHER_MS ? LANES : [this.#lane];
    const paints = lanes.flatMap((lane) => [...this.#requests[lane]]);
    for (const lane of lanes) this.#requests[lane].clear();
    return paints;
  }

  #rendered() {
    const end = performance.now();
    const before = this.#costMs[this.#lane];
    this.#costMs[this.#lane] = before + NEWEST * (end - this.#begun - before);
    const cost = this.#costMs.text + this.#costMs.beside / BESIDE_EVERY;
    this.interval = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, cost / SHARE));
    this.onframe?.(this.#begun, end, this.#lane);
    this.#report();
  }

  #report() {
    const pace = document.hidden ? HIDDEN_MS : this.interval;
    if (Math.abs(pace - this.#reportedMs) < NOTABLE * this.#reportedMs) return;
    this.#reportedMs = pace;
    this.onpace?.(Math.round(pace));
  }
}

export const frames = new Frames();
