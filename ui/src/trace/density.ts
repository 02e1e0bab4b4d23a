/**
 * Accepted and other draft tokens of a whole trace by time, for the strip under the replay's
 * scrubber.
 */
import type { Round } from "../bindings/Round";
import { count } from "./round";

/** Tokens of one interval, by outcome. */
export interface Bucket {
  accepted: number;
  rejected: number;
  /** Draft tokens that were never verified. */
  discarded: number;
}

/** Divides the time from 0 to `end` into `pieces` equal intervals. */
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
