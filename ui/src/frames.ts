/**
 * When the page paints what changes by itself, such as a reply that streams. Whoever has something to show
 * asks, and frames come so seldom that they take no more than a share of one core. Without anything to show
 * there are none, and none while nobody can see the page.
 *
 * Where frames are dear, the text and what stands beside it have frames of their own: a processor that paints
 * two places at once paints all that lies between them, too.
 */

/**
 * Of one core, for what a frame costs this thread. What a page cannot see of it, above all the picture's
 * way to the screen, costs about half as much again: together that stays under a tenth.
 */
const SHARE = 0.06;
const SHORTEST_MS = 16;
/** However dear a frame is: a page that moved less often would seem to stand still. */
export const LONGEST_MS = 250;
/** Nobody waits for a page out of sight; it is still told what there is. */
const HIDDEN_MS = 1000;
/** Frames that come as often show everything: they are cheap. */
const TOGETHER_MS = 2 * SHORTEST_MS;
/** What stands beside the text is painted once in so many frames of the text. */
const BESIDE_EVERY = 2;
/** How much the newest frame counts in what frames are held to cost. */
const NEWEST = 0.2;
/** A new interval is worth telling when it differs by this share. */
const NOTABLE = 0.25;

export type Paint = (now: number) => void;

/** What is painted together. */
export type Lane = "text" | "beside";
const LANES = ["text", "beside"] as const;

/** Calls back once the frame under way is rendered: a message posted in it is read after that. */
function onRendered(done: () => void): () => void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = done;
  return () => port2.postMessage(null);
}

export class Frames {
  /** From the beginning of a frame of the text to that of the next, in milliseconds. */
  interval = SHORTEST_MS;
  /** Hears of the interval at which it pays to tell the page anything, when that has changed. */
  onpace: ((intervalMs: number) => void) | null = null;
  /** Hears of each frame: when its first callback began, when it was rendered, and what it showed. */
  onframe: ((begin: number, end: number, lane: Lane) => void) | null = null;

  readonly #wanted: Record<Lane, Set<Paint>> = { text: new Set(), beside: new Set() };
  readonly #costMs: Record<Lane, number> = { text: 0, beside: 0 };
  /** When each may be painted again. */
  readonly #dueMs: Record<Lane, number> = { text: 0, beside: 0 };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isComing = false;
  #begun = 0;
  #lane: Lane = "text";
  #toldMs = SHORTEST_MS;
  readonly #awaitRendering: () => void;

  constructor(awaitRendering = onRendered) {
    this.#awaitRendering = awaitRendering(() => this.#rendered());
    document.addEventListener("visibilitychange", () => {
      this.#tell();
      this.#schedule();
    });
  }

  /** Paints in the lane's next frame; once, however often it was asked for until then. */
  ask(paint: Paint, lane: Lane = "text") {
    this.#wanted[lane].add(paint);
    this.#schedule();
  }

  /** Takes back what was asked for. */
  forget(paint: Paint) {
    for (const lane of LANES) this.#wanted[lane].delete(paint);
  }

  /** The lane that is to be painted next; null where nothing is wanted. */
  get #next(): Lane | null {
    const [first, second] = LANES.filter((lane) => this.#wanted[lane].size > 0);
    if (!first || !second) return first ?? null;
    return this.#dueMs[second] < this.#dueMs[first] ? second : first;
  }

  #schedule() {
    clearTimeout(this.#timer);
    const next = this.#next;
    if (this.#isComing || next === null || document.hidden) return;
    // The screen's next frame is half of one away, on average.
    const rest = this.#dueMs[next] - SHORTEST_MS / 2 - performance.now();
    if (rest > 0 && this.interval > SHORTEST_MS) {
      this.#timer = setTimeout(() => this.#schedule(), rest);
    } else {
      this.#isComing = true;
      requestAnimationFrame(this.#paint);
    }
  }

  readonly #paint = (now: number) => {
    this.#isComing = false;
    this.#lane = this.#next ?? "text";
    this.#begun = performance.now();
    this.#awaitRendering();
    const wanted = this.#take();
    this.#rest();
    try {
      for (const paint of wanted) paint(now);
    } finally {
      this.#schedule();
    }
  };

  /** Says when what the frame under way shows may change again: neither lane comes close to the other. */
  #rest() {
    const begun = this.#begun;
    const apart = begun + this.interval / 2;
    this.#dueMs.text = Math.max(this.#dueMs.text, apart);
    this.#dueMs.beside = Math.max(this.#dueMs.beside, apart);
    const every = this.#lane === "text" ? 1 : BESIDE_EVERY;
    this.#dueMs[this.#lane] = begun + this.interval * every;
  }

  /** What the frame under way shall paint. */
  #take(): Paint[] {
    const lanes = this.interval <= TOGETHER_MS ? LANES : [this.#lane];
    const paints = lanes.flatMap((lane) => [...this.#wanted[lane]]);
    for (const lane of lanes) this.#wanted[lane].clear();
    return paints;
  }

  #rendered() {
    const end = performance.now();
    const before = this.#costMs[this.#lane];
    this.#costMs[this.#lane] = before + NEWEST * (end - this.#begun - before);
    const cost = this.#costMs.text + this.#costMs.beside / BESIDE_EVERY;
    this.interval = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, cost / SHARE));
    this.onframe?.(this.#begun, end, this.#lane);
    this.#tell();
  }

  #tell() {
    const pace = document.hidden ? HIDDEN_MS : this.interval;
    if (Math.abs(pace - this.#toldMs) < NOTABLE * this.#toldMs) return;
    this.#toldMs = pace;
    this.onpace?.(Math.round(pace));
  }
}

export const frames = new Frames();
