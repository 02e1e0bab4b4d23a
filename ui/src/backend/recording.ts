/** Recorded replies for the backend in a browser, and their form without drafts. */
import type { Finish } from "../bindings/Finish";
import type { Round } from "../bindings/Round";
import { readTrace } from "../trace/file/read";
import { textOf } from "../trace/text";

export interface Recording {
  rounds: Round[];
  text: string;
  promptTokens: number;
  finish: Finish;
}

/**
 * Parses the output of `generate --json`.
 *
 * @throws TraceFileError
 */
export function recordingOf(lines: string): Recording {
  const { rounds, text, done } = readTrace(lines);
  return {
    rounds,
    text,
    promptTokens: done?.prompt_tokens ?? 0,
    finish: done?.finish ?? "stop",
  };
}

/** The rest of a reply after its first `letters` UTF-16 units, in whole rounds. */
export function restOf(recording: Recording, letters: number): Recording {
  let said = 0;
  const next = recording.rounds.findIndex((round) => {
    if (said >= letters) return true;
    said += textOf([round]).length;
    return false;
  });
  const left = next < 0 ? [] : recording.rounds.slice(next);
  const begin = recording.rounds[next - 1]?.at_ms ?? 0;
  const rounds = left.map((round, index) => ({ ...round, index, at_ms: round.at_ms - begin }));
  return { ...recording, rounds, text: textOf(rounds) };
}

/** The reply as decoded without drafts: a round per token, each with the time of a verification. */
export function withoutDrafts(recording: Recording): Recording {
  const rounds: Round[] = [];
  let atMs = recording.rounds[0]?.at_ms ?? 0;
  for (const round of recording.rounds) {
    const accepted = round.drafted.filter(({ outcome }) => outcome === "accepted");
    const tokens = round.extra ? [...accepted, round.extra] : accepted;
    tokens.forEach(({ token, text }, offset) => {
      const times = { ...round.times, draft_ms: 0 };
      if (rounds.length > 0) atMs += times.verify_ms + times.sample_ms + times.rest_ms;
      rounds.push({
        index: rounds.length,
        position: round.position + offset,
        drafted: [],
        extra: { token, text, kind: "plain" },
        draft_length: 0,
        reason: "off",
        threshold: null,
        staged: false,
        times,
        at_ms: atMs,
      });
    });
  }
  return { ...recording, rounds };
}
