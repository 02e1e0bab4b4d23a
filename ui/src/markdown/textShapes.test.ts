import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { LocalColours } from "./colourFixture";
import { ReplyDocument } from "./document";
import { ReplyPage } from "./page";
import { NASTY } from "./samples";
import { TextShapes } from "./textShapes";

function draw(text: string, onReady = () => {}): HTMLElement {
  const root = document.createElement("div");
  const parsed = new ReplyDocument();
  parsed.update(text, true);
  const shapes = new TextShapes(text, onReady);
  new ReplyPage(root, false).show(parsed, text, ({ branch }) => shapes.of(branch), false);
  return root;
}

/** Modules for highlighting and formulas are loaded on first use. */
beforeAll(async () => {
  vi.stubGlobal("Worker", LocalColours);
  const here = vi.fn();
  draw("```js\n1\n```\n\n$x$", here);
  await vi.waitFor(() => expect(here).toHaveBeenCalledTimes(2), 30_000);
}, 30_000);

afterAll(() => vi.unstubAllGlobals());

/** Starts each test in its own time slice. */
beforeEach(() => new Promise((done) => setTimeout(done)));

test("Markdown becomes elements, its marks vanish", () => {
  const shown = draw("# One #\n\n- **two**\n- `three`\n\n| a | b |\n| - | - |\n| 1 | 2 |");
  expect(shown.querySelector("h1")?.textContent).toBe("One");
  expect(shown.querySelector("li strong")?.textContent).toBe("two");
  expect([...shown.querySelectorAll("td")].map((cell) => cell.textContent)).toEqual(["1", "2"]);
  expect(shown.textContent).not.toMatch(/[*#|`]/);
});

test("code runs from left to right, also in a line of Hebrew", () => {
  const shown = draw("שלום `let x = f();` שלום\n\n```js\nf();\n```");
  const codes = [...shown.querySelectorAll("code")];
  expect(codes.map((code) => code.closest("[dir]")?.getAttribute("dir"))).toEqual(["ltr", "ltr"]);
});

test("entities, escapes and line breaks are shown as their meaning", () => {
  expect(draw("a &amp; b \\*c\\* &nope;").textContent).toContain("a & b *c* &nope;");
  expect(draw("one\\\ntwo  \nthree<br>four").querySelector("p")?.textContent).toMatch(
    /^one\ntwo ?\nthree\nfour$/,
  );
});

test("a code block keeps its text exactly, names its language and can be copied", () => {
  const code = 'if a < b && c > "d":\n    pass';
  const shown = draw("```python\n" + code + "\n```");
  expect(shown.querySelector("pre")?.textContent).toBe(code);
  expect(shown.querySelector(".code-head span")?.textContent).toBe("python");
  expect(shown.querySelector("button[data-copy]")).not.toBeNull();
});

test("a long line of code scrolls, also by keyboard, or is wrapped", () => {
  const code = "```js\nlet a;\n```";
  const scrolled = draw(code).querySelector("pre");
  expect(scrolled?.tabIndex).toBe(0);
  expect(scrolled?.getAttribute("aria-label")).toBe("Code, js");
  const shapes = new TextShapes(code, () => undefined, true);
  const parsed = new ReplyDocument();
  parsed.update(code, true);
  const root = document.createElement("div");
  new ReplyPage(root, false).show(parsed, code, ({ branch }) => shapes.of(branch), false);
  expect(root.querySelector("pre")?.hasAttribute("tabindex")).toBe(false);
  expect(root.querySelector("[data-wrap]")?.getAttribute("aria-pressed")).toBe("true");
});

test("code in a quote or a list excludes their marks", () => {
  expect(draw("> ```\n> a\n>\n> b\n> ```").querySelector("pre")?.textContent).toBe("a\n\nb");
  expect(draw("- x\n\n  ```\n  a\n   b\n  ```").querySelector("pre")?.textContent).toBe("a\n b");
});

test("code in a known language is highlighted and keeps its text", async () => {
  const text = "```js\nconst a = 'b'; // c\n```";
  const here = vi.fn();
  draw(text, here);
  await vi.waitFor(() => expect(here).toHaveBeenCalledTimes(1));
  const shown = draw(text);
  expect(shown.querySelector(".hljs-keyword")?.textContent).toBe("const");
  expect(shown.querySelector("pre")?.textContent).toBe("const a = 'b'; // c");
});

test("a list keeps the number it starts at, a column its alignment, a task its state", () => {
  expect(draw("3. three").querySelector("ol")?.getAttribute("start")).toBe("3");
  expect(draw("| a |\n| -: |\n| 1 |").querySelector("td")?.dataset["align"]).toBe("right");
  expect(draw("- [x] done\n- [ ] open").textContent).toBe("☑ done☐ open");
});

test("a list is loose if blank lines separate its items or an item's blocks", () => {
  const isLoose = (text: string) => draw(text).querySelector("ul")?.className === "loose";
  expect(isLoose("- a\n- b")).toBe(false);
  expect(isLoose("- a\n\n- b")).toBe(true);
  expect(isLoose("- a\n\n  more\n- b")).toBe(true);
});

test("an unfinished code block is a code block while it streams", () => {
  expect(draw("```js\nlet a").querySelector("pre")?.textContent).toBe("let a");
});

test("a pipe in code in a table is unescaped only there", () => {
  const source = "| `x \\| y` | \\| | `a\\b` |\n|--|--|--|\n| ``\\|`\\|`` | **`p \\| q`** | |";
  const shown = draw(source);
  const codes = [...shown.querySelectorAll("code")].map(({ textContent }) => textContent);
  expect(codes).toEqual(["x | y", "a\\b", "|`|", "p | q"]);
  expect(draw("`x \\| y`").querySelector("code")?.textContent).toBe("x \\| y");
});

test("an empty cell keeps its column", () => {
  const shown = draw("| a | b |\n|--|--|\n| | 2 |");
  const cells = [...shown.querySelectorAll("tbody td")];
  expect(cells.map(({ textContent }) => textContent)).toEqual(["", "2"]);
});

test.each([
  ["[a](https://x.org/y 'z')", "https://x.org/y", "a"],
  ["<https://x.org>", "https://x.org/", "https://x.org"],
  ["www.x.org", "https://www.x.org/", "www.x.org"],
  ["me@x.org", "mailto:me@x.org", "me@x.org"],
  ["![a cat](https://x.org/c.png)", "https://x.org/c.png", "a cat"],
  ["[a][b]\n\n[b]: https://x.org", "https://x.org/", "a"],
  ["[](https://x.org)", "https://x.org/", "https://x.org"],
])("%s is a link", (text, address, name) => {
  const link = draw(text).querySelector("a");
  expect(link?.href).toBe(address);
  expect(link?.textContent).toBe(name);
});

test("a footnote is a number in the text, and its note has the same number", () => {
  const shown = draw("So[^1] and so[^b][^1].\n\n[^1]: word\n[^b]: A *note*\n  of lines.");
  expect([...shown.querySelectorAll("p")].map(({ textContent }) => textContent)).toEqual([
    "So1 and sob1.",
    "1 word",
    "b A note\n  of lines.",
  ]);
  const numbers = [...shown.querySelectorAll("sup")].map(({ textContent }) => textContent);
  expect(numbers).toEqual(["1", "b", "1", "1", "b"]);
  expect(shown.querySelector("a")).toBeNull();
});

test("a pattern that looks like a footnote is text", () => {
  expect(draw("match [^0-9] or [^a]").textContent).toBe("match [^0-9] or [^a]");
});

test("brackets without an address are text", () => {
  expect(draw("see [1] and [a][b] and [x *y*]").textContent).toBe("see [1] and [a][b] and [x y]");
});

describe("formulas", () => {
  test.each([
    ["$a_b$", false],
    ["\\(a_b\\)", false],
    ["$$a_b$$", true],
    ["\\[a_b\\]", true],
    ["$$\n- a_b\n+ c\n$$", true],
    ["so:\n\\[\na_b\n\\]\nthen", true],
    ["- x\n  $$\n  a_b\n  $$", true],
    ["> $$\n> a_b\n> $$", true],
  ])("%j is typeset", (text, displayed) => {
    const shown = draw(text);
    expect(shown.querySelectorAll(".katex")).toHaveLength(1);
    expect(shown.querySelector(".katex-display") !== null).toBe(displayed);
  });

  test.each([
    "10$/month or 20$/month",
    "(5$/10$)",
    "^a$|^b$",
    "US$5 and A$6",
    "$5 (or 6$)",
    "$5 million, not 6$",
    "restaurants of $$ to $$$",
    "$$$ or $$",
    "每月10$、每年100$",
    "价格$5到$10",
  ])("money and patterns are text: %j", (text) => {
    expect(draw(text).querySelector(".formula")).toBeNull();
  });

  test.each([
    ["设$x$为整数", "x"],
    ["变量$a_b$，以及", "a_b"],
    ["関数$f$は連続", "f"],
    ["함수 $f$는 연속", "f"],
    ["the $n$th and the $2n$th", "n"],
    ["two $x$s", "x"],
    ["costs 5$ where $x$ is", "x"],
    ["$10^{3}$ and $2x + 3$", "10^{3}"],
  ])("a formula beside letters is typeset: %j", (text, tex) => {
    const set = draw(text).querySelector(".formula:not(.source) annotation");
    expect(set?.textContent).toBe(tex);
  });

  test.each(["$5 or $6", "$ a $", "$HOME/$USER", "a $", "$$", "\\( open", "`$a$`", "\\$a$"])(
    "%j is none",
    (text) => {
      expect(draw(text).querySelector(".formula")).toBeNull();
    },
  );

  test("a formula that KaTeX rejects is shown as source", () => {
    const shown = draw("$\\frac{$ and $\\nosuch$ and $x$");
    const sources = [...shown.querySelectorAll(".formula.source")];
    expect(sources.map(({ textContent }) => textContent)).toEqual(["$\\frac{$", "$\\nosuch$"]);
  });

  test.each([
    "$\\href{javascript:alert(1)}{x}$",
    "$\\includegraphics{https://x.org/a.png}$",
    "$\\htmlStyle{color:red}{x}$",
    "$\\def\\a{\\a\\a}\\a$",
    "$\\rule{9999em}{9999em}$",
  ])("%s is harmless", (text) => {
    const shown = draw(text);
    expect(shown.querySelector("a, img, [onclick]")).toBeNull();
    for (const box of shown.querySelectorAll<HTMLElement>("[style]")) {
      expect(Number.parseFloat(box.style.width || "0")).toBeLessThan(100);
    }
  });
});

test("thinking is folded away before the answer", () => {
  const shown = draw(NASTY["thinking"] ?? "");
  const details = shown.querySelector("details");
  expect(details?.open).toBe(false);
  expect(details?.querySelector("summary")?.textContent).toBe("Thoughts");
  expect(details?.textContent).toContain("First, x.");
  expect(shown.lastElementChild?.textContent.trim()).toBe("The answer is 4.");
});

describe("text of a model cannot", () => {
  const ALLOWED = new Set(
    "DETAILS SUMMARY DIV P H1 H2 H3 H4 H5 H6 UL OL LI BLOCKQUOTE PRE CODE TABLE THEAD TBODY TR TH TD STRONG EM DEL SUP SPAN A HR BUTTON".split(
      " ",
    ),
  );

  test.each(Object.entries(NASTY))("create an element or a link: %s", (_, text) => {
    for (const one of draw(text).querySelectorAll("*:not(.katex *)")) {
      expect(ALLOWED).toContain(one.tagName);
      const names = [...one.attributes].map(({ name }) => name);
      expect(names.filter((name) => /^on|^src|^style/.test(name))).toEqual([]);
      const href = one.getAttribute("href");
      if (href !== null) expect(href).toMatch(/^(https?|mailto):/);
    }
  });

  test("create tags, which are shown as text", () => {
    const shown = draw('<script>alert(1)</script> <b onclick="x()">hi</b>\n\n<div>\n*x*\n</div>');
    expect(shown.querySelector("script, b, [onclick]")).toBeNull();
    expect(shown.textContent).toContain("<script>alert(1)</script>");
    expect(shown.textContent).toContain("<div>");
  });

  test.each([
    "![a cat](https://evil.org/cat.png)",
    "![a cat][there]\n\n[there]: https://evil.org/cat.png",
    "<img src='https://evil.org/cat.png'>",
    '<link rel="stylesheet" href="https://evil.org/x.css"><video src="https://evil.org/v"></video>',
    '<svg onload="alert(1)"><image href="https://evil.org/x"/></svg>',
    "<iframe src='https://evil.org'></iframe><object data='https://evil.org'></object>",
    "<p style='background:url(https://evil.org/x)'>x</p>",
    "$\\includegraphics{https://evil.org/cat.png}$",
    "$\\htmlData{x=1}{y}$ $\\url{https://evil.org}$",
  ])("fetch anything: %s", (text) => {
    const shown = draw(text);
    const fetches = "img,link,video,audio,source,svg,image,iframe,object,embed,script,style,[src]";
    expect(shown.querySelector(fetches)).toBeNull();
    expect(shown.querySelector("[style*=url]")).toBeNull();
  });

  test.each([
    ...["javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd"],
    ...["JaVaScRiPt:x", "&#106;avascript:x", "//evil.org", "/etc/passwd", " javascript:x"],
  ])("link to %s", (address) => {
    expect(draw(`[x](${address})`).querySelector("a")).toBeNull();
  });
});

test("of thousands of formulas in one block only the first are typeset", async () => {
  const text = "$x$ ".repeat(400);
  draw(text);
  await vi.waitFor(() => expect(draw("$x$").querySelector(".katex")).not.toBeNull());
  const formulas = draw(text).querySelectorAll(".formula");
  expect(formulas).toHaveLength(400);
  expect(formulas[399]?.textContent).toBe("$x$");
  expect(formulas[399]?.className).toBe("formula source");
});
