import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, test } from "vitest";
import type { Round } from "../bindings/Round";
import { isNightly } from "../nightly";
import { extra, round } from "../trace/fixtures";
import { ghostOf } from "../trace/ghost";
import { Offsets } from "../trace/offsets";
import { textOf } from "../trace/text";
import { recordingOf } from "../backend/recording";
import { ReplyDocument } from "./document";
import { ReplyPage } from "./page";
import { NASTY, cut } from "./samples";
import { TextShapes } from "./textShapes";
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

/** Text that can be copied and that screen readers read. */
function read(): string {
  const copy = root.cloneNode(true) as HTMLElement;
  for (const hidden of copy.querySelectorAll("[aria-hidden=true], summary, .code-head"))
    hidden.remove();
  return copy.textContent;
}

const chips = () => [...root.querySelectorAll<HTMLElement>("[data-testid=token-chip]")];

const ALLOWED = new Set(
  "DETAILS SUMMARY DIV P H1 H2 H3 H4 H5 H6 UL OL LI BLOCKQUOTE PRE CODE TABLE THEAD TBODY TR TH TD STRONG EM DEL SUP SPAN BUTTON".split(
    " ",
  ),
);

const cases = Object.entries(NASTY).flatMap(([name, text]) =>
  (isNightly ? [1, 3] : [1]).map((seed) => [name, seed, text] as const),
);

