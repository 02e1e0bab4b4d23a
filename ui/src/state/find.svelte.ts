/** The query in the open conversation and the current hit. The page finds where the hits are. */
import { phraseOf, wordsOf } from "../search/words";

export class Find {
  open = $state(false);
  query = $state("");
  /** Any of the words, where they begin, as in a search of all messages; else what was typed, anywhere. */
  any = $state(false);
  /** The message with the hit that is wanted first. */
  first = $state<number | null>(null);
  /** How many hits there are. */
  hits = $state(0);
  /** The present one, from 0. */
  at = $state(0);
  /** Grows with each step: also one to the same hit is one. */
  steps = $state(0);

  readonly words = $derived(this.any ? wordsOf(this.query) : phraseOf(this.query));

  /** Begins with nothing or what was looked for before. */
  start() {
    this.open = true;
  }

  /** Shows what a search of all messages found in a message. */
  show(query: string, message: number) {
    this.query = query;
    this.any = true;
    this.first = message;
    this.open = true;
  }

  /** Searches for the typed text as one phrase. */
  type(query: string) {
    this.query = query;
    this.any = false;
    this.first = null;
  }

  /** To the next hit (1) or the one before (-1), round the ends. */
  step(by: 1 | -1) {
    if (this.hits === 0) return;
    this.first = null;
    this.at = (this.at + by + this.hits) % this.hits;
    this.steps += 1;
  }

  close() {
    this.open = false;
    this.first = null;
    this.hits = 0;
  }
}
