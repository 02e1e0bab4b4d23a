/** The query in the open conversation and the current hit. Components locate the hits. */
import { phraseOf, wordsOf } from "../search/words";

export class Find {
  open = $state(false);
  query = $state("");
  /**
   * Matches any of the words at its beginning, as the search of all messages does, instead of the
   * exact phrase.
   */
  any = $state(false);
  /** The message whose hit is shown first. */
  first = $state<number | null>(null);
  /** Number of hits. */
  hits = $state(0);
  /** Index of the current hit, from 0. */
  at = $state(0);
  /** Counter of steps; a step to the same hit counts as well. */
  steps = $state(0);

  readonly words = $derived(this.any ? wordsOf(this.query) : phraseOf(this.query));

  /** Opens the search with the previous query, if there is one. */
  start() {
    this.open = true;
  }

  /** Shows the hits of a search of all messages in a message. */
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

  /** Moves to the next hit (1) or the previous one (-1), and wraps around. */
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
