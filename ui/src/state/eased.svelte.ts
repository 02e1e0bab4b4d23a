/** A number that goes to its goal in a few frames, with what else is painted beside the text. */
import { frames } from "../frames";

/** Share of the way that a frame goes. */
const STEP = 0.5;

export class Eased {
  value = $state(0);
  #goal = 0;
  /** What is less than this away is there. */
  readonly #close: number;

  constructor(close: number) {
    this.#close = close;
  }

  /** Goes there from the next frame on. */
  to(goal: number) {
    this.#goal = goal;
    if (goal !== this.value) frames.ask(this.#approach, "beside");
  }

  /** Is there now. */
  set(goal: number) {
    this.#goal = goal;
    this.value = goal;
    this.stop();
  }

  /** Stays where it is. */
  stop() {
    frames.forget(this.#approach);
  }

  readonly #approach = () => {
    const rest = this.#goal - this.value;
    this.value = Math.abs(rest) <= this.#close ? this.#goal : this.value + STEP * rest;
    this.to(this.#goal);
  };
}
