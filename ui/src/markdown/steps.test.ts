import { expect, test, vi } from "vitest";
import { ReplyDocument } from "./document";
import { leavesOf } from "./nodes";
import { ReplyPage } from "./page";
import { ReplyReader } from "./reader";
import { NASTY, chance } from "./samples";
import { element, make } from "./shapes";
import { atOnce } from "./slices";
import { TextShapes } from "./textShapes";

const SAMPLES = Object.entries(NASTY);
/** All samples in one text, longer than a text that is parsed at once. */
const ALL = `${Object.values(NASTY).slice(0, -3).join("\n\n")}\n\n`.repeat(20);

const blocksOf = ({ thought, answer }: ReplyDocument) => [...thought, ...answer];

function parsed(text: string, longest?: number): ReplyDocument {
  const document = new ReplyDocument(longest);
  document.update(text, true);
  return document;
}

function readIn(document: ReplyDocument, text: string): string {
  const shapes = new TextShapes(text, () => undefined);
  const drawn = blocksOf(document).map(({ branch }) => shapes.of(branch) ?? "");
  return make(element("div", undefined, drawn)).textContent ?? "";
}

test.each([...SAMPLES, ["all of them", ALL] as const])(
  "%s split into short blocks has the same leaves and text",
  (_, text) => {
    const short = parsed(text, 30);
    let at = 0;
    for (const { from, to } of leavesOf(blocksOf(short).map(({ branch }) => branch))) {
      expect(from).toBe(at);
      at = to;
    }
    expect(at).toBe(text.length);
    expect(readIn(short, text)).toBe(readIn(parsed(text, Infinity), text));
  },
);

test.each([...SAMPLES, ["all of them", ALL] as const])(
  "%s split into short blocks is the same when parsed incrementally",
  (_, text) => {
    const random = chance(text.length);
    const growing = new ReplyDocument(30);
    for (let end = 0; end < text.length; end += Math.ceil((random() * text.length) / 9)) {
      growing.update(text.slice(0, end), false);
    }
    growing.update(text, true);
    expect(blocksOf(growing)).toEqual(blocksOf(parsed(text, 30)));
  },
);

test("a split list continues its numbers, and a split item has none", () => {
  const document = parsed(
    "3. one two three four\n\n   five six seven\n4. eight\n5. nine ten\n6. last",
    20,
  );
  const lists = document.answer.map(({ branch }) => branch);
  expect(lists.map(({ tag }) => tag)).toEqual(Array.from(lists, () => "ol"));
  expect(lists.length).toBeGreaterThan(2);
  const shown = lists.flatMap(({ start = 1, children }) =>
    children.map((item, at) => ("continued" in item ? null : start + at)),
  );
  expect(shown.filter((number) => number !== null)).toEqual([3, 4, 5, 6]);
  expect(shown).toContain(null);
});

const PROSE =
  "The **quick** brown fox jumps over the `lazy` dog, and [rests](https://a.example) for a while.\n";

/** Texts with short steps, by their beginning and their repeated piece. */
const LONG: Readonly<Record<string, readonly [begin: string, piece: string]>> = {
  prose: ["", `${PROSE}${PROSE}\n`],
  "a list": ["", `- ${PROSE}`],
  "a loose list": ["", `- ${PROSE}\n`],
  "a list in a list": ["- a\n", `  - ${PROSE}`],
  "a table": ["| a | b |\n|---|---|\n", "| **a** | b c `d` |\n"],
  "lines of two dollars and a letter": ["", "$$x\n"],
  "a formula without an end": ["$$\n", "x + y\n"],
  links: ["", "[a](https://b.example/c) "],
  "code in a fence": ["```js\n", "let a = b;\n"],
  "code in a quote": ["> ```\n", "> let a;\n"],
  "many fences": ["", "```js\nlet a;\n```\n\n"],
  "a paragraph": ["", PROSE],
  "a line": ["", PROSE.replace("\n", " ")],
  "a line without a space": ["", "a"],
  "short paragraphs": ["", "a\n\n"],
  quotes: ["", `> ${PROSE}`],
  brackets: ["", "["],
  "a heading": ["# ", PROSE.replace("\n", " ")],
  "an item": ["- ", PROSE.replace("\n", " ")],
};

const LENGTH = Number(process.env["FORETOKEN_STEP_LENGTH"] ?? 300_000);
const LONGEST_MS = 200;
/** Number of measurements, of which the minimum counts: other processes add time. */
const TRIES = 4;

/** CPU time of the longest step, in milliseconds. */
function longestStep(work: Iterator<unknown>): number {
  let longest = 0;
  for (let done = false; !done;) {
    const begin = process.cpuUsage();
    done = work.next().done === true;
    const { user, system } = process.cpuUsage(begin);
    longest = Math.max(longest, (user + system) / 1000);
  }
  return longest;
}

