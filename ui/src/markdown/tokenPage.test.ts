import { beforeEach, describe, expect, test } from "vitest";
import type { Round } from "../bindings/Round";
import { extra, round } from "../trace/fixtures";
import { Offsets } from "../trace/offsets";
import { textOf } from "../trace/text";
import { NASTY, cut } from "./samples";
import { TokenPage, windowAfter, windowBefore } from "./tokenPage";

let root: HTMLElement;
beforeEach(() => {
  root = document.createElement("div");
});

/** A trace that can grow. */
function traceOf(rounds: readonly Round[]) {
  const trace = { rounds: [] as Round[], offsets: new Offsets() };
  const add = (more: readonly Round[]) => {
    for (const one of more) {
      trace.rounds.push(one);
      trace.offsets.add(one);
    }
  };
  add(rounds);
  return { ...trace, add };
}

function show(rounds: readonly Round[], first = 0, end: number | null = null) {
  new TokenPage(root).show(traceOf(rounds), { first, end }, false);
}

/** What a person may copy and a screen reader reads. */
function read(): string {
  const copy = root.cloneNode(true) as HTMLElement;
  for (const hidden of copy.querySelectorAll("[aria-hidden=true], summary")) hidden.remove();
  return copy.textContent;
}

const chips = () => [...root.querySelectorAll<HTMLElement>("[data-testid=token-chip]")];

const ALLOWED = new Set(
  "DETAILS SUMMARY DIV P H1 H2 H3 H4 H5 H6 UL OL LI BLOCKQUOTE PRE CODE TABLE THEAD TBODY TR TH TD STRONG EM DEL SPAN".split(
    " ",
  ),
);

const cases = Object.entries(NASTY).flatMap(([name, text]) =>
  [1, 3].map((seed) => [name, seed, text] as const),
);

describe.each(cases)("%s, cut %d", (_, seed, text) => {
  const rounds = cut(text, seed);

  test("reads as the reply's text, drafts and marks aside", () => {
    show(rounds);
    expect(textOf(rounds)).toBe(text);
    expect(read()).toBe(text);
  });

  test("has every token once, with its outcome, in reading order", () => {
    show(rounds);
    const shown = chips().map(({ dataset }) => [dataset["round"], dataset["slot"]].join("."));
    expect(new Set(shown).size).toBe(shown.length);
    const tokens = rounds.reduce(
      (sum, { drafted, extra: last }) => sum + drafted.length + (last ? 1 : 0),
      0,
    );
    expect(shown.length).toBe(tokens);
    const emitted = chips().filter((chip) => !chip.matches("[aria-hidden]"));
    const texts = emitted.map((chip) => chip.dataset["text"] ?? chip.textContent);
    expect(texts.join("")).toBe(text);
  });

  test("is the same when it came bit by bit as when it is drawn at once", () => {
    const trace = traceOf([]);
    const page = new TokenPage(root);
    const step = Math.ceil(rounds.length / 16);
    for (let at = 0; at < rounds.length; at += step) {
      trace.add(rounds.slice(at, at + step));
      page.show(trace, { first: 0, end: null }, true);
    }
    page.show(trace, { first: 0, end: null }, false);
    const grown = root.cloneNode(true);
    show(rounds);
    expect(grown.isEqualNode(root)).toBe(true);
  });

  test("holds no element and no address that a text could have brought", () => {
    show(rounds);
    for (const one of root.querySelectorAll("*")) {
      expect(ALLOWED).toContain(one.tagName);
      expect([...one.attributes].filter(({ name }) => /^on|href|src|style/.test(name))).toEqual([]);
    }
  });

  test("reads as the text of a window's rounds", () => {
    const [first, end] = [Math.floor(rounds.length / 3), Math.ceil((rounds.length * 2) / 3)];
    show(rounds, first, end);
    expect(read()).toBe(textOf(rounds.slice(first, end)));
  });
});

test("a token that runs over several parts of the text is one chip of several pieces", () => {
  show([
    round(0, { extra: extra("**bo", "plain") }),
    round(1, { extra: extra("ld** and", "plain") }),
  ]);
  const pieces = [...root.querySelectorAll('[data-round="1"][data-slot="0"]')];
  expect(pieces.map(({ textContent }) => textContent)).toEqual(["ld", "**", " and"]);
  expect(pieces.filter((piece) => piece.matches("[data-testid]"))).toHaveLength(1);
  expect(root.querySelector("strong")?.textContent).toBe("**bold**");
});

