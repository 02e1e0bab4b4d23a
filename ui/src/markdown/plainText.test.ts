import { expect, test } from "vitest";
import { ReplyDocument } from "./document";
import { leavesOf } from "./nodes";
import { plainText } from "./plainText";
import { NASTY } from "./samples";

test.each([
  ["# Title\n\nSome **bold** and `code`.", "Title\n\nSome bold and code."],
  ["- a\n- b\n  - c", "- a\n- b\n  - c"],
  ["3. three\n\n4. four", "3. three\n\n4. four"],
  ["- [x] done", "- ☑ done"],
  ["> one\n> two\n>\n> three", "> one\n> two\n>\n> three"],
  ["```js\nlet a = 1;\n\n  b();\n```", "let a = 1;\n\n  b();"],
  ["| a | b |\n| - | - |\n| **1** | |\n| 2 | x y |", "a\tb\n1\t\n2\tx y"],
  ["so $x_1$ and\n\n$$\na^2\n$$", "so x_1 and\n\na^2"],
  [
    "[text](https://a.org/b) <https://c.org> me@d.org",
    "text (https://a.org/b) https://c.org me@d.org",
  ],
  ["a &amp; b \\*c\\* one<br>two", "a & b *c* one\ntwo"],
  ["a\n\n---\n\nb", "a\n\n---\n\nb"],
  ["<think>\nhm\n</think>\n\nYes.", "Yes."],
  ["see [a]\n\n[a]: https://a.org", "see a (https://a.org/)"],
  ["", ""],
])("%j becomes %j", (markdown, text) => {
  expect(plainText(markdown)).toBe(text);
});

test.each(Object.entries(NASTY))("plain text includes all visible text of %s", (_, text) => {
  const parsed = new ReplyDocument();
  parsed.update(text, true);
  const plain = plainText(text);
  for (const { kind, from, to, shown } of leavesOf(parsed.answer.map(({ branch }) => branch))) {
    if (kind !== "text") continue;
    for (const [word] of (shown ?? text.slice(from, to)).matchAll(/\p{L}+/gu)) {
      expect(plain).toContain(word);
    }
  }
});
