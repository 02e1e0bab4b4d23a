/** Duration of a trace's beginning in milliseconds: its rounds, without the prefill. */
import type { Round } from "../bindings/Round";
import type { Offsets } from "./offsets";
import { roundMs } from "./statistics";

/** Duration of the rounds that wrote the first `letters` UTF-16 units of the text; whole rounds. */
export function elapsedUntil(rounds: readonly Round[], offsets: Offsets, letters: number): number {
  let elapsed = 0;
  for (let at = 0; at < rounds.length && offsets.before(at) < letters; at += 1) {
    elapsed += roundMs(rounds, at);
  }
  return elapsed;
}