test("a rejected token stands in the block of what replaced it", () => {
  const rounds = cut("one\n\n", 4).concat([]);
  const at = rounds.length;
  rounds.push(
    round(at, {
      drafted: [{ ...rejected("# no") }],
      extra: extra("two", "recovered"),
    }),
  );
  show(rounds);
  const wrong = root.querySelector(`[data-round="${at}"][data-slot="0"]`);
  expect(wrong?.parentElement?.textContent).toContain("two");
  expect(wrong?.nextElementSibling?.textContent).toBe("two");
});

function rejected(text: string) {
  return {
    token: 1,
    text,
    parent: null,
    draft_probability: 0.5,
    target_probability: 0.1,
    acceptance: 0.2,
    outcome: "rejected" as const,
    drafter: "model" as const,
  };
}

test("a reply that has tokens and no text shows them", () => {
  show([round(0, { drafted: [rejected("x")], extra: extra("", "recovered") })]);
  expect(chips()).toHaveLength(2);
});

test("table cells, list items and code keep their shape around drafts", () => {
  const text = "| a | b |\n|--|--|\n| 1 | 2 |\n\n- x\n  - y\n\n```js\nlet a;\nb();\n```\n";
  show(cut(text, 7));
  expect(root.querySelectorAll("tbody td")).toHaveLength(2);
  expect(root.querySelectorAll("li li")).toHaveLength(1);
  const code = root.querySelector("pre")?.cloneNode(true) as HTMLElement;
  for (const hidden of code.querySelectorAll("[aria-hidden=true]")) hidden.remove();
  expect(code.textContent.trimEnd()).toBe("```js\nlet a;\nb();\n```");
});

test("white space between blocks takes no room, but is there and has its marks", () => {
  show([round(0, { extra: extra("a\n\nb", "plain") })]);
  const gap = [...root.querySelectorAll(".unseen")];
  expect(gap.map(({ textContent }) => textContent)).toEqual(["\n\n"]);
  expect(root.querySelector(".mark")?.textContent).toBe("↵↵");
});

describe("a reply that grows without end", () => {
  const many = (line: string) =>
    Array.from({ length: 2000 }, (_, index) =>
      round(index, { drafted: [rejected("x")], extra: extra(line, "recovered") }),
    );

  test.each([
    ["an endless paragraph", " word"],
    ["an endless list", "- item\n"],
    ["many paragraphs", "one\n\n"],
  ])(
    "as %s never has more than 400 tokens on the page",
    (_, line) => {
      const trace = traceOf([]);
      const page = new TokenPage(root);
      const rounds = many(line);
      let first = 0;
      for (let at = 0; at < rounds.length; at += 250) {
        trace.add(rounds.slice(at, at + 250));
        first = page.show(trace, { first: 0, end: null }, true);
        expect(chips().length).toBeLessThanOrEqual(400);
        expect(chips().length).toBeGreaterThanOrEqual(200);
      }
      expect(read()).toBe(textOf(rounds.slice(first)));
      expect(first).toBeGreaterThan(800);
    },
    30_000,
  );

  test("can be shown from an earlier round again", () => {
    const trace = traceOf(many(" word"));
    const page = new TokenPage(root);
    page.show(trace, { first: 0, end: null }, true);
    page.show(trace, { first: 0, end: null }, true, 100_000);
    page.show(trace, { first: 10, end: 20 }, true);
    expect(read()).toBe(" word".repeat(10));
  });
});

test("a window has about as many tokens as asked for", () => {
  const rounds = Array.from({ length: 100 }, (_, index) =>
    round(index, { drafted: [rejected("x")], extra: extra("a", "recovered") }),
  );
  expect(windowBefore(rounds, 100, 40)).toBe(80);
  expect(windowBefore(rounds, 10, 40)).toBe(0);
  expect(windowAfter(rounds, 20, 40)).toBe(40);
  expect(windowAfter(rounds, 90, 40)).toBeNull();
});
