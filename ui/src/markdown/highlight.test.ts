import { beforeEach, afterEach, expect, test, vi } from "vitest";
import { LocalColours } from "./colourFixture";
import { highlighted } from "./highlight";
import type { Shape } from "./shapes";

beforeEach(() => {
  vi.stubGlobal("Worker", LocalColours);
  LocalColours.asked = [];
  LocalColours.ended = 0;
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const textOf = (shapes: readonly Shape[]): string =>
  shapes.map((shape) => (typeof shape === "string" ? shape : textOf(shape.children))).join("");

const isColoured = (shapes: readonly Shape[]) => shapes.some((shape) => typeof shape !== "string");

async function waited(code: string, language = "js"): Promise<readonly Shape[]> {
  const here = vi.fn();
  highlighted(code, language, here);
  await vi.waitFor(() => expect(here).toHaveBeenCalledOnce());
  return highlighted(code, language, () => undefined);
}

test("code is plain at first and highlighted later, with the same characters", async () => {
  const code = "const one = 'a'; // b\n";
  expect(highlighted(code, "js", () => undefined)).toEqual([code]);
  const shapes = await waited(code);
  expect(isColoured(shapes)).toBe(true);
  expect(textOf(shapes)).toBe(code);
});

test("growing code keeps its highlighting, and only its latest version is sent", async () => {
  let code = "const grows = 'a';";
  await waited(code);
  LocalColours.asked = [];
  for (let line = 0; line < 10; line += 1) {
    code += `\nlet a${line};`;
    const shapes = highlighted(code, "js", () => undefined);
    expect(isColoured(shapes)).toBe(true);
    expect(textOf(shapes)).toBe(code);
  }
  const shapes = await waited(code);
  expect(textOf(shapes)).toBe(code);
  expect(LocalColours.asked).toHaveLength(2);
});

test("code that takes a grammar too long stays plain, and other code is highlighted", async () => {
  vi.useFakeTimers();
  const endless = vi.fn();
  const code = `let a = ${LocalColours.endless};`;
  highlighted(code, "js", endless);
  const here = vi.fn();
  highlighted("let other;", "js", here);
  await vi.advanceTimersByTimeAsync(2000);
  expect(here).toHaveBeenCalledOnce();
  expect(endless).not.toHaveBeenCalled();
  expect(LocalColours.ended).toBe(1);
  // A growing version is not tried again either.
  LocalColours.asked = [];
  expect(highlighted(`${code}\n`, "js", endless)).toEqual([`${code}\n`]);
  expect(LocalColours.asked).toEqual([]);
  expect(isColoured(highlighted("let other;", "js", here))).toBe(true);
});

test("a language without a grammar and no language stay plain", async () => {
  highlighted("a", "brainfuck", () => undefined);
  highlighted("a", "", () => undefined);
  await waited("let last;");
  expect(highlighted("a", "brainfuck", () => undefined)).toEqual(["a"]);
  expect(LocalColours.asked).toEqual(["a", "let last;"]);
});

test("highlighting takes no time of the page's thread", async () => {
  vi.useFakeTimers();
  const code = "<script>".repeat(3000) + LocalColours.endless;
  const begin = performance.now();
  expect(highlighted(code, "xml", () => undefined)).toEqual([code]);
  expect(performance.now() - begin).toBeLessThan(100);
  expect(LocalColours.asked).toEqual([code]);
  await vi.advanceTimersByTimeAsync(2000);
});

test("a hundred blocks are all highlighted in the end", async () => {
  const codes = Array.from({ length: 100 }, (_, at) => `let number${at} = "${at}";`);
  const shown = new Map<string, readonly Shape[]>();
  const draw = (code: string) => {
    shown.set(
      code,
      highlighted(code, "js", () => draw(code)),
    );
  };
  codes.forEach(draw);
  await vi.waitFor(() => expect([...shown.values()].every(isColoured)).toBe(true), 5000);
  expect(LocalColours.asked.length).toBeLessThan(200);
});
