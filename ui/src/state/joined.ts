/** The traces of a reply's parts as one sequence of rounds. The last trace may grow. */
import { untrack } from "svelte";
import type { Round } from "../bindings/Round";
import { Offsets } from "../trace/offsets";
import type { TokenRef } from "../trace/round";
import type { Trace } from "./trace.svelte";

export class JoinedTrace {
  /** Rounds of all parts. Not reactive: read {@link length} to depend on them. */
  readonly rounds: Round[] = [];
  readonly offsets = new Offsets();
  readonly #traces: readonly Trace[];

  constructor(traces: readonly Trace[]) {
    this.#traces = traces;
    untrack(() => this.length);
  }

  /** Appends new rounds and returns the number of all. */
  get length(): number {
    let before = 0;
    for (const trace of this.#traces) {
      const until = before + trace.length;
      for (let at = this.rounds.length; at < until; at += 1) {
        const round = trace.rounds[at - before];
        if (!round) break;
        this.rounds.push(round);
        this.offsets.add(round);
      }
      before = until;
    }
    return this.rounds.length;
  }

  /** Index of a part's first round, from 0. */
  startOf(part: number): number {
    return this.#traces.slice(0, part).reduce((rounds, { length }) => rounds + length, 0);
  }

  /** Converts a token of the joined trace into a part and a token of that part's trace. */
  toPart({ round, slot }: TokenRef): { part: number; ref: TokenRef } {
    let part = this.#traces.length - 1;
    while (part > 0 && this.startOf(part) > round) part -= 1;
    return { part, ref: { round: round - this.startOf(part), slot } };
  }

  /** Converts a token of a part's trace into one of the joined trace. */
  toJoined(part: number, { round, slot }: TokenRef): TokenRef {
    return { round: this.startOf(part) + round, slot };
  }
}
