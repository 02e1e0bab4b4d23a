/**
 * Recorded calls of commands, as lines of JSON: the command with its arguments, its events with
 * their times, and its answer or error. `scripts/record-ipc.mjs` writes them.
 */
import type { CommandError } from "../bindings/CommandError";
import type { Reply } from "../bindings/Reply";
import type { ReplyEvent } from "../bindings/ReplyEvent";
import type { Round } from "../bindings/Round";
import type { Speedup } from "../bindings/Speedup";
import { completed } from "../trace/stored";
import { textOf } from "../trace/text";

/** Times are in milliseconds since the call. */
export interface RecordedCall {
  command: string;
  /** Without arguments, the answer fits any. */
  args?: unknown;
  events: { at_ms: number; event: unknown }[];
  at_ms: number;
  answer?: unknown;
  error?: CommandError;
}

type Line = Pick<RecordedCall, "command" | "args"> | { at_ms: number };

export function callsIn(lines: string): RecordedCall[] {
  const calls: RecordedCall[] = [];
  for (const line of lines.trim().split("\n")) {
    const part = JSON.parse(line) as Line;
    const last = calls.at(-1);
    if ("command" in part) calls.push({ ...part, events: [], at_ms: 0 });
    else if ("event" in part) last?.events.push(part);
    else if (last) Object.assign(last, part);
  }
  return calls;
}

/** A recorded reply; the speed-ups are those after each round. */
export interface Recording {
  rounds: Round[];
  speedups: (Speedup | null)[];
  text: string;
  promptTokens: number;
  finish: Reply["reply"]["finish"];
}

/** The reply of recorded calls: of `send` and, after it, of `speedups`. */
export function recordingOf(lines: string): Recording {
  const calls = callsIn(lines);
  const [send, speedups] = ["send", "speedups"].map((name) =>
    calls.find(({ command }) => command === name),
  );
  const events = (send?.events ?? []).map(({ event }) => event as ReplyEvent);
  const { reply } = send?.answer as Reply;
  return {
    rounds: events.flatMap((event) => (event.type === "round" ? [completed(event.round)] : [])),
    speedups: (speedups?.answer ?? []) as Recording["speedups"],
    text: reply.text,
    promptTokens: reply.summary?.prompt_tokens ?? 0,
    finish: reply.finish,
  };
}

/** The rest of a reply after its first `letters` UTF-16 units, in whole rounds. */
export function restOf(recording: Recording, letters: number): Recording {
  const { rounds, speedups } = recording;
  let [next, length] = [0, 0];
  for (; next < rounds.length && length < letters; next += 1) {
    length += textOf(rounds.slice(next, next + 1)).length;
  }
  const begin = rounds[next - 1]?.at_ms ?? 0;
  const rest = rounds.slice(next);
  return {
    ...recording,
    rounds: rest.map((round, index) => ({ ...round, index, at_ms: round.at_ms - begin })),
    speedups: speedups.slice(next),
    text: textOf(rest),
  };
}
