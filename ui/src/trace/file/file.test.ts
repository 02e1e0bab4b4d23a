import { Blob } from "node:buffer";
import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import type { Message } from "../../bindings/Message";
import type { Round } from "../../bindings/Round";
import { drafted, extra, round, threeRounds, treeRound } from "../fixtures";
import { summaryOf } from "../summary";
import { textOf } from "../text";
import { openTrace } from "./open";
import { TraceFileError } from "./problem";
import { readTrace } from "./read";
import { traceFileName, writeTrace } from "./write";

const beside = (path: string) => readFileSync(`${import.meta.dirname}/${path}`, "utf8");
/** Standard output of `foretoken-cli generate --json`. */
const terminal = beside("terminal.jsonl");
const reply: Message = {
  id: 3,
  conversation: 1,
  role: "assistant",
  text: textOf(threeRounds),
  created_at: 1_760_000_000_000,
  finish: "stop",
  summary: summaryOf([...threeRounds], "stop", 10),
  target: "Starter",
  draft: null,
  problem: null,
  parent: null,
  siblings: [3],
  attachments: [],
  excerpts: [],
  calls: [],
  calls_start: null,
  unstored: null,
  speedup: null,
};
const program = "Foretoken 0.1.0";

const line = (value: object) => JSON.stringify(value);
const roundLine = (held: object) => line({ type: "round", ...held });
const first = line({ type: "trace", version: 1, target: "Starter" });
const done = line({ type: "done", text: "a b c d e", finish: "stop" });
const file = (...rounds: object[]) => [first, ...rounds.map(roundLine), done].join("\n");
const good = file(...threeRounds);

/** A round with one change, in its JSON form. */
function changed(change: object, index = 0): Round {
  return { ...(threeRounds[index] ?? expect.fail()), ...change };
}

function refusal(text: string): string {
  try {
    readTrace(text);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(TraceFileError);
    return thrown instanceof Error ? thrown.message : "";
  }
  return expect.fail("it was read");
}

test("a written file is read back unchanged", async () => {
  const rounds = [...threeRounds, { ...treeRound, index: 3, at_ms: 150 }];
  const text = textOf(rounds);
  const summary = { ...summaryOf(rounds, "stop", 10), restored_tokens: 7 };
  const written = { ...reply, text, summary };
  const read = readTrace(await writeTrace({ reply: written, rounds, prompt: "Why?", program }));
  const missing = { decision: null, experts: null, expected: null, row_price: null };
  const filled = rounds.map((held) => ({
    ...held,
    ...missing,
    drafted: held.drafted.map((token) => ({ ...token, survival: null })),
  }));
  expect(read.rounds).toEqual(filled);
  expect(read.header).toMatchObject({ version: 3, program, target: "Starter", prompt: "Why?" });
  expect(read.done).toMatchObject({ text, finish: "stop", ttft_ms: 100, restored_tokens: 7 });
  expect(read.notices).toEqual([]);
});

test("output of the terminal is a trace without a first line", () => {
  const read = readTrace(terminal);
  expect(read.header).toBeNull();
  expect(read.rounds.length).toBeGreaterThan(10);
  expect(read.done?.tokens).toBeGreaterThan(10);
  expect(read.notices).toEqual([]);
});

