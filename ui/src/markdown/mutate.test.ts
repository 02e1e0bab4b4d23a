import { expect, test } from "vitest";
import { textOf } from "../trace/text";
import { Offsets } from "../trace/offsets";
import { ReplyDocument } from "./document";
import { leavesOf } from "./nodes";
import { ReplyPage } from "./page";
import { plainText } from "./plainText";
import { NASTY, chance, cut } from "./samples";
import { TextShapes } from "./textShapes";
import { TokenPage } from "./tokenPage";

/** Number of runs; `make fuzz` runs more. */
const RUNS = Number(process.env["FORETOKEN_FUZZ_RUNS"] ?? 150);
const SEED = Number(process.env["FORETOKEN_FUZZ_SEED"] ?? 1);
const LONGEST = 800;

const SAMPLES = Object.values(NASTY);
const SIGNS = [
  ...Array.from("*_`~#>|-+[]()!<&\\$:\n\t \u0000\u202e😀é0"),
  ..."```,$$,\\[,\\],\n\n,    ,<think>,</think>,<script>,[x]:,](,&#x,1. ,| - |,\r\n,\ud83d".split(
    ",",
  ),
];

/** Random parts of samples with changed characters. */
function damaged(random: () => number): string {
  const below = (limit: number) => Math.floor(random() * limit);
  const part = () => {
    const sample = SAMPLES[below(SAMPLES.length)] ?? "";
    return sample.slice(below(sample.length), sample.length - below(sample.length / 2));
  };
  let text = Array.from({ length: 1 + below(3) }, part).join(random() < 0.5 ? "\n" : "");
  for (let scratches = below(6); scratches > 0; scratches -= 1) {
    const at = below(text.length + 1);
    const sign = (SIGNS[below(SIGNS.length)] ?? "").repeat(random() < 0.1 ? below(60) : 1);
    text = text.slice(0, at) + sign + text.slice(at + below(4));
  }
  return text.slice(0, LONGEST);
}

/** Asserts that no element runs code, loads anything, or links outside of the page. */
function expectHarmless(root: HTMLElement) {
  expect(root.querySelector("script,iframe,object,embed,style,img,form,base,meta,link")).toBeNull();
  for (const element of root.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      expect(name).not.toMatch(/^on/i);
      if (name === "href" || name === "src") expect(value).toMatch(/^(https?:|mailto:)/i);
    }
  }
}

test(
  "a damaged text is shown completely and stays harmless",
  { timeout: 60_000 + 100 * RUNS },
  () => {
    const random = chance(SEED);
    for (let run = 0; run < RUNS; run += 1) {
      const text = damaged(random);
      const root = document.createElement("div");
      const parsed = new ReplyDocument();
      // Streamed in two steps: a part, then the whole.
      for (const end of [Math.floor(text.length / 2), text.length]) {
        parsed.update(text.slice(0, end), end === text.length);
      }
      const shapes = new TextShapes(text, () => undefined);
      new ReplyPage(root, false).show(parsed, text, ({ branch }) => shapes.of(branch), false);
      expectHarmless(root);

      const rounds = cut(text, run);
      const offsets = new Offsets();
      for (const round of rounds) offsets.add(round);
      const tokens = document.createElement("div");
      new TokenPage(tokens).show({ rounds, offsets }, { first: 0, end: null }, false);
      expectHarmless(tokens);
      const beside = "[aria-hidden=true], summary, .code-head";
      for (const hidden of tokens.querySelectorAll(beside)) hidden.remove();
      expect(textOf(rounds)).toBe(text);
      expect(tokens.textContent).toBe(text);
    }
  },
);

/** Length of a repetitive text, as written by a model in a loop. */
const LONG = 30_000;
/** Time limit; normal text of this length takes a twentieth of it. */
const LONGEST_MS = 5000;

test(
  "a damaged, repeated piece is parsed, drawn and copied in bounded time",
  { timeout: 60_000 + 10 * LONGEST_MS * RUNS },
  () => {
    const random = chance(SEED + 1);
    for (let run = 0; run < Math.ceil(RUNS / 10); run += 1) {
      const piece = damaged(random).slice(0, 1 + Math.floor(random() * 60)) || " ";
      const text = piece.repeat(Math.ceil(LONG / piece.length));
      const begin = process.cpuUsage();
      const parsed = new ReplyDocument();
      for (const part of [0.5, 1]) parsed.update(text.slice(0, text.length * part), part === 1);
      const blocks = [...parsed.thought, ...parsed.answer].map(({ branch }) => branch);
      const shapes = new TextShapes(text, () => undefined);
      for (const branch of blocks) shapes.of(branch);
      plainText(text);
      const { user } = process.cpuUsage(begin);
      expect(user / 1000, JSON.stringify(piece)).toBeLessThan(LONGEST_MS);
      let letters = 0;
      for (const { from, to } of leavesOf(blocks)) letters += to - from;
      expect(letters, JSON.stringify(piece)).toBe(text.length);
    }
  },
);
