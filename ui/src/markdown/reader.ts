/**
 * Parses a growing text of a reply in steps, so that a long one does not block input and drawing.
 */
import { ReplyDocument } from "./document";
import { inSteps } from "./slices";

/** Length up to which a text is parsed at once. */
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
  /** Whether the page shows a completely parsed text. */
  #isShown = false;

  /** Whether a text is being parsed. */
  get isBusy(): boolean {
    return this.#stop !== null;
  }

  /**
   * Starts another text; with `shown`, the old one stays on the page until the new one is parsed.
   */
  reset(shown = false) {
    this.stop();
    this.document = new ReplyDocument();
    this.#isShown &&= shown;
  }

  /** Stops parsing. Call {@link reset} before the next text. */
  stop() {
    this.#stop?.();
    this.#stop = null;
    this.#next = null;
  }

  /**
   * Parses a text and calls `show`, at once if little of it is new. Also calls it earlier with a
   * part, unless another text is shown. `text` and `whole` as in {@link ReplyDocument.update}; of
   * texts that arrive during parsing only the last is kept.
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
