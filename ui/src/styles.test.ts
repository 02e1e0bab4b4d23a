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

/** Flex boxes that differ too much from the layouts in app.css. */
const MOST_FLEX = 41;

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
