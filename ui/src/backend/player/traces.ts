/** Traces of the player's replies. */
import type { TraceStorage } from "../../bindings/TraceStorage";
import type { Recording } from "../recording";
import type { Handlers } from "./answers";

const DAY_MS = 86_400_000;

/** Rounds of a stored reply, with the speed-up after each. */
export type Trace = Pick<Recording, "rounds" | "speedups">;

export class Traces {
  readonly #traces = new Map<number, Trace>();

  readonly handlers: Handlers = {
    trace: ({ message }) => this.#traces.get(message)?.rounds ?? [],
    speedups: ({ message }) => this.#traces.get(message)?.speedups ?? [],
    trace_speedups: ({ rounds }) => rounds.map(() => null),
    trace_storage: () => this.#storage(),
  };

  has(message: number): boolean {
    return this.#traces.has(message);
  }

  keep(message: number, trace: Trace) {
    this.#traces.set(message, trace);
  }

  copy(from: number, to: number) {
    const trace = this.#traces.get(from);
    if (trace) this.#traces.set(to, trace);
  }

  /** Deletes traces of messages last used before so many days; `null` deletes all. */
  delete(olderThanDays: number | null, lastUses: Map<number, number>): TraceStorage {
    const before = olderThanDays === null ? Infinity : Date.now() - olderThanDays * DAY_MS;
    for (const [message, at] of lastUses) if (at < before) this.#traces.delete(message);
    return this.#storage();
  }

  #storage(): TraceStorage {
    const rounds = [...this.#traces.values()].flatMap((trace) => trace.rounds);
    const drafted = rounds.reduce((tokens, round) => tokens + round.drafted.length, 0);
    return { bytes: 14 * drafted + 40 * rounds.length, replies: this.#traces.size };
  }
}
