/**
 * Recordings for the backend in a browser, selected by words of the question.
 *
 * Each is standard output of these commands, with numbers rounded to four decimals:
 *
 *     foretoken-cli generate --target starter --json --threads 1 --top-p 0.95 --mode fastest ...
 *     lantern      --draft starter-draft --temperature 0.7 --seed 3
 *                  --prompt "Tell me a story about a fox who finds a lantern."
 *     speculation  --draft starter-draft --temperature 1 --seed 22
 *                  --prompt "What is speculative decoding?"
 *     count-ngram  --draft ngram --temperature 0.7 --seed 3
 *                  --prompt "Copy this text: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12."
 *
 * `markdown-sample` was written by hand and covers all of Markdown: the starter writes plain text.
 *
 * The built page has only the shortest recording: in the shell this backend is not used.
 *
 * The governor's decisions are samples, see sampleDecisions.ts.
 */
import type { Recording } from "../recording";
import { recordingOf, withoutDrafts } from "../recording";
import { withSampleDecisions } from "../sampleDecisions";
import count from "./count-ngram.jsonl?raw";
import lantern from "./lantern.jsonl?raw";
import markdown from "./markdown-sample.jsonl?raw";
import speculation from "./speculation.jsonl?raw";

const SHELF = import.meta.env.PROD
  ? [{ about: /./, lines: count }]
  : [
      { about: /markdown|tide/i, lines: markdown },
      { about: /specul|draft|decod|token/i, lines: speculation },
      { about: /count|number|repeat/i, lines: count },
      { about: /./, lines: lantern },
    ];

/** The first recording whose subject the question mentions, else the last one. */
export function recordingFor(question: string, drafts: boolean): Recording {
  const found = SHELF.find(({ about }) => about.test(question))?.lines ?? count;
  const recording = recordingOf(found);
  if (!drafts) return withoutDrafts(recording);
  return { ...recording, rounds: withSampleDecisions(recording.rounds) };
}
