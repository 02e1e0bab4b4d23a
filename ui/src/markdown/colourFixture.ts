/** The highlighting worker on the test's own thread. */
import { coloured, type Uncoloured } from "./colour";

export class LocalColours {
  /** Code sent to workers, and counts of workers started and ended. */
  static asked: string[] = [];
  static started = 0;
  static ended = 0;
  /** Text that makes the worker hang. */
  static endless = "ENDLESS";

  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: (() => void) | null = null;
  #ended = false;

  constructor() {
    LocalColours.started += 1;
  }

  postMessage(asked: Uncoloured) {
    LocalColours.asked.push(asked.code);
    if (asked.code.includes(LocalColours.endless)) return;
    setTimeout(() => {
      if (!this.#ended) this.onmessage?.({ data: structuredClone(coloured(asked)) });
    });
  }

  terminate() {
    this.#ended = true;
    LocalColours.ended += 1;
  }
}
