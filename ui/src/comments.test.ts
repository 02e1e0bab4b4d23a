// @vitest-environment node
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const OPENINGS = /^(?:What|Of|Those|That|The same|So|They|It)\b/;
const LONGEST = 100;
const RETIRED = /\b(?:anew|deaf|reckons?|manieth|unheard|pollution)\b/i;
/** Comments for tools, which cannot be wrapped. */
const DIRECTIVE = /^(?:svelte-ignore|eslint-disable|prettier-ignore|@vitest-environment)\b/;

const FOLDER = import.meta.dirname;

/** Sources of the page; tests/repository/language.rs checks Rust and so the bindings. */
const sources = readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
  .filter((path) => /^(?!bindings\b).*\.(?:ts|svelte|css)$/.test(path))
  .map((path) => [path, readFileSync(`${FOLDER}/${path}`, "utf8")] as const);

const ENDS: Readonly<Record<string, string>> = { "/*": "*/", "/**": "*/", "<!--": "-->" };

/** Comment lines that break a rule, each with its number. */
function violations(source: string): string[] {
  let end = "";
  let isFirst = false;
  return source.split("\n").flatMap((line, at) => {
    const begin = end === "" ? /^\s*(\/\*\*?|<!--|\/\/)/.exec(line)?.[1] : undefined;
    if (end === "" && begin === undefined) return [];
    if (begin !== undefined) {
      end = ENDS[begin] ?? "";
      isFirst = begin !== "//";
    }
    const comment = line.trim().replace(/^(?:\/\*\*?|<!--|\/\/|\*(?!\/))\s*/, "");
    const opens = isFirst && OPENINGS.test(comment);
    if (comment !== "") isFirst = false;
    if (comment.includes(end)) end = "";
    const isLong = line.length > LONGEST && !DIRECTIVE.test(comment);
    return opens || isLong || RETIRED.test(comment) ? [`${at + 1}: ${line.trim()}`] : [];
  });
}

test("comments keep the rules of language", () => {
  expect(sources.length).toBeGreaterThan(400);
  const found = sources.flatMap(([path, source]) =>
    violations(source).map((broken) => `${path}:${broken}`),
  );
  expect(found).toEqual([]);
});

test("each rule finds its violations and nothing else", () => {
  const numbers = (source: string) => violations(source).map((line) => Number.parseInt(line, 10));
  expect(numbers("/** What runs. */\n/**\n * Of rows.\n */\n/** The same. */")).toEqual([1, 3, 5]);
  expect(numbers("/** Italic */\n// That is all.\n/**\n * A.\n * What b.\n */")).toEqual([]);
  expect(numbers("<!-- They run. -->\n<!--\n  It runs.\n-->\n/* So. */\nWhat")).toEqual([1, 3, 5]);
  expect(
    numbers(`/* A\n   ${"b".repeat(98)}\n*/\n<!-- svelte-ignore ${"c".repeat(90)} -->`),
  ).toEqual([2]);
  expect(numbers(`// ${"a".repeat(98)}\nlet a = 1; // ${"a".repeat(98)}`)).toEqual([1]);
  expect(numbers('// Read anew.\nlet anew = "deaf";')).toEqual([1]);
});
