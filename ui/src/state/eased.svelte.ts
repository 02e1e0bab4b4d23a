/** A number that approaches its goal over a few frames, after the text of each frame is painted. */
import { frames } from "../frames";

/** Share of the remaining distance covered by a frame. */
const STEP = 0.5;

export class Eased {
  value = $state(0);
  #goal = 0;
  /** Distance below which the goal counts as reached. */
  readonly #close: number;

  constructor(close: number) {
    this.#close = close;
  }

  /** Approaches `goal` from the next frame on. */
  to(goal: number) {
    this.#goal = goal;
    if (goal !== this.value) frames.request(this.#approach, "beside");
  }

  /** Jumps to `goal` at once. */
  set(goal: number) {
    this.#goal = goal;
    this.value = goal;
    this.stop();
  }

  /** Stops at the current value. */
  stop() {
    frames.cancel(this.#approach);
  }

  readonly #approach = () => {
    const rest = this.#goal - this.value;
    this.value = Math.abs(rest) <= this.#close ? this.#goal : this.value + STEP * rest;
    this.to(this.#goal);
  };
}
