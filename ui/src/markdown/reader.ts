/**
 * Parses the text of a reply, which may grow, in steps: neither input nor drawing waits for a long
 * one.
 */
import { ReplyDocument } from "./document";
import { inSteps } from "./slices";

/** Fewer characters are parsed at once. */
const SHORT = 16_384;

interface Reading {
  text: string;
  whole: boolean;
  show: () => void;
}

export class ReplyReader {
  document = new ReplyDocument();
  #stop: (() => void) | null = null;
  #next: Reading | null = null;
  /** Whether something is shown that was parsed to its end. */
  #isShown = false;

  /** Whether a text is being parsed. */
  get isBusy(): boolean {
    return this.#stop !== null;
  }

  /** Begins with another text; `shown` where what is shown may stay until that is parsed. */
  reset(shown = false) {
    this.stop();
    this.document = new ReplyDocument();
    this.#isShown &&= shown;
  }

  /** Parses no further. What was begun cannot be continued, only {@link reset}. */
  stop() {
    this.#stop?.();
    this.#stop = null;
    this.#next = null;
  }

  /**
   * Calls `show` when the text is parsed: at once if little of it is new. Where nothing else is
   * shown, it is also called before, with what is parsed so far. `text` and `whole` as for {@link
   * ReplyDocument.update}; of texts that come while one is parsed, the last is next.
   */
  read(text: string, whole: boolean, show: () => void) {
    if (this.#stop) {
      this.#next = { text, whole, show };
      if (!this.#isShown) show();
    } else if (text.length - this.document.unread(whole) < SHORT) {
      this.document.update(text, whole);
      this.#finish(show);
    } else {
      this.#begin({ text, whole, show });
    }
  }

  #begin({ text, whole, show }: Reading) {
    let done = false as boolean;
    const stop = inSteps(this.document.steps(text, whole), () => {
      done = true;
      this.#finish(show);
    });
    if (done) return;
    this.#stop = stop;
    if (this.#isShown) return;
    this.document.showSoFar(text);
    show();
  }

  #finish(show: () => void) {
    const next = this.#next;
    this.#stop = null;
    this.#next = null;
    this.#isShown = true;
    show();
    if (next) this.read(next.text, next.whole, next.show);
  }
}
