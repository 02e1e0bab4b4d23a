/**
 * When the page paints what changes by itself, such as a reply that streams. Whoever has something to show
 * asks; all that was asked for is done in one frame, and frames come so seldom that they take no more than a
 * share of one core. Without anything to show there are none, and none while nobody can see the page.
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
/** How much the newest frame counts in what frames are held to cost. */
const NEWEST = 0.2;
/** A new interval is worth telling when it differs by this share. */
const NOTABLE = 0.25;

export type Paint = (now: number) => void;

/** Calls back once the frame under way is rendered: a message posted in it is read after that. */
function onRendered(done: () => void): () => void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = done;
  return () => port2.postMessage(null);
}

export class Frames {
  /** From the beginning of a frame to that of the next, in milliseconds. */
  interval = SHORTEST_MS;
  /** Hears of the interval at which it pays to tell the page anything, when that has changed. */
  onpace: ((intervalMs: number) => void) | null = null;
  /** Hears of each frame: when its first callback began, and when it was rendered. */
  onframe: ((begin: number, end: number) => void) | null = null;

  #wanted = new Set<Paint>();
  /** A frame is on its way, or the rest that the last one asked for is not over. */
  #isWaiting = false;
  #begun = 0;
  #costMs = 0;
  #toldMs = SHORTEST_MS;
  readonly #awaitRendering: () => void;

  constructor(awaitRendering = onRendered) {
    this.#awaitRendering = awaitRendering(() => this.#rendered());
    document.addEventListener("visibilitychange", () => {
      this.#tell();
      this.#schedule();
    });
  }

  /** Paints in the next frame; once, however often it was asked for until then. */
  ask(paint: Paint) {
    this.#wanted.add(paint);
    this.#schedule();
  }

  /** Takes back what was asked for. */
  forget(paint: Paint) {
    this.#wanted.delete(paint);
  }

  #schedule() {
    if (this.#isWaiting || this.#wanted.size === 0 || document.hidden) return;
    this.#isWaiting = true;
    requestAnimationFrame(this.#paint);
  }

  readonly #paint = (now: number) => {
    this.#begun = performance.now();
    this.#awaitRendering();
    const wanted = this.#wanted;
    this.#wanted = new Set();
    try {
      for (const paint of wanted) paint(now);
    } finally {
      // The screen's next frame is half of one away then, on average.
      const rest = this.interval - SHORTEST_MS / 2;
      if (rest > SHORTEST_MS) setTimeout(this.#goOn, rest);
      else this.#goOn();
    }
  };

  readonly #goOn = () => {
    this.#isWaiting = false;
    this.#schedule();
  };

  #rendered() {
    const end = performance.now();
    this.#costMs += NEWEST * (end - this.#begun - this.#costMs);
    this.interval = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, this.#costMs / SHARE));
    this.onframe?.(this.#begun, end);
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
