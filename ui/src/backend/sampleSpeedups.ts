/**
 * SAMPLE speed-ups for recordings and synthetic replies in an ordinary browser, under the
 * assumption that plain passes cost the same everywhere. The engine measures the real ones.
 */
import type { Message } from "../bindings/Message";
import type { Round } from "../bindings/Round";
import type { Speedup } from "../bindings/Speedup";
import { count, emitted } from "../trace/round";

/** Time of a plain pass as a share of the mean round with a draft. */
const PASS_SHARE = 0.42;

/** Speed-ups after each round; null after the first, and before the first draft. */
export function sampleSpeedups(rounds: readonly Round[]): (Speedup | null)[] {
  const [first, last] = [rounds[0], rounds.at(-1)];
  if (!first || !last) return [];
  const pass = (PASS_SHARE * (last.at_ms - first.at_ms)) / Math.max(1, rounds.length - 1);
  let [plainMs, elapsedMs, drafted] = [0, 0, false];
  return rounds.map((round, index) => {
    const before = rounds[index - 1];
    if (!before) return null;
    const ms = round.at_ms - before.at_ms;
    const gains = count(round, "accepted") > 0;
    plainMs += gains ? emitted(round) * pass : Math.min(pass, ms);
    elapsedMs += ms;
    drafted ||= round.drafted.length > 0;
    return drafted ? speedupOf(plainMs, elapsedMs, 1) : null;
  });
}

/** Speed-up over several replies, or over the parts of one. */
export function sampleSum(speedups: readonly (Speedup | null)[], replies: number): Speedup | null {
  const known = speedups.filter((speedup) => speedup !== null);
  const sum = (of: (speedup: Speedup) => number) =>
    known.reduce((total, speedup) => total + of(speedup), 0);
  return speedupOf(
    sum(({ plain_ms }) => plain_ms),
    sum(({ elapsed_ms }) => elapsed_ms),
    replies,
  );
}

/**
 * Adds speed-ups to the messages of a branch; each part of a continued reply includes the earlier
 * ones.
 */
export function withSpeedups(messages: readonly Message[]): Message[] {
  const filled: Message[] = [];
  for (const message of messages) {
    const before = filled.at(-1);
    const part = message.role === "assistant" && before?.role === "assistant";
    const earlier = part ? before.speedup : null;
    const speedup = sampleSum([earlier, message.summary?.speedup ?? null], 1);
    filled.push({ ...message, speedup });
  }
  return filled;
}

function speedupOf(plain_ms: number, elapsed_ms: number, replies: number): Speedup | null {
  if (elapsed_ms <= 0) return null;
  const factor = plain_ms / elapsed_ms;
  return { factor, saved_ms: plain_ms - elapsed_ms, plain_ms, elapsed_ms, replies };
}