test("the example in docs/trace.md is a trace", () => {
  const page = beside("../../../../docs/trace.md");
  const example = /```jsonl\n([^`]+)```/.exec(page)?.[1] ?? expect.fail("no example");
  const { rounds, header, done, notices } = readTrace(example);
  expect(notices).toEqual([]);
  expect(header?.version).toBe(3);
  expect(rounds).toHaveLength(3);
  expect(done?.accepted).toBe(2);
});

test("experts read by a round are kept", async () => {
  const rounds = threeRounds.map((held, index) => ({ ...held, experts: index + 0.25 }));
  const read = readTrace(await writeTrace({ reply, rounds, prompt: "Why?", program }));
  expect(read.rounds.map(({ experts }) => experts)).toEqual([0.25, 1.25, 2.25]);
});

test("expectations of a round are kept", async () => {
  const tokens = [drafted("a", "accepted", { survival: 0.8 }), drafted(" b", "accepted")];
  const expected = { drafted: tokens, expected: 1.8, row_price: 1.25 };
  const rounds = [round(0, { ...expected, reason: "step_too_dear" })];
  const read = readTrace(await writeTrace({ reply, rounds, prompt: "Why?", program }));
  expect(read.rounds[0]).toMatchObject({ expected: 1.8, row_price: 1.25, reason: "step_too_dear" });
  expect(read.rounds[0]?.drafted.map(({ survival }) => survival)).toEqual([0.8, null]);
});

test("a round from before trees is a chain, with its own times", () => {
  const old = { index: 0, position: 0, extra: null, draft_length: 1, reason: "fixed" };
  const token = { token: 1, text: "a", draft_probability: 1, outcome: "accepted" };
  const rounds = [old, { ...old, index: 1 }].map((held) => ({
    ...held,
    drafted: [{ ...token, drafter: "model" }],
  }));
  const read = readTrace(file(...rounds));
  expect(read.rounds[0]).toMatchObject({ threshold: null, staged: false, decision: null });
  expect(read.rounds[0]?.drafted[0]).toMatchObject({ parent: null, acceptance: null });
  expect(read.rounds.map(({ at_ms }) => at_ms)).toEqual([1, 2]);
  expect(read.notices).toContainEqual(expect.stringContaining("have no end time"));
});

test("a last line without fields is enough", () => {
  const read = readTrace([roundLine(changed({})), '{"type":"done"}'].join("\n"));
  expect(read.done?.finish).toBe("stop");
  expect(read.text).toBe("a b c");
  expect(read.notices).toEqual([]);
});

test.each([
  ["the last line is incomplete", good.slice(0, -20), "The last line, 5, is incomplete"],
  ["there is no last line", good.split("\n").slice(0, -1).join("\n"), "ends before the reply"],
  ["rounds are missing", file(changed({}), changed({ index: 4 }, 1)), "3 rounds are missing"],
  ["the first round is missing", file(changed({ index: 1 })), "1 round is missing"],
  ["the rounds do not join to the text", file(changed({})), "does not match its rounds"],
  ["lines are of another type", `{"type":"note"}\n${good}\n{}`, "2 lines of unknown type"],
  ["another trace follows", `${good}\n${good}`, "more than one trace"],
  ["there are no rounds", [first, done].join("\n"), "no rounds"],
])("where %s, what there is is shown with a notice", (_, text, notice) => {
  expect(readTrace(text).notices).toContainEqual(expect.stringContaining(notice));
});

test("of two traces in a file only the first is shown", () => {
  expect(readTrace(`${good}\n${good}`).rounds).toHaveLength(3);
});

test("without rounds the text is that of the last line", () => {
  expect(readTrace([first, done].join("\n")).text).toBe("a b c d e");
});

const bad = (change: object) => file(changed(change));
const badToken = (change: object) => bad({ drafted: [drafted("a", "accepted", change)] });

test.each([
  ["prose", "Once upon a time\nthere was", "expected lines of JSON"],
  ["no line at all", "\n\n", "found no lines"],
  ["lines of other types only", '{"a":1}', "found 1 of other types"],
  ["a line that is no JSON", good.replace("}\n", "}\n{\n"), "line 2: expected JSON"],
  ["NaN, which is no JSON", good.replace('"at_ms":110', '"at_ms":NaN'), "line 3: expected JSON"],
  ["a line that is a list", `[1]\n${good}`, "line 1: expected a JSON object, found a list of 1"],
  ["a line that is nothing", `null\n${good}`, "line 1: expected a JSON object, found null"],
  ["a newer version", good.replace('"version":1', '"version":4'), "expected version 3, found 4"],
  ["no version", good.replace(',"version":1', ""), "field version: expected it, found nothing"],
  ["a text for a number", bad({ position: "9" }), "line 2, field position"],
  ["a round without its number", bad({ index: undefined }), "field index: expected it"],
  ["a negative number", bad({ index: -1 }), "whole number from 0, found -1"],
  ["half a token", badToken({ token: 1.5 }), "drafted[0].token: expected a whole number"],
  ["a probability above 1", badToken({ acceptance: 1.01 }), "from 0 to 1, found 1.01"],
  ["a negative probability", badToken({ target_probability: -0.1 }), "drafted[0].target_prob"],
  ["a probability that is no number", badToken({ draft_probability: null }), "found null"],
  ["an outcome of another program", badToken({ outcome: "lost" }), 'discarded, found "lost"'],
  ["a parent that points forwards", badToken({ parent: 3 }), "parent: expected null, found 3"],
  ["a token that is its own parent", badToken({ parent: 0 }), "parent: expected null, found 0"],
  ["a negative time", bad({ at_ms: -1 }), "field at_ms"],
  ["an endless time", good.replace('"at_ms":110', '"at_ms":1e999'), "found Infinity"],
  ["times going backwards", file(changed({}), changed({ at_ms: 99 }, 1)), "at least 100"],
  ["rounds going backwards", file(changed({}), changed({ index: 0 }, 1)), "index: expected at"],
  ["a draft beyond all bounds", bad({ draft_length: 1e9 }), "from 0 to 256, found 1000000000"],
  ["more drafted tokens than can be", bad({ drafted: Array(300).fill(null) }), "drafted"],
  ["a token of megabytes", badToken({ text: "a".repeat(1e5) }), "at most 65,536 characters"],
  ["fewer than no experts", bad({ experts: -1 }), "expected a number from 0, found -1"],
  ["a survival above 1", badToken({ survival: 1.01 }), "from 0 to 1, found 1.01"],
  ["more expected than drafted", bad({ expected: 258 }), "from 0 to 257, found 258"],
  ["a negative price", bad({ row_price: -0.1 }), "expected a number from 0, found -0.1"],
  ["markup for a decision", bad({ decision: "<b>" }), 'object or null, found "<b>"'],
])("%s is refused with a message", (_, text, words) => {
  const message = refusal(text);
  expect(message).toContain(words);
  expect(message).toMatch(/\.$/);
  expect(message.length).toBeLessThan(260);
});

test("control characters, half an emoji and long tokens are kept", async () => {
  const texts = ["\u0000\u001b[31m", "\ud83d", "\ude00", "\u202e", "x".repeat(4096), "<script>"];
  const rounds = texts.map((text, index) => round(index, { extra: extra(text, "plain") }));
  const text = texts.join("");
  const exported = { reply: { ...reply, text }, rounds, prompt: texts[1] ?? "", program };
  const read = await openTrace(new Blob([await writeTrace(exported)]));
  expect(read.text).toBe(text);
  expect(read.notices).toEqual([]);
});

test("a file is read in slices, with its progress", async () => {
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => (now += 5));
  const shares: number[] = [];
  const long = Array.from({ length: 2000 }, (_, index) =>
    roundLine(round(index, { extra: extra(" e", "plain") })),
  );
  const read = await openTrace(new Blob([long.join("\n")]), (share) => shares.push(share));
  expect(read.rounds).toHaveLength(2000);
  expect(shares.length).toBeGreaterThan(500);
  expect(shares).toEqual([...shares].sort((a, b) => a - b));
  expect(Math.max(...shares)).toBeLessThan(1);
  vi.restoreAllMocks();
});

test.each([
  ["an empty file", new Blob([]), "it is empty"],
  ["a picture", new Blob([Uint8Array.of(137, 80, 78, 71, 0, 0, 0, 13)]), "a file that is not text"],
  ["bytes that are no text", new Blob([Uint8Array.of(255, 254, 200)]), "expected lines of JSON"],
  ["one endless line", new Blob(["[".repeat(17_000_000)]), "more than 16 MB"],
])("%s is refused", async (_, blob, words) => {
  await expect(openTrace(blob)).rejects.toThrow(words);
});

test("a file of more than 500 MB is refused unread", async () => {
  const blob = { size: 600e6, slice: () => expect.fail("it was read") };
  await expect(openTrace(blob)).rejects.toThrow("found 600 MB");
});

test("a file that is cut within a character is incomplete", async () => {
  const bytes = new TextEncoder().encode(
    [roundLine(changed({})), '{"type":"done","text":"é'].join("\n"),
  );
  const read = await openTrace(new Blob([bytes.slice(0, -1)]));
  expect(read.notices[0]).toContain("is incomplete");
});

test("a file that begins with a byte order mark and breaks lines as Windows does is read", async () => {
  const read = await openTrace(new Blob(["\ufeff", good.replaceAll("\n", "\r\n")]));
  expect(read.rounds).toHaveLength(3);
});

test.each([
  ["Why is my draft slow?", "foretoken-trace-why-is-my-draft-slow-12.jsonl"],
  ["../../etc/passwd\\C:", "foretoken-trace-etc-passwd-c-12.jsonl"],
  ["Über Füchse", "foretoken-trace-uber-fuchse-12.jsonl"],
  ["狐狸", "foretoken-trace-狐狸-12.jsonl"],
  ["?!", "foretoken-trace-12.jsonl"],
  ["a ".repeat(100), `foretoken-trace-${"a-".repeat(19)}a-12.jsonl`],
])("the trace of a reply in %j gets a name that any system takes", (title, name) => {
  expect(traceFileName(title, 12)).toBe(name);
});
