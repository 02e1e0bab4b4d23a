import { describe, expect, test } from "vitest";
import { ReplyDocument } from "./document";
import { TextShapes } from "./textShapes";
import { plainText } from "./plainText";

/** Longest measured text; its half and a megabyte are measured too. */
const LONGEST = Number(process.env["FORETOKEN_LINEAR_LENGTH"] ?? 30_000);

/** Repeated pieces, as written by a model in a loop or to slow the page down. */
const LOOPS: Readonly<Record<string, readonly [piece: string, begin?: string]>> = {
  "lines that begin with two dollars": ["$$x\n"],
  "lines that begin with two dollars behind some": ["$$x\n", "a $$ b\n"],
  "paragraphs that begin with two dollars": ["$$x\n\n"],
  "lines with two dollars": ["a $$ b\n"],
  "lines of two dollars": ["$$\n"],
  dollars: ["$a "],
  "dollars in a row": ["$"],
  money: ["5$ and "],
  "round formulas that never close": ["\\("],
  "round formulas that close": ["\\(a\\) "],
  "displayed formulas that never close": ["\\[\n"],
  formulas: ["$a$ "],
  "links that never close": ["[a]("],
  links: ["[a](b) "],
  brackets: ["["],
  "closing brackets": ["]"],
  pictures: ["![a"],
  footnotes: ["[^1] "],
  notes: ["[^1]: a\n"],
  "many notes": ["\n[^#]: a [^#]\n"],
  definitions: ["[#]: /u\n"],
  "links by label": ["[a#] "],
  stars: ["*a "],
  "double stars": ["**a "],
  "stars between letters": ["a*b"],
  underlines: ["_a "],
  tildes: ["~~a "],
  backticks: ["`a"],
  "backticks of two lengths": ["` `` "],
  "backticks that grow": ["`#"],
  tags: ["<b>"],
  angles: ["<a"],
  addresses: ["http://a.b/c "],
  mail: ["a@b."],
  entities: ["&amp;"],
  ampersands: ["&a"],
  escapes: ["\\*"],
  backslashes: ["\\"],
  quotes: ["> "],
  "lines of quotes": ["> a\n"],
  lists: ["- "],
  items: ["- a\n"],
  "loose items": ["- a\n\n"],
  numbers: ["1. a\n"],
  "nested items": ["-\t"],
  tasks: ["- [ ] a\n"],
  headings: ["# a\n"],
  "underlined headings": ["a\n=\n"],
  rules: ["---\n"],
  fences: ["```\n"],
  "fenced code": ["```js\nlet a;\n```\n"],
  "a fence with info": ["~~~ a"],
  "indented code": ["    a\n"],
  "indented code with gaps": ["    a\n\n"],
  "table rows": ["| a | b |\n|---|---|\n"],
  "rows of one table": ["|a|b|\n"],
  cells: ["| a "],
  "empty lines": ["\n"],
  "lines of spaces": ["   \n"],
  spaces: [" "],
  tabs: ["\t"],
  breaks: ["a<br>"],
  lines: ["a b c\n"],
  paragraphs: ["a b c\n\n"],
  words: ["word "],
  letters: ["a"],
  emoji: ["😀"],
  thinking: ["<think>"],
  "ends of thinking": ["</think>\n"],
};

/** A text of about `length` characters. */
function loop(piece: string, length: number): string {
  let text = "";
  for (let at = 0; text.length < length; at += 1) text += piece.replaceAll("#", String(at));
  return text;
}

interface Step {
  name: string;
  run(text: string): void;
}

const drawn = (text: string, document: ReplyDocument) => {
  const shapes = new TextShapes(text, () => undefined);
  for (const { branch } of [...document.thought, ...document.answer]) shapes.of(branch);
};

const STEPS: readonly Step[] = [
  {
    name: "read and drawn",
    run(text) {
      const document = new ReplyDocument();
      document.update(text, true);
      drawn(text, document);
    },
  },
  {
    name: "read in ten updates as it grows",
    run(text) {
      const document = new ReplyDocument();
      for (let part = 1; part <= 10; part += 1) {
        document.update(text.slice(0, (text.length * part) / 10), false);
      }
    },
  },
  { name: "copied as plain text", run: (text) => void plainText(text) },
];

/** CPU time of this process in milliseconds. */
function timed(step: Step, text: string): number {
  const begin = process.cpuUsage();
  step.run(text);
  const { user, system } = process.cpuUsage(begin);
  return (user + system) / 1000;
}

/** Number of measurements, of which the minimum counts: garbage collection adds time. */
const TRIES = 5;
/** Shortest times that are compared. */
const SHORT_MS = 100;

describe.each(Object.entries(LOOPS))(
  "%s without end",
  (_, [piece, begin = ""]) => {
    test.each(STEPS)("take time in proportion to their length: $name", (step) => {
      const half = begin + loop(piece, LONGEST / 2);
      const whole = begin + loop(piece, LONGEST);
      let [least, most] = [Infinity, timed(step, whole)];
      // A short time needs no half to compare it with.
      if (most < 3 * SHORT_MS) return;
      for (let tries = 0; tries < TRIES; tries += 1) {
        least = Math.min(least, timed(step, half));
        if (most < 3 * Math.max(least, SHORT_MS)) break;
        most = Math.min(most, timed(step, whole));
      }
      expect(most).toBeLessThan(3 * Math.max(least, SHORT_MS));
    });
  },
  600_000,
);
