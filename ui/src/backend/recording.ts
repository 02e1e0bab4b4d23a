/** Reads what the terminal writes for a reply (`generate --json`): JSON lines, rounds then `done`. */
import type { Drafted } from "../bindings/Drafted";
import type { Finish } from "../bindings/Finish";
import type { Round } from "../bindings/Round";
import type { Summary } from "../bindings/Summary";
import { statisticsOf } from "../trace/statistics";
import { emitted } from "../trace/round";

export interface Recording {
  rounds: Round[];
  text: string;
  promptTokens: number;
  finish: Finish;
}

type Line =
  | ({ type: "round" } & OldRound)
  | { type: "done"; text: string; prompt_tokens: number; finish: Finish };

/** Recordings from before drafts could be trees lack what these brought. */
type OldDrafted = Omit<Drafted, "parent"> & { parent?: number | null };
type OldRound = Omit<Round, "drafted" | "threshold" | "staged"> & {
  drafted: OldDrafted[];
  threshold?: number | null;
  staged?: boolean;
};

function completed(old: OldRound): Round {
  const drafted = old.drafted.map((token) => ({ ...token, parent: token.parent ?? null }));
  return { ...old, drafted, threshold: old.threshold ?? null, staged: old.staged ?? false };
}

/** @throws SyntaxError when a line is no JSON or the recording has no end. */
export function parseRecording(lines: string): Recording {
  const rounds: Round[] = [];
  for (const line of lines.split("\n")) {
    if (line.trim() === "") continue;
    const { type, ...rest } = JSON.parse(line) as Line;
    if (type === "round") {
      rounds.push(completed(rest as OldRound));
    } else {
      const done = rest as Extract<Line, { type: "done" }>;
      return { rounds, text: done.text, promptTokens: done.prompt_tokens, finish: done.finish };
    }
  }
  throw new SyntaxError(
    'the recording has no end: expected a last line of type "done". Record it again.',
  );
}

/** The same reply decoded without drafts: a round a token, each as slow as a round's verifying. */
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

/** The numbers the shell would store for these rounds. */
export function summaryOf(rounds: Round[], finish: Finish, promptTokens: number): Summary {
  const folded = statisticsOf(rounds);
  const first = rounds[0];
  const laterTokens = folded.tokens - (first ? emitted(first) : 0);
  const elapsed = rounds.at(-1)?.at_ms ?? 0;
  const laterMs = elapsed - (first?.at_ms ?? 0);
  return {
    finish,
    prompt_tokens: promptTokens,
    reused_tokens: 0,
    tokens: folded.tokens,
    rounds: folded.rounds,
    drafted: folded.drafted,
    judged: folded.judged,
    accepted: folded.accepted,
    acceptance_rate: folded.acceptanceRate,
    tokens_per_round: folded.tokensPerRound ?? 0,
    ttft_ms: folded.ttftMs ?? 0,
    tokens_per_second: laterMs > 0 ? (laterTokens * 1000) / laterMs : null,
    elapsed_ms: elapsed,
    times: folded.times,
    settings: null,
  };
}
