import { describe, expect, test } from "vitest";
import { isNightly } from "../nightly";
import { ReplyDocument } from "./document";
import { leavesOf } from "./nodes";
import { NASTY } from "./samples";
import type { Block } from "./section";

function parsed(text: string, whole = true): ReplyDocument {
  const document = new ReplyDocument();
  document.update(text, whole);
  return document;
}

const blocksOf = ({ thought, answer }: ReplyDocument) => [...thought, ...answer];

function read(blocks: readonly Block[], text: string): string {
  const leaves = blocks.flatMap(({ branch }) => [...leavesOf([branch])]);
  let at = 0;
  for (const { from, to } of leaves) {
    expect(from).toBe(at);
    expect(to).toBeGreaterThan(from);
    at = to;
  }
  return leaves.map(({ from, to }) => text.slice(from, to)).join("");
}

const samples = Object.entries(NASTY);

test.each(samples)("the leaves of %s are its text, in order", (_, text) => {
  expect(read(blocksOf(parsed(text)), text)).toBe(text);
});

test.each(samples)(
  "%s parsed in pieces is the same as parsed at once, at every prefix",
  (_, text) => {
    const growing = new ReplyDocument();
    for (let end = 0; ; end += 1) {
      const prefix = text.slice(0, end);
      growing.update(prefix, false);
      expect(blocksOf(growing)).toEqual(blocksOf(parsed(prefix, false)));
      if (end === text.length) break;
    }
    growing.update(text, true);
    expect(blocksOf(growing)).toEqual(blocksOf(parsed(text)));
  },
  30_000,
);

test("final blocks are not parsed again", () => {
  const text = "one\n\ntwo\n\nthree\nfour";
  const document = parsed(text, false);
  const [one, two] = document.answer;
  document.update(`${text} five`, false);
  expect(document.answer[0]).toBe(one);
  expect(document.answer[1]).toBe(two);
});

test("a later definition turns text into links", () => {
  const document = parsed("see [here]\n\nmore\n", false);
  expect([...tagsIn(document.answer)]).not.toContain("a");
  document.update("see [here]\n\nmore\n\n[here]: https://a.example\n\nend\n", false);
  expect([...tagsIn(document.answer)]).toContain("a");
});

test("the thinking is separate from the answer", () => {
  const text = "<think>\na\n</think>\n\nb";
  const { thinking, thought, answer } = parsed(text);
  expect(thinking?.closed).toBe(true);
  expect(read(thought, text)).toBe("<think>\na\n</think>");
  expect(answer.map(({ from, to }) => text.slice(from, to))).toEqual(["\n\nb"]);
});

test("a reply that mentions the tags has no thinking", () => {
  expect(parsed("Use <think> and </think>.").thinking).toBeNull();
  expect(parsed("`</think>` ends it\n").thinking).toBeNull();
});

describe("a block that grows too long is split, and so is its rest", () => {
  const lines = (line: string, count: number) => Array(count).fill(line).join("");
  const grown = (head: string, body: string) => {
    const document = new ReplyDocument();
    const before = head + body;
    document.update(before, false);
    document.dropBefore(before, before.length - 200);
    const text = before + body.slice(0, 400);
    document.update(text, false);
    return { document, text };
  };

  test.each([
    ["a program stays code", "```js\n", "let a = '**b**'; # c\n", "code-block"],
    ["a program in a list stays code", "- so:\n  ```js\n", "  let a = 1;\n", "code-block"],
    ["a list stays one", "1. one\n", "2. two **b** three\n", "li"],
    ["a quote stays one", "> a\n", "> b and c and so on\n", "blockquote"],
    ["a table stays one", "| a | b |\n| - | - |\n", "| c | d |\n", "td"],
    ["a paragraph stays one", "text ", "and *more* of it\n", "em"],
  ])("%s", (_, head, line, tag) => {
    const { document, text } = grown(head, lines(line, 600));
    expect(document.answer.length).toBe(1);
    expect([...tagsIn(document.answer)]).toContain(tag);
    const from = document.answer[0]?.from ?? 0;
    expect(text.length - from).toBeLessThan(3000);
    const seen = [...leavesOf(document.answer.map(({ branch }) => branch))];
    expect(seen.map((leaf) => text.slice(leaf.from, leaf.to)).join("")).toBe(text.slice(from));
  });
});

test.each([
  ["quotes", "> ".repeat(10_000)],
  ["brackets", "[".repeat(10_000)],
  ["closed brackets", "[".repeat(5000) + "](a)".repeat(5000)],
  ["lists", "- ".repeat(10_000)],
  ["stars", "*a ".repeat(10_000)],
  ["links that never close", "[a](".repeat(10_000)],
  ["dollars", "$a ".repeat(10_000)],
  ["formulas that never close", "\\(".repeat(10_000)],
  [
    "a megabyte",
    "Some *words* and `code` in a line of text, and a [link](http://a.b).\n\n".repeat(15_000),
  ],
  ["a line of a megabyte", "Some *words* and `code` without an end. ".repeat(26_000)],
])(
  "ten thousand %s are parsed completely within a minute",
  (_, text) => {
    const leaves = blocksOf(parsed(text)).flatMap(({ branch }) => [...leavesOf([branch])]);
    expect(leaves.reduce((sum, { from, to }) => sum + to - from, 0)).toBe(text.length);
  },
  30_000,
);

const LONGEST = isNightly ? 1_000_000 : 200_000;

test.each([
  ["quotes", "> "],
  ["lists", "- "],
  ["numbered lists", "1. "],
  ["brackets", "["],
  ["emphasis", "**a "],
  ["tags", "<b>"],
  ["fences", "```\n"],
  ["formulas", "$$\n"],
  ["table cells", "| a "],
  ["backticks that never match", "` `` "],
])(
  "a long text of nested %s is parsed within a minute, completely and to a limited depth",
  (_, piece) => {
    const text = piece.repeat(LONGEST / piece.length);
    const begin = performance.now();
    const blocks = blocksOf(parsed(text));
    expect(performance.now() - begin).toBeLessThan(60_000);
    let letters = 0;
    let deepest = 0;
    const open = blocks.map(({ branch }) => ({ branch, depth: 1 }));
    for (let at = open.pop(); at; at = open.pop()) {
      const { branch, depth } = at;
      deepest = Math.max(deepest, depth);
      for (const child of branch.children) {
        if ("tag" in child) open.push({ branch: child, depth: depth + 1 });
        else letters += child.to - child.from;
      }
    }
    expect(letters).toBe(text.length);
    expect(deepest).toBeLessThan(40);
  },
  120_000,
);

function* tagsIn(blocks: readonly Block[]): Generator<string> {
  const open = blocks.map(({ branch }) => branch);
  for (let branch = open.pop(); branch; branch = open.pop()) {
    yield branch.tag;
    for (const child of branch.children) if ("tag" in child) open.push(child);
  }
}