test.each(Object.entries(LONG))(
  "a long text: %s is parsed in short steps",
  (name, [begin, piece]) => {
    const text = begin + piece.repeat(Math.ceil(LENGTH / piece.length));
    let least = Infinity;
    for (let tries = 0; tries < TRIES && least > LONGEST_MS; tries += 1) {
      least = Math.min(least, longestStep(new ReplyDocument().steps(text, true)));
    }
    if (process.env["FORETOKEN_STEP_LENGTH"]) console.log(name, Math.round(least));
    expect(least).toBeLessThan(LONGEST_MS);
  },
  60_000,
);

test.each(Object.entries(LONG))(
  "a long text that grows: %s is parsed further in a short time",
  (_, [begin, piece]) => {
    const text = begin + piece.repeat(Math.ceil(LENGTH / piece.length));
    const document = new ReplyDocument();
    let least = Infinity;
    let length = text.length / 2;
    document.update(text.slice(0, length), false);
    for (let tries = 0; tries < TRIES && least > LONGEST_MS; tries += 1) {
      length += 100;
      const begun = process.cpuUsage();
      document.update(text.slice(0, length), false);
      const { user, system } = process.cpuUsage(begun);
      least = Math.min(least, (user + system) / 1000);
    }
    expect(least).toBeLessThan(LONGEST_MS);
  },
  60_000,
);

test("a long text is plain until it is parsed, and later texts wait", async () => {
  const text = `${PROSE}\n`.repeat(5000);
  const reader = new ReplyReader();
  const shown: { text: string; blocks: number }[] = [];
  const read = (length: number) => {
    const part = text.slice(0, length);
    reader.read(part, length === text.length, () => {
      shown.push({ text: part, blocks: reader.document.answer.length });
    });
  };
  read(text.length / 2);
  expect(shown).toHaveLength(1);
  const first = shown[0]?.blocks ?? 0;
  expect(first).toBeLessThan(2000);
  expect(leavesIn(reader.document)).toBe(text.length / 2);
  read(text.length - 1);
  read(text.length);
  while (reader.isBusy) await new Promise((resolve) => setTimeout(resolve));
  expect(shown.at(-1)).toEqual({ text, blocks: 5000 });
  expect(shown.filter(({ blocks }) => blocks === 2500)).toHaveLength(1);
  expect(blocksOf(reader.document)).toEqual(blocksOf(parsed(text)));
});

test("an abandoned text is not parsed further", async () => {
  const reader = new ReplyReader();
  let shown = 0;
  reader.read(`${PROSE}\n`.repeat(5000), true, () => (shown += 1));
  reader.stop();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(shown).toBe(1);
  expect(reader.isBusy).toBe(false);
});

function leavesIn(document: ReplyDocument): number {
  let letters = 0;
  for (const { from, to } of leavesOf(blocksOf(document).map(({ branch }) => branch))) {
    letters += to - from;
  }
  return letters;
}

test("parsing in steps and at once give the same result", () => {
  const document = new ReplyDocument();
  atOnce(document.steps(ALL, true));
  expect(blocksOf(document)).toEqual(blocksOf(parsed(ALL)));
});

test("a list of thousands of short items is split into parts that are drawn one by one", () => {
  const { answer } = parsed("- a\n".repeat(4096));
  const items = answer.map(({ branch }) => branch.children.length);
  expect(items).toEqual([...Array.from({ length: 8 }, () => 500), 96]);
});

test.each(["- a\n", "- a\n\n", "- ```js\n  a\n  ```\n", "```js\na\n```\n", "a\n\n"])(
  "a long text of %j is drawn in chunks of about a thousand elements",
  async (piece) => {
    const text = piece.repeat(3000);
    const shapes = new TextShapes(text, () => undefined);
    const root = document.createElement("div");
    const near: (() => void)[] = [];
    const page = new ReplyPage(root, false, (_, onChange) => {
      near.push(() => onChange(true));
      return () => undefined;
    });
    page.show(parsed(text), text, ({ branch }) => shapes.of(branch), false);
    for (const come of near) come();
    await vi.waitFor(() => expect(root.querySelector(".plain")).toBeNull(), 10_000);
    const elements = [...root.querySelectorAll(".chunk")].map(
      (chunk) => chunk.querySelectorAll("*").length,
    );
    expect(elements.length).toBeGreaterThan(4);
    expect(Math.max(...elements)).toBeLessThan(1100);
  },
);

test("a closed code block is final without a blank line after it, and an open one is not", () => {
  const unread = (text: string) => {
    const document = new ReplyDocument();
    document.update(text, false);
    return text.slice(document.unread(false));
  };
  expect(unread("```\na\n```\n```\nb\n")).toBe("```\nb\n");
  expect(unread("# a\nb\nc")).toBe("b\nc");
  expect(unread("```\na\n")).toBe("```\na\n");
  expect(unread("a\n# b\n")).toBe("a\n# b\n");
});

test("a displayed formula without end is a paragraph for each piece of its text", () => {
  const { answer } = parsed("$$x\n".repeat(10_000));
  expect(answer.filter(({ branch }) => !branch.continued)).toHaveLength(3);
  expect(parsed(`$$x${"\n".concat("y".repeat(99)).repeat(100)}$$`).answer).toHaveLength(1);
});
