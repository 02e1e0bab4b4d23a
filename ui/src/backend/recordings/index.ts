/**
 * Recordings for the player. Recorded in the real window by `scripts/record-ipc.mjs`: the replies
 * `lantern`, `speculation`, `count-ngram` and `plain`, the engine's status and the built-in presets
 * in `engine`, `check` and `arena`. Written by hand: `markdown-sample`, a reply with all of
 * Markdown; `library`, models that no test computer has; `browser`, answers where an ordinary
 * browser has nothing to answer.
 *
 * The built page has only what a synthetic reply needs, since the shell does not use the player.
 */
import type { EngineStatus } from "../../bindings/EngineStatus";
import { callsIn, recordingOf, type RecordedCall, type Recording } from "../recording";
import arena from "./arena.jsonl?raw";
import browser from "./browser.jsonl?raw";
import check from "./check.jsonl?raw";
import count from "./count-ngram.jsonl?raw";
import engine from "./engine.jsonl?raw";
import lantern from "./lantern.jsonl?raw";
import library from "./library.jsonl?raw";
import markdown from "./markdown-sample.jsonl?raw";
import plain from "./plain.jsonl?raw";
import speculation from "./speculation.jsonl?raw";

const REPLIES = import.meta.env.PROD
  ? [{ about: /./, lines: count }]
  : [
      { about: /markdown|tide/i, lines: markdown },
      { about: /specul|draft|decod|token/i, lines: speculation },
      { about: /count|number|repeat/i, lines: count },
      { about: /./, lines: lantern },
    ];

const CALLS = (import.meta.env.PROD ? [browser, engine] : [library, check, arena, browser, engine])
  .map(callsIn)
  .flat();

/** The first recorded reply whose subject the question mentions. */
export function replyTo(question: string, drafts: boolean): Recording {
  if (!drafts && !import.meta.env.PROD) return recordingOf(plain);
  return recordingOf(REPLIES.find(({ about }) => about.test(question))?.lines ?? count);
}

/** The recorded call of a command with these arguments, else its first one. */
export function callOf(command: string, args: object = {}): RecordedCall | undefined {
  const calls = CALLS.filter((call) => call.command === command);
  const same = JSON.stringify(args);
  return calls.find((call) => JSON.stringify(call.args) === same) ?? calls[0];
}

/** The recorded status of the engine, with the sample models if there are any. */
export function recordedStatus(): EngineStatus {
  const calls = CALLS.filter(({ command }) => command === "watch_engine");
  const first = calls.map(({ events }) => events[0]?.event as EngineStatus);
  return structuredClone(first.reduceRight((status, sample) => ({ ...status, ...sample })));
}
