import { expect, test } from "vitest";

/** Folders whose comments keep the rules; a folder is added once it does. tests/language.rs has them for Rust. */
const CLEAN = [
  "arena",
  "attachments",
  "backend",
  "check",
  "commands",
  "heatmap",
  "markdown",
  "messages",
  "search",
  "settings",
  "speculation",
  "state",
  "trace",
];

const OPENINGS = /^(?:What|Of|Those|That|The same|So|They|It)\b/;
const LONGEST = 100;
const RETIRED = /\b(?:anew|deaf|reckons?|manieth|unheard|pollution)\b/i;

const sources = import.meta.glob<string>(["./**/*.ts", "!./**/*.test.ts"], {
  query: "?raw",
  import: "default",
  eager: true,
});

/** Lines that break a rule, each with its number. */
function violations(source: string): string[] {
  const lines = source.split("\n");
  return lines.flatMap((line, at) => {
    const comment = /^\s*(?:\/\*\*|\*|\/\/) ?(.*)$/.exec(line)?.[1];
    if (comment === undefined) return [];
    const begins = /^\s*\/\*\*/.test(line) || lines[at - 1]?.trim() === "/**";
    const opens = begins && OPENINGS.test(comment);
    const isBroken = opens || line.length > LONGEST || RETIRED.test(comment);
    return isBroken ? [`${String(at + 1)}: ${line.trim()}`] : [];
  });
}

test("comments of clean folders keep the rules of language", () => {
  const read = Object.entries(sources).filter(([path]) => CLEAN.includes(path.split("/")[1] ?? ""));
  expect(read.length).toBeGreaterThan(40);
  const found = read.flatMap(([path, source]) =>
    violations(source).map((broken) => `${path}:${broken}`),
  );
  expect(found).toEqual([]);
});

test("each rule finds its violations and nothing else", () => {
  const numbers = (source: string) => violations(source).map((line) => Number.parseInt(line, 10));
  expect(numbers("/** What runs. */\n/**\n * Of rows.\n */\n/** The same. */")).toEqual([1, 3, 5]);
  expect(numbers("/** Italic */\n// That is all.\n/**\n * A.\n * What b.\n */")).toEqual([]);
  expect(numbers(`// ${"a".repeat(98)}\nlet a = 1; // ${"a".repeat(98)}`)).toEqual([1]);
  expect(numbers('// Read anew.\nlet anew = "deaf";')).toEqual([1]);
});