describe.each(cases)("%s, cut %d", (_, seed, text) => {
  const rounds = cut(text, seed);

  test("has the reply's text, except drafts and marks", () => {
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
    const emitted = chips().filter((chip) => !chip.closest("[aria-hidden]"));
    const texts = emitted.map((chip) => chip.dataset["text"] ?? chip.textContent);
    expect(texts.join("")).toBe(text);
  });

  test("is the same drawn incrementally and at once", () => {
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

  test("has no element and no link from the text", () => {
    show(rounds);
    for (const one of root.querySelectorAll("*")) {
      expect(ALLOWED).toContain(one.tagName);
      expect([...one.attributes].filter(({ name }) => /^on|href|src|style/.test(name))).toEqual([]);
    }
  });

  test("has the text of a window's rounds", () => {
    const [first, end] = [Math.floor(rounds.length / 3), Math.ceil((rounds.length * 2) / 3)];
    show(rounds, first, end);
    expect(read()).toBe(textOf(rounds.slice(first, end)));
  });
});

test("a token across several parts of the text is one chip of several pieces", () => {
  show([
    round(0, { extra: extra("**bo", "plain") }),
    round(1, { extra: extra("ld** and", "plain") }),
  ]);
  const pieces = [...root.querySelectorAll('[data-round="1"][data-slot="0"]')];
  expect(pieces.map(({ textContent }) => textContent)).toEqual(["ld", "**", " and"]);
  expect(pieces.filter((piece) => piece.matches("[data-testid]"))).toHaveLength(1);
  expect(root.querySelector("strong")?.textContent).toBe("**bold**");
});

test("a rejected token is in the block of its replacement", () => {
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
  const fold = wrong?.closest(".fold");
  expect(fold?.parentElement?.textContent).toContain("two");
  expect(fold?.nextElementSibling?.textContent).toBe("two");
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

test("a reply with tokens but no text shows them", () => {
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

test("white space between blocks takes no room, but is present with its marks", () => {
  show([round(0, { extra: extra("a\n\nb", "plain") })]);
  const gap = [...root.querySelectorAll(".unseen")];
  expect(gap.map(({ textContent }) => textContent)).toEqual(["\n\n"]);
  expect(root.querySelector(".mark")?.textContent).toBe("↵↵");
});

describe("a reply that grows without end", () => {
  const many = (line: string) =>
    Array.from({ length: 4000 }, (_, index) =>
      round(index, { drafted: [rejected("x")], extra: extra(line, "recovered") }),
    );

  test.each([
    ["an endless paragraph", " word", 2000],
    ["an endless list", "- item\n", 3000],
    ["many paragraphs", "one\n\n", 3000],
  ])(
    "as %s never has more on the page than can be laid out in a frame",
    (_, line, most) => {
      const trace = traceOf([]);
      const page = new TokenPage(root);
      const rounds = many(line);
      let first = 0;
      for (let at = 0; at < rounds.length; at += 200) {
        trace.add(rounds.slice(at, at + 200));
        first = page.show(trace, { first: 0, end: null }, true);
        expect(chips().length).toBeLessThanOrEqual(most);
        // A large window stays full when the beginning is dropped.
        expect(chips().length).toBeGreaterThanOrEqual(Math.min(2 * (at + 200), 1198));
      }
      expect(read()).toBe(textOf(rounds.slice(first)));
      expect(first).toBeGreaterThan(2400);
      page.show(trace, { first: 0, end: null }, false, 10_000);
      expect(read()).toBe(textOf(rounds));
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

test("a window has about the requested number of tokens", () => {
  const rounds = Array.from({ length: 100 }, (_, index) =>
    round(index, { drafted: [rejected("x")], extra: extra("a", "recovered") }),
  );
  expect(windowBefore(rounds, 100, 40)).toBe(80);
  expect(windowBefore(rounds, 10, 40)).toBe(0);
  expect(windowAfter(rounds, 20, 40)).toBe(40);
  expect(windowAfter(rounds, 90, 40)).toBeNull();
});

/** Words visible in the default view, with the rest hidden as in reply.css. */
function wordsInSight(): { all: number; answer: number } {
  const copy = root.cloneNode(true) as HTMLElement;
  for (const hidden of copy.querySelectorAll(HIDDEN)) hidden.remove();
  const all = wordsOf(copy.textContent);
  for (const draft of copy.querySelectorAll("[aria-hidden=true]:not(.shown)")) draft.remove();
  return { all, answer: wordsOf(copy.textContent) };
}

const HIDDEN = "summary, .drafts, .chip.syntax, .chip > .mark, .chip > .raw, tr.marks, p.marks";
/** Rounds between two updates of the page. */
const EVERY = 3;
const wordsOf = (text: string) => text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0;
const RECORDINGS = import.meta.glob<string>(
  "../backend/recordings/{count-ngram,lantern,markdown-sample,speculation}.jsonl",
  {
    query: "?raw",
    import: "default",
    eager: true,
  },
);

test("text hidden for this test is hidden by the stylesheet", () => {
  const css = readFileSync("src/markdown/reply.css", "utf8");
  const quiet = css.replaceAll(/\/\*[^]*?\*\//g, "").replaceAll(/\s+/g, " ");
  const selectors = HIDDEN.split(", ").slice(2);
  const rule = selectors.map((selector) => `.reply:not(.all) ${selector}`).join(", ");
  expect(quiet).toContain(`${rule}, .reply.all .chip > .shown { display: none; }`);
  expect(quiet).toContain(".drafts { display: none; }");
});

describe.each(Object.entries(RECORDINGS))("the recorded reply %s", (_, lines) => {
  const { rounds, text } = recordingOf(lines);

  test("shows less than 5% of words outside the answer while it is written", () => {
    const trace = traceOf([]);
    const page = new TokenPage(root);
    let [all, answer] = [0, 0];
    for (let at = 0; at < rounds.length; at += EVERY) {
      trace.add(rounds.slice(at, at + EVERY));
      const newest = trace.rounds.at(-1);
      const draft = ghostOf(newest);
      page.show(trace, { first: 0, end: null }, true, undefined, { draft, held: draft ? 1 : 0 });
      const words = wordsInSight();
      all += words.all;
      // Accepted tokens of the shown draft are part of the answer already.
      const right = newest?.drafted.filter(({ outcome }) => outcome === "accepted") ?? [];
      answer += words.answer + wordsOf(right.map((token) => token.text).join(""));
    }
    expect(answer).toBeGreaterThan(50);
    expect((all - answer) / all).toBeLessThan(0.05);
  });

  test("shows each of its words once when it is finished, and drafts only as marks", () => {
    show(rounds);
    const { all, answer } = wordsInSight();
    expect(all).toBe(answer);
    const written = new ReplyDocument();
    written.update(text, true);
    const element = document.createElement("div");
    const page = new ReplyPage(element, false);
    const shapes = new TextShapes(text, () => undefined);
    page.show(written, text, (block) => shapes.of(block.branch), false);
    for (const head of element.querySelectorAll(".code-head, summary")) head.remove();
    expect(all).toBe(wordsOf(element.textContent));
    const wrong = rounds.filter(({ drafted }) => drafted.some((one) => one.outcome === "rejected"));
    expect(root.querySelectorAll(".fold.wrong").length).toBeGreaterThanOrEqual(wrong.length);
  });
});

describe("ghost text", () => {
  const next = round(1, {
    drafted: [rejected(" wrong"), { ...rejected(" after"), outcome: "discarded" as const }],
    extra: extra(" right", "recovered"),
  });
  const begin = round(0, { extra: extra("It is", "plain") });
  const ghost = () => root.querySelector("[data-testid=ghost]");

  test("stands after the text until its outcome is shown, and is no part of it", () => {
    const trace = traceOf([begin, next]);
    const page = new TokenPage(root);
    const ahead = { draft: " wrong after", held: 1 } as const;
    page.show(trace, { first: 0, end: null }, true, undefined, ahead);
    expect(read()).toBe("It is");
    expect(ghost()?.textContent).toBe(" wrong after");
    expect(ghost()?.matches("[aria-hidden=true]")).toBe(true);
    page.show(trace, { first: 0, end: null }, true);
    expect(ghost()).toBeNull();
    expect(read()).toBe("It is right");
    page.show(trace, { first: 0, end: null }, false);
    expect(root.querySelector(".cursor")).toBeNull();
  });

  test("stands in the last line of a list, too", () => {
    const page = new TokenPage(root);
    const trace = traceOf(cut("- one\n- two", 5));
    page.show(trace, { first: 0, end: null }, true, undefined, { draft: " more", held: 0 });
    expect(ghost()?.closest("li")?.textContent).toContain("two");
  });
});

test("an underline continues below the space between tokens of one outcome, and no further", () => {
  const right = { ...rejected(" so"), outcome: "accepted" as const };
  show([round(0, { drafted: [right, right], extra: extra(" on", "bonus") })]);
  const parted = chips().map((chip) => chip.matches(".parted"));
  expect(parted).toEqual([false, false, true]);
  expect(root.querySelector(".parted > .word")?.textContent).toBe("on");
});

test("source shown as other characters is copied as source", () => {
  show(cut("Tom &amp; Ann", 3));
  expect(read()).toBe("Tom &amp; Ann");
  expect(root.querySelector(".shown")?.textContent).toBe("&");
});

test("blocks of both views have their source's offset", () => {
  const text = "one\n\n- two\n- three\n\n```\nfour\n```\n";
  const begins = () =>
    [...root.querySelectorAll<HTMLElement>("[data-from]")].map(({ dataset }) => dataset["from"]);
  show(text.split(/(?<=\n)/u).map((line, at) => round(at, { extra: extra(line, "plain") })));
  const asTokens = begins();
  const document = new ReplyDocument();
  document.update(text, true);
  const shapes = new TextShapes(text, () => undefined);
  new ReplyPage(root, false).show(document, text, ({ branch }) => shapes.of(branch), false);
  expect(asTokens).toHaveLength(3);
  expect(begins()).toEqual(asTokens);
});
