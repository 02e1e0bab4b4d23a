import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { formula } from "./formula";

const set = (tex: string, into = document.createElement("span")) => {
  formula(`$${tex}$`, tex, false, () => undefined).draw(into);
  return into;
};

const isSet = (into: Element) => into.querySelector(".katex") !== null;

beforeAll(async () => {
  await vi.waitFor(() => expect(isSet(set("x"))).toBe(true), 30_000);
}, 30_000);

/** Starts each test in its own time slice. */
beforeEach(() => new Promise((done) => setTimeout(done)));

afterEach(() => document.body.replaceChildren());

test.each([
  ["\\def", "\\def\\a{aaa}\\a"],
  ["\\gdef", "\\gdef\\a{aaa}\\a"],
  ["\\edef", "\\edef\\a{aaa}\\a"],
  ["\\xdef", "\\xdef\\a{aaa}\\a"],
  ["\\let", "\\let\\a=b\\a"],
  ["\\futurelet", "\\futurelet\\a b c"],
  ["\\global", "\\global\\def\\a{aaa}\\a"],
  ["\\long", "\\long\\def\\a{aaa}\\a"],
  ["\\newcommand", "\\newcommand\\a{aaa}\\a"],
  ["\\renewcommand", "\\renewcommand\\pi{aaa}\\pi"],
  ["\\providecommand", "\\providecommand\\a{aaa}\\a"],
  ["an internal macro that pastes its argument", "\\bra@ket{(}{mmm}{m}{)}{a|b|c}"],
  ["\\message, which writes to the console", "\\message{x}"],
  ["\\errmessage", "\\errmessage{x}"],
  ["\\show", "\\show x"],
])("a formula with %s is shown as source", (_, tex) => {
  const logged = vi.spyOn(console, "log").mockReturnValue();
  const warned = vi.spyOn(console, "error").mockReturnValue();
  const into = set(tex);
  expect(into.textContent).toBe(`$${tex}$`);
  expect(into.className).toBe("source");
  expect(logged).not.toHaveBeenCalled();
  expect(warned).not.toHaveBeenCalled();
  vi.restoreAllMocks();
});

test.each(["\\\\def", "\\text{let}", "\\left(x\\right)", "\\longrightarrow", "a \\defeq b"])(
  "%s defines nothing and is typeset",
  (tex) => expect(isSet(set(tex))).toBe(!tex.includes("defeq")),
);

test("macros with long expansions take no seconds", () => {
  const begin = performance.now();
  set(`\\def\\a{${"a".repeat(1000)}}${"\\a".repeat(200)}`);
  set(`\\bra@ket{(}{${"m".repeat(2000)}}{m}{)}{${"|".repeat(490)}}`);
  expect(performance.now() - begin).toBeLessThan(300);
});

test.each([
  ["columns", `\\begin{matrix}${"&".repeat(3900)}\\end{matrix}`],
  ["accents", "é".repeat(4000)],
  ["letters", "x".repeat(3999)],
])("a formula of thousands of %s is shown as source", (_, tex) => {
  expect(set(tex).className).toBe("source");
});

test("a derivation of thirty lines is typeset", () => {
  const line = "f(x_i) &= \\frac{\\partial L}{\\partial x_i} + \\sum_{j=1}^n a_{ij}\\, x_j \\\\\n";
  const tex = `\\begin{aligned}\n${line.repeat(30)}\\end{aligned}`;
  expect(isSet(set(tex))).toBe(true);
});

test("many formulas are typeset in time slices, so that the page stays responsive", async () => {
  const tex = "\\frac{a}{b} + \\sqrt{x}".repeat(15);
  const all = Array.from({ length: 60 }, (_, at) => {
    return set(`${tex}_{${at}}`, document.body.appendChild(document.createElement("span")));
  });
  const first = all.filter(isSet).length;
  expect(first).toBeGreaterThan(0);
  expect(first).toBeLessThan(60);
  expect(all.at(-1)?.textContent).toBe(`$${tex}_{59}$`);
  await vi.waitFor(() => expect(all.every(isSet)).toBe(true), 30_000);
  expect(document.querySelector(".source")).toBeNull();
}, 30_000);

test("a formula removed before its turn is not typeset", async () => {
  const tex = "\\frac{a}{b} + \\sqrt{x}".repeat(15);
  const all = Array.from({ length: 40 }, () => {
    return set(tex, document.body.appendChild(document.createElement("span")));
  });
  const waiting = all.filter((one) => !isSet(one));
  expect(waiting.length).toBeGreaterThan(1);
  for (const one of waiting.slice(1)) one.remove();
  await vi.waitFor(() => expect(waiting[0] && isSet(waiting[0])).toBe(true), 30_000);
  await new Promise((done) => setTimeout(done, 50));
  expect(waiting.slice(1).some(isSet)).toBe(false);
}, 30_000);
