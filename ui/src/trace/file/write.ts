/** Writes a reply as a trace file: a header, a line per round, and a line with its numbers. */
import type { Message } from "../../bindings/Message";
import type { Round } from "../../bindings/Round";
import { pause } from "./pause";
import { VERSION } from "./schema";

/** Longest part of a title in a file name, in characters. */
const MAX_SLUG = 40;
/** Rounds written before control returns to the page. */
const ROUNDS_A_SLICE = 2000;

export interface Exported {
  reply: Message;
  rounds: readonly Round[];
  /** The question; null if it is unknown. */
  prompt: string | null;
  /** Name and version of the program that wrote the file. */
  program: string;
}

export async function writeTrace({ reply, rounds, prompt, program }: Exported): Promise<string> {
  const { target, draft, created_at, text, finish, summary } = reply;
  const about = { version: VERSION, program, target, draft, prompt, created_at };
  const lines = [JSON.stringify({ type: "trace", ...about })];
  for (const [index, round] of rounds.entries()) {
    lines.push(JSON.stringify({ type: "round", ...round }));
    if (index % ROUNDS_A_SLICE === ROUNDS_A_SLICE - 1) await pause();
  }
  lines.push(JSON.stringify({ type: "done", text, finish, ...summary }));
  return lines.join("\n") + "\n";
}

/** "foretoken-trace-why-is-my-draft-slow-12.jsonl" */
export function traceFileName(title: string, reply: number): string {
  const words = title
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu);
  const slug = Array.from((words ?? []).join("-"))
    .slice(0, MAX_SLUG)
    .join("")
    .replace(/-$/, "");
  return ["foretoken-trace", slug, reply].filter((part) => part !== "").join("-") + ".jsonl";
}
