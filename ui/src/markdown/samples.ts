/** Texts for tests in which tokens are hard to place, and functions to cut them into tokens. */
import type { Round } from "../bindings/Round";
import { drafted, extra, round } from "../trace/fixtures";

export const NASTY: Readonly<Record<string, string>> = {
  nothing: "",
  "blank lines": "\n\n \n",
  "one line": "plain text",
  "blank lines around": "\n\n  text  \n\n\nmore\n\n",
  headings: "# One #\n\n##   Two\n\nThree\n=====\n\nFour\n---\n#no\n###### Six\n",
  emphasis: "**bold** and *it***alic***, ***both***, __under__ snake_case ~~gone~~ **open",
  "nested lists":
    "- a\n  - b\n\n    still b\n    1. one\n    2. two\n       ```js\n       let x;\n       ```\n- \n- c\n\n3. three\n4. four\n",
  tasks: "- [x] done\n- [ ] to do\n- [x]\n",
  quotes:
    "> a\n> b\nlazy\n>\n> > nested\n> - list\n>   more\n>\n> ```\n> code\n>\n> x\n> ```\n\nend",
  table:
    "before\n\n| a | b |\n|:--|--:|\n| 1 | `2|` |\n| **3** | |\n|| x \\| y |\nnot | in | line\n\nafter",
  "a table that is none": "text\n| a | b |\n| - | - |x\nmore\n\nend\n",
  "a long title": "[a]: /u\n'title\nmore\nend'\n\nx [a]\n",
  "table in a quote": "> | a |\n> |---|\n> | b |\n> | c |",
  code: "text\n```python title=x\ndef f():\n    return 1 < 2\n\n# not a heading\n```\n\n~~~\ntilde\n~~~~\n\n    indented\n\n\tmore\n\nend",
  "open fence": "so:\n\n```js\nlet a = `\n\n**no**\n",
  "empty fence": "```\n```\n",
  "inline code": "a `b` ``c ` d`` ` ` `open",
  links:
    '[text](https://example.org "title") <https://a.org> www.b.org me@c.org [x] [y][z] ![alt](http://p.org/i.png) [](http://e.org) [open](http://',
  references:
    "[a] and [b][A] and [none]\n\ntext\n\n[a]: https://a.example 'T'\n[b]:\n  <x>\n\nlater [a]\n",
  footnotes:
    "one[^1] and two[^b][^1], not [^0-9]\n\n[^1]: note\n[^b]: *b* and\nmore\n\ntext\n[^c]: c[^1]\n\n> [^q]: x\n",
  escapes: "\\*no\\* \\# \\\\ \\[ not closed, &amp; &lt;b&gt; &copy; &nope; &#65; 5 \\$ a&b",
  breaks: "one  \ntwo\\\nthree\nfour<br>five<br />\nsix",
  rules: "a\n\n---\n\n* * *\nb\n",
  "right to left":
    "# مرحبا بالعالم\n\nهذا **نص** عربي مع English في الوسط.\n\n- פריט ראשון `code`\n- שני: 1, 2, 3\n\n> اقتباس\n",
  emoji: "👩‍👩‍👧‍👦 a family, 🇪🇺 flag, e\u0301 accent, 👍🏽 and \u{1f600}\u{1f601}\n\n- 😀\n",
  "control characters":
    "a\u0000b\u0007\u001b[31mred\r\nnext\ttab \u202eover\u202c \u200b \ufeff x\u007f",
  formulas:
    "Let $a_b + c*d*e$ and \\(x_1\\), $5 or $6, $HOME/$USER.\n\n$$\n\\sum_{i=1}^n\n+ i\n- 1\n$$\n\n\\[ x = y \\]\n\nso:\n\\[\na\n\\]\nend $$x$$ done\n\n> $$\n> q\n> $$\n\n$$\nopen\n\nend",
  tags: '<script>alert(1)</script>\n\n<div onclick="x()">\n*hi*\n</div>\n\n<!-- no\n\ncomment --> <b>b</b> <img src=x onerror=alert(1)>\n\n<?php ?>\n\n<style>*{}</style>',
  addresses:
    "[x](javascript:alert(1)) [y](data:text/html,x) ![z](javascript:x) <javascript:alert(1)> [w](java\tscript:x) [v](#here) <file:///etc/passwd>",
  thinking: "<think>\nFirst, **x**.\n\n- a\n- b\n</think>\n\nThe answer is *4*.\n",
  "thinking that goes on": "<think>\nHm.\n\nWell",
  "thinking begun in the prompt": "Hm, so.\n\nYes.\n</think>\n\nThe answer.",
  "a language that is none": '```"><img/src=x>{}\nx\n```',
  spaces: `a${" ".repeat(510)}b\n`,
  "many quotes": `${">".repeat(200)} deep\n`,
  "many brackets": `${"[".repeat(100)}x${"]".repeat(100)} ${"*a ".repeat(40)}`,
};

/** Random numbers from 0 to 1, reproducible by their seed. */
export function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const NOISE = ["**", " not", "`", "\n\n", "| ", "# ", "", "😀", "</p>", "\u0007", "لا", "\t", "]("];

/** A trace of a text, cut between any characters, with random drafts. */
export function cut(text: string, seed: number): Round[] {
  const next = chance(seed);
  const characters = Array.from(text);
  const noise = () => NOISE[Math.floor(next() * NOISE.length)] ?? "";
  const rounds: Round[] = [];
  for (let at = 0; at < characters.length;) {
    const token = () => {
      // Tokens without text: the first half of an emoji, or an end mark.
      const length = next() < 0.1 ? 0 : next() < 0.5 ? 1 : Math.ceil(next() * 6);
      const piece = characters.slice(at, at + length).join("");
      at += length;
      return piece;
    };
    const accepted = Array.from({ length: Math.floor(next() * 4) }, () =>
      drafted(token(), "accepted"),
    );
    const isRight = next() < 0.4;
    const wrong = isRight
      ? []
      : [drafted(noise(), "rejected"), ...(next() < 0.5 ? [drafted(noise(), "discarded")] : [])];
    const last = isRight ? extra(token(), "bonus") : extra(token(), "recovered");
    rounds.push(round(rounds.length, { drafted: [...accepted, ...wrong], extra: last }));
  }
  return rounds;
}
