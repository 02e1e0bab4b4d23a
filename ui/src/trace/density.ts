/**
 * A whole trace in a strip: drafted tokens that were accepted and that were not, by when they were
 * judged. A fold over the rounds, for the strip under the replay's scrubber.
 */
import type { Round } from "../bindings/Round";
import { count } from "./round";

/** What ended in one piece of the time. */
export interface Bucket {
  accepted: number;
  rejected: number;
  /** Drafted and never judged. */
  discarded: number;
}

/** The time from 0 to `end` in so many pieces of the same length. */
export function densityOf(rounds: readonly Round[], end: number, pieces: number): Bucket[] {
  const buckets = Array.from({ length: pieces }, () => ({
    accepted: 0,
    rejected: 0,
    discarded: 0,
  }));
  for (const round of rounds) {
    const share = end > 0 ? round.at_ms / end : 1;
    const bucket = buckets[Math.min(pieces - 1, Math.floor(share * pieces))];
    if (!bucket) continue;
    bucket.accepted += count(round, "accepted");
    bucket.rejected += count(round, "rejected");
    bucket.discarded += count(round, "discarded");
  }
  return buckets;
}
