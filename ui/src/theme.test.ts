// @vitest-environment node
import { readFileSync } from "node:fs";
import {
  clampRgb,
  converter,
  differenceCiede2000,
  filterDeficiencyDeuter,
  filterDeficiencyProt,
  filterDeficiencyTrit,
  wcagContrast,
  type Color,
  type Rgb,
} from "culori";
import { describe, expect, test } from "vitest";
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

/** A colour over another with opacity `alpha`. */
function over(front: string, back: string, alpha: number): string {
  const channel = (at: number) => {
    const [a, b] = [front, back].map((colour) => parseInt(colour.slice(at, at + 2), 16));
    const mixed = Math.round(alpha * (a ?? 0) + (1 - alpha) * (b ?? 0));
    return mixed.toString(16).padStart(2, "0");
  };
  return `#${[1, 3, 5].map(channel).join("")}`;
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
    expect(wcagContrast(held.get(front) ?? "", held.get(back) ?? "")).toBeGreaterThanOrEqual(least);
  });
});

test.each(["dark", "light"])(
  "messages outside of the context are paler but readable (%s)",
  (theme) => {
    const held = colours(theme);
    const [text, ground] = [held.get("text") ?? "", held.get("bg") ?? ""];
    const source = new URL("./components/conversation/Conversation.svelte", import.meta.url);
    const opacity = /\.unseen \{\s*opacity: ([\d.]+);/.exec(readFileSync(source, "utf8"))?.[1];
    expect(wcagContrast(over(text, ground, Number(opacity)), ground)).toBeGreaterThanOrEqual(TEXT);
  },
);

/** Outcomes whose cells, marks and chips stand beside each other. */
const OUTCOMES = ["accepted", "rejected", "discarded", "bonus", "recovered"];
const VISIONS = {
  usual: (colour: Rgb) => colour,
  protanopia: filterDeficiencyProt(),
  deuteranopia: filterDeficiencyDeuter(),
  tritanopia: filterDeficiencyTrit(),
};
type Vision = keyof typeof VISIONS;
/** Smallest difference by CIEDE2000: adjacent small areas need much more than 1. */
const APART = 12;
const apart = differenceCiede2000();
const linear = converter("lrgb");
const encoded = converter("rgb");

/** `colour` as seen with a colour vision. The filters are matrices for linear light. */
function seen(colour: string, vision: Vision): Color {
  const light: Rgb = { r: 0, g: 0, b: 0, ...linear(colour), mode: "rgb" };
  const { r, g, b } = encoded(clampRgb(VISIONS[vision](light)));
  return { mode: "lrgb", r, g, b };
}

test("deuteranopia leaves greys as they are and halves the difference of red and green", () => {
  const [red, green, grey] = ["#c84030", "#4a8f2a", "#808080"] as const;
  const difference = (vision: Vision) => apart(seen(red, vision), seen(green, vision));
  expect(difference("deuteranopia")).toBeLessThan(difference("usual") / 2);
  expect(apart(seen(grey, "deuteranopia"), seen(grey, "usual"))).toBeLessThan(0.1);
});

describe.each(["dark", "light"])("the outcomes of the %s theme", (theme) => {
  const held = colours(theme);
  const colour = (name: string) => held.get(name) ?? "";

  test.each(Object.keys(VISIONS) as Vision[])("are distinct with %s vision", (vision) => {
    for (const [at, one] of OUTCOMES.entries()) {
      for (const other of OUTCOMES.slice(at + 1)) {
        const difference = apart(seen(colour(one), vision), seen(colour(other), vision));
        expect(difference, `${one} and ${other}`).toBeGreaterThanOrEqual(APART);
      }
    }
  });

  test.each(["accepted", "rejected"])("leave text readable on the strongest %s cell", (outcome) => {
    for (const alpha of [0, STRONGEST_UNDER_TEXT / 2, STRONGEST_UNDER_TEXT]) {
      const cell = over(colour(outcome), colour("raise"), alpha);
      expect(wcagContrast(colour("text"), cell)).toBeGreaterThanOrEqual(TEXT);
    }
  });

  test("let the stroke of a rejected cell be seen on its casing, whatever the cell's strength", () => {
    expect(wcagContrast(colour("rejected"), colour("bg"))).toBeGreaterThanOrEqual(GRAPHIC);
  });
});

test("outcomes in a text have lines of different kinds, as well as colours", () => {
  const reply = readFileSync(new URL("./markdown/reply.css", import.meta.url), "utf8");
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
/** Dialogs set the focus themselves, and need no ring until a key moves it. */
const DIALOGS = ["commands/Shortcuts", "ui/Dialog", "ui/SectionsDialog"].map(
  (name) => `./components/${name}.svelte`,
);

test("focused elements have a ring, or another indicator", () => {
  const without = Object.entries(components).filter(([, source]) =>
    /outline: (none|0)\b/.test(source),
  );
  const fields = [
    "./Quick.svelte",
    "./components/conversation/Composer.svelte",
    "./components/conversation/QuestionEditor.svelte",
    "./components/ui/listbox/FilterList.svelte",
  ];
  expect(without.map(([file]) => file).sort()).toEqual([...DIALOGS, ...fields].sort());
  for (const [file, source] of without.filter(([file]) => fields.includes(file))) {
    expect(source, file).toMatch(/:focus-visible[^{]*\{\s*border-color: var\(--accent\);/);
  }
  const shared = readFileSync(new URL("./app.css", import.meta.url), "utf8");
  expect(shared).toMatch(/:focus-visible \{\s*outline: 2px solid var\(--accent\);/);
});
