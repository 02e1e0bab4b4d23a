/** The recordings that come with the page, and which of them answers a question. */
import type { Recording } from "../recording";
import { parseRecording, withoutDrafts } from "../recording";
import count from "./count-ngram.jsonl?raw";
import lantern from "./lantern.jsonl?raw";
import speculation from "./speculation.jsonl?raw";

const SHELF = [
  { about: /specul|draft|decod|token/i, lines: speculation },
  { about: /count|number|repeat/i, lines: count },
  { about: /./, lines: lantern },
];

/** The recording whose subject the question names first on the shelf; the story for all others. */
export function recordingFor(question: string, draft: string): Recording {
  const found = SHELF.find(({ about }) => about.test(question))?.lines ?? lantern;
  const recording = parseRecording(found);
  return draft === "none" ? withoutDrafts(recording) : recording;
}
