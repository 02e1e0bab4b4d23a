/** From a token's number in the reply to its place in the trace. */
import type { Round } from "../bindings/Round";
import { emitted, type Place } from "./round";

/** The place of the reply's token number `position`, from 0; null where the trace ends before it. */
export function placeOf(rounds: readonly Round[], position: number): Place | null {
  let before = 0;
  for (const [index, round] of rounds.entries()) {
    const inside = position - before;
    before += emitted(round);
    if (inside < 0 || position >= before) continue;
    const accepted = [...round.drafted.keys()].filter(
      (slot) => round.drafted[slot]?.outcome === "accepted",
    );
    return { round: index, slot: accepted[inside] ?? round.drafted.length };
  }
  return null;
}
