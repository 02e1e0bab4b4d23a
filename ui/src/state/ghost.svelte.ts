/**
 * The draft that runs ahead of a streamed reply. A round arrives when it is over; its draft is shown as
 * ghost text for a part of the time until the next round is expected, and its outcome after that. At most
 * the newest round is held so: where rounds come faster than frames, the last one of each frame.
 */
import type { Round } from "../bindings/Round";
import { frames } from "../frames";
import { ghostOf } from "../trace/ghost";

/** Of the time between rounds, so that the outcome is seen before the next draft. */
const SHARE = 0.55;
/** Where the next round comes sooner, it takes the held one's place. */
const SHORTEST_MS = 60;
const LONGEST_MS = 320;
/** With reduced motion nothing is shown that changes more often than about three times a second. */
const STILL_MS = 600;

export class Ghost {
  /** Of the held round; empty without one. */
  text = $state("");
  readonly #isStill: () => boolean;
  /** Rounds that were there; null before the first look, when none of them is new. */
  #seen: number | null = null;
  #seenAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `isStill` says whether the person wants reduced motion. */
  constructor(isStill: () => boolean) {
    this.#isStill = isStill;
  }

  /** Takes the rounds shown so far into account; the newest one is held if it is new and has a draft. */
  follow(rounds: readonly Round[]) {
    const { length } = rounds;
    if (length === this.#seen) return;
    const isFirst = this.#seen === null;
    const now = performance.now();
    const sinceMs = now - this.#seenAt;
    [this.#seen, this.#seenAt] = [length, now];
    this.release();
    if (isFirst || (this.#isStill() && sinceMs < STILL_MS)) return;
    const draft = ghostOf(rounds[length - 1]);
    if (draft === "") return;
    this.text = draft;
    const forMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, sinceMs * SHARE));
    this.#timer = setTimeout(() => frames.ask(this.#settle), forMs);
  }

  /** Shows the outcome of the held round now. */
  release() {
    clearTimeout(this.#timer);
    frames.forget(this.#settle);
    this.text = "";
  }

  readonly #settle = () => {
    this.text = "";
  };
}
