/**
 * The draft shown ahead of a streamed reply. A round arrives when it has ended; its draft is shown
 * as ghost text for a part of the expected time to the next round, and its outcome after that. Only
 * the newest round is held back; where rounds come faster than frames, the last one of each frame.
 */
import type { Round } from "../bindings/Round";
import { frames } from "../frames";
import { ghostOf } from "../trace/ghost";

/** Share of the time between rounds for the draft; the rest shows its outcome. */
const SHARE = 0.55;
/** Shortest time for a draft; an earlier next round replaces it. */
const SHORTEST_MS = 60;
const LONGEST_MS = 320;
/** With reduced motion, nothing changes more often than about three times a second. */
const STILL_MS = 600;

export class Ghost {
  /** Ghost text of the held round; empty without one. */
  text = $state("");
  readonly #isStill: () => boolean;
  /** Number of rounds seen; null before the first call, which holds nothing back. */
  #rounds: number | null = null;
  #changedAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `isStill` returns whether reduced motion is on. */
  constructor(isStill: () => boolean) {
    this.#isStill = isStill;
  }

  /** Updates the number of rounds; holds the newest one back if it is new and has a draft. */
  follow(rounds: readonly Round[]) {
    const { length } = rounds;
    if (length === this.#rounds) return;
    const isFirst = this.#rounds === null;
    const now = performance.now();
    const sinceMs = now - this.#changedAt;
    [this.#rounds, this.#changedAt] = [length, now];
    this.release();
    if (isFirst || (this.#isStill() && sinceMs < STILL_MS)) return;
    const draft = ghostOf(rounds[length - 1]);
    if (draft === "") return;
    this.text = draft;
    const forMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, sinceMs * SHARE));
    this.#timer = setTimeout(() => frames.request(this.#settle), forMs);
  }

  /** Shows the outcome of the held round now. */
  release() {
    clearTimeout(this.#timer);
    frames.cancel(this.#settle);
    this.text = "";
  }

  readonly #settle = () => {
    this.text = "";
  };
}
