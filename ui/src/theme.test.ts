// @vitest-environment node
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

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

/** Relative luminance as WCAG 2 defines it. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const channel = parseInt(colour.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
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
  ["soft", ["bg", "panel", "raise"], TEXT],
  ["faint", ["bg", "panel", "raise"], TEXT],
  ["accent", ["bg", "panel"], TEXT],
  ["danger", ["panel", "bg"], TEXT],
  ["rejected", ["rejected-bg", "panel"], TEXT],
  ["discarded", ["bg"], TEXT],
  ["accepted", ["raise", "bg", "panel"], GRAPHIC],
  ["rejected", ["raise", "bg"], GRAPHIC],
  ["discarded", ["raise", "panel"], GRAPHIC],
  ["bonus", ["raise", "bg", "panel"], GRAPHIC],
  ["recovered", ["raise", "bg", "panel"], GRAPHIC],
  ["line-strong", ["bg", "panel"], GRAPHIC],
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
