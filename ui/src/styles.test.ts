// @vitest-environment node
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const FOLDER = import.meta.dirname;
const paths = readdirSync(FOLDER, { recursive: true, encoding: "utf8" });
const read = (ending: RegExp) =>
  paths
    .filter((path) => ending.test(path))
    .map((path) => [path, readFileSync(`${FOLDER}/${path}`, "utf8")] as const);

const shared = readFileSync(`${FOLDER}/app.css`, "utf8");
const components = read(/\.svelte$/);
const styles = components.map(([path, source]) => {
  const style = /<style>([^]*)<\/style>/.exec(source)?.[1] ?? "";
  return [path, style] as const;
});

const SIZE =
  /^(?:var\(--text-(?:xs|sm|md|lg|xl|2xl)\)|calc\([\d.]+ \* var\(--text-2xl\)\)|[\d.]+em|inherit|0)$/;

test("type sizes are those of the theme, or relative to one", () => {
  const found = read(/\.(?:svelte|css)$/).flatMap(([path, source]) =>
    [...source.matchAll(/font(?:-size)?: ([^;]*);/g)].map(([, size = ""]) => ({ path, size })),
  );
  expect(found.length).toBeGreaterThan(100);
  const root = { path: "app.css", size: "16px" };
  expect(found.filter(({ size }) => !SIZE.test(size))).toEqual([root]);
});

const SPACED =
  /(?<![\w-])(?:(?:row-|column-)?gap|(?:scroll-)?(?:margin|padding)(?:-[a-z-]+)?): ([^;]*);/g;

/** One of the values of a property; functions may contain one another once. */
const PART = /(?:[^\s()]|\((?:[^()]|\([^()]*\))*\))+/g;

/** Steps of the theme, hairlines, and lengths relative to text or window, or of paper. */
const SPACE =
  /^(?:0|auto|-?[12]px|-?[\d.]+(?:em|mm|%)|var\(--[\w-]+\)|calc\((?:(?!\d(?:px|rem)).)*\)|(?:min|max|clamp)\(.*\))$/;

test("gaps, margins and paddings are steps of the theme, hairlines, or relative to text", () => {
  const found = [...styles, ...read(/\.css$/)].flatMap(([path, source]) =>
    [...source.matchAll(SPACED)].flatMap(([, value = ""]) =>
      (value.match(PART) ?? []).map((space) => ({ path, space })),
    ),
  );
  expect(found.length).toBeGreaterThan(500);
  expect(found.filter(({ space }) => !SPACE.test(space))).toEqual([]);
  const theme = readFileSync(`${FOLDER}/theme.css`, "utf8");
  const steps = [...theme.matchAll(/--(space-\d+): /g)].map(([, step = ""]) => step);
  const unused = steps.filter((step) => !found.some(({ space }) => space.includes(`--${step})`)));
  expect(steps.length).toBeLessThanOrEqual(9);
  expect(unused).toEqual([]);
});

/** Flex boxes that differ too much from the layouts in app.css. */
const MOST_FLEX = 8;

test("components lay out their content with the shared layouts", () => {
  for (const layout of ["row", "stack", "cluster", "spread"]) {
    expect(shared).toMatch(new RegExp(`^\\.${layout},?$|^\\.${layout} \\{$`, "m"));
  }
  const flex = styles.flatMap(([path, style]) =>
    [...style.matchAll(/display: flex;/g)].map(() => path),
  );
  expect(flex.length, flex.join(", ")).toBeLessThanOrEqual(MOST_FLEX);
});

test("every shared class is used", () => {
  const selectors = shared.replace(/\/\*[^]*?\*\//g, "");
  const names = new Set([...selectors.matchAll(/\.([a-z][\w-]*)/g)].map(([, name = ""]) => name));
  expect(names.size).toBeGreaterThan(25);
  const written = [...components, ...read(/(?<!\.test)\.ts$/)].flatMap(([, source]) => [
    ...source.matchAll(/class="([^"]*)"|class:([\w-]+)|class(?:Name|List)[^"\n]*"([^"]*)"/g),
  ]);
  const used = new Set(
    written.flatMap((match) =>
      match
        .slice(1)
        .join(" ")
        .split(/[^\w-]+/),
    ),
  );
  expect([...names].filter((name) => !used.has(name))).toEqual([]);
});
