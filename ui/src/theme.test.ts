// @vitest-environment node
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { difference, labOf, linear, type Vision } from "./colourVision";
import { STRONGEST_UNDER_TEXT } from "./heatmap/cells";

const css = readFileSync(new URL("./theme.css", import.meta.url), "utf8");

function colours(theme: string): Map<string, string> {
  const block = new RegExp(`\\[data-theme="${theme}"\\] \\{([^}]*)\\}`).exec(css)?.[1] ?? "";
  return new Map(
    [...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [
      name ?? "",
      value ?? "",
    ]),
  );
}

/** Relative luminance by WCAG 2. */
function luminance(colour: string): number {
  const [red, green, blue] = linear(colour);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** A colour over another with opacity `alpha`. */
function over(front: string, back: string, alpha: number): string {
  const channel = (at: number) => {
    const [a, b] = [front, back].map((colour) => parseInt(colour.slice(at, at + 2), 16));
    const mixed = Math.round(alpha * (a ?? 0) + (1 - alpha) * (b ?? 0));
    return mixed.toString(16).padStart(2, "0");
  };
  return `#${[1, 3, 5].map(channel).join("")}`;
}

function contrast(a: string, b: string): number {
  const [light = 0, dark = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

const TEXT = 4.5;
const GRAPHIC = 3;
const PAIRS: [string, string[], number][] = [
  ["text", ["bg", "panel", "raise", "hover"], TEXT],
  ["text", ["accepted-bg", "rejected-bg", "bonus-bg", "recovered-bg"], TEXT],
  ["soft", ["bg", "panel", "raise", "accepted-bg", "bonus-bg", "recovered-bg"], TEXT],
  ["faint", ["bg", "panel", "raise"], TEXT],
  ["accent", ["bg", "panel"], TEXT],
  // Focus ring, and bar of the active line.
  ["accent", ["raise", "hover"], GRAPHIC],
  ["accent", ["accepted-bg", "rejected-bg", "bonus-bg", "recovered-bg"], GRAPHIC],
  // Toasts, whose background is the colour of text.
  ["bg", ["text"], GRAPHIC],
  ["danger", ["panel", "bg"], TEXT],
  ["rejected", ["rejected-bg", "panel"], TEXT],
  // Colours of code.
  ["accepted", ["panel"], TEXT],
  ["bonus", ["panel"], TEXT],
  ["constant", ["panel"], TEXT],
  ["discarded", ["bg"], TEXT],
  ["accepted", ["raise", "bg", "panel"], GRAPHIC],
  ["rejected", ["raise", "bg"], GRAPHIC],
  ["discarded", ["raise", "panel"], GRAPHIC],
  ["bonus", ["raise", "bg", "panel"], GRAPHIC],
  ["recovered", ["raise", "bg", "panel"], GRAPHIC],
  ["line-strong", ["bg", "panel"], GRAPHIC],
  // Ghost text: hidden from screen readers, and visible only for a moment.
  ["ghost", ["bg", "panel"], GRAPHIC],
];

describe.each(["dark", "light"])("the %s theme", (theme) => {
  const held = colours(theme);
  const pairs = PAIRS.flatMap(([front, backs, least]) =>
    backs.map((back) => [front, back, least] as const),
  );
  test.each(pairs)("%s on %s has a contrast of %d or more", (front, back, least) => {
    expect(contrast(held.get(front) ?? "", held.get(back) ?? "")).toBeGreaterThanOrEqual(least);
  });
});

test.each(["dark", "light"])(
  "messages outside of the context are paler but readable (%s)",
  (theme) => {
    const held = colours(theme);
    const [text, ground] = [held.get("text") ?? "", held.get("bg") ?? ""];
    const source = new URL("./components/conversation/Conversation.svelte", import.meta.url);
    const opacity = /\.unseen \{\s*opacity: ([\d.]+);/.exec(readFileSync(source, "utf8"))?.[1];
    expect(contrast(over(text, ground, Number(opacity)), ground)).toBeGreaterThanOrEqual(TEXT);
  },
);

/** Outcomes whose cells, marks and chips stand beside each other. */
const OUTCOMES = ["accepted", "rejected", "discarded", "bonus", "recovered"];
const VISIONS: Vision[] = ["usual", "protanopia", "deuteranopia", "tritanopia"];
/** Smallest difference by CIEDE2000: adjacent small areas need much more than 1. */
const APART = 12;

describe.each(["dark", "light"])("the outcomes of the %s theme", (theme) => {
  const held = colours(theme);
  const colour = (name: string) => held.get(name) ?? "";

  test.each(VISIONS)("are told apart with %s vision", (vision) => {
    for (const [at, one] of OUTCOMES.entries()) {
      for (const other of OUTCOMES.slice(at + 1)) {
        const apart = difference(labOf(colour(one), vision), labOf(colour(other), vision));
        expect(apart, `${one} and ${other}`).toBeGreaterThanOrEqual(APART);
      }
    }
  });

  test.each(["accepted", "rejected"])("leave text readable on the strongest %s cell", (outcome) => {
    for (const alpha of [0, STRONGEST_UNDER_TEXT / 2, STRONGEST_UNDER_TEXT]) {
      const cell = over(colour(outcome), colour("raise"), alpha);
      expect(contrast(colour("text"), cell)).toBeGreaterThanOrEqual(TEXT);
    }
  });

  test("let the stroke of a rejected cell be seen on its casing, whatever the cell's strength", () => {
    expect(contrast(colour("rejected"), colour("bg"))).toBeGreaterThanOrEqual(GRAPHIC);
  });
});

test("outcomes in a text have lines of different kinds, as well as colours", () => {
  const reply = readFileSync(new URL("./components/reply/reply.css", import.meta.url), "utf8");
  const kinds = ["accepted", "recovered", "bonus"].map((outcome) => {
    const line = new RegExp(
      `\\.chip\\.${outcome},[^}]*border-bottom: \\dpx (\\w+) var\\(--${outcome}\\)`,
    );
    return line.exec(reply)?.[1] ?? expect.fail(`${outcome} has no line`);
  });
  expect(new Set(kinds).size).toBe(kinds.length);
});

const components = import.meta.glob<string>("./**/*.svelte", {
  query: "?raw",
  import: "default",
  eager: true,
});

/** A dialog is no control; clicks on its empty part focus it. */
const DIALOG = "./components/ui/Dialog.svelte";

test("focused elements have a ring, or another indicator", () => {
  const without = Object.entries(components).filter(([, source]) =>
    /outline: (none|0)\b/.test(source),
  );
  expect(without.map(([file]) => file).sort()).toEqual([
    "./components/conversation/Composer.svelte",
    "./components/conversation/QuestionEditor.svelte",
    DIALOG,
    "./components/ui/listbox/FilterList.svelte",
  ]);
  for (const [file, source] of without.filter(([file]) => file !== DIALOG)) {
    expect(source, file).toMatch(/:focus-visible[^{]*\{\s*border-color: var\(--accent\);/);
  }
  const shared = readFileSync(new URL("./app.css", import.meta.url), "utf8");
  expect(shared).toMatch(/:focus-visible \{\s*outline: 2px solid var\(--accent\);/);
});
