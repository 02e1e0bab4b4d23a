/** Converts a token's index in the reply into a reference to it in the trace. */
import type { Round } from "../bindings/Round";
import { emitted, type TokenRef } from "./round";

/** Reference to the reply's token at index `position`; null beyond the trace's end. */
export function tokenRefAt(rounds: readonly Round[], position: number): TokenRef | null {
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
