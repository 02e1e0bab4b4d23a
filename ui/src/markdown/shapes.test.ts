import { expect, test } from "vitest";
import { chance } from "./samples";
import { element, make, patch, type Shape } from "./shapes";

function anyShapes(next: () => number, depth = 0): Shape[] {
  return Array.from({ length: Math.floor(next() * 5) }, (): Shape => {
    if (depth > 2 || next() < 0.4) return next() < 0.5 ? "one" : "two";
    const tag = next() < 0.5 ? "p" : "span";
    const name = next() < 0.5 ? "a" : undefined;
    const attributes = next() < 0.5 ? { title: next() < 0.5 ? "x" : "y" } : undefined;
    const shape = element(tag, name, anyShapes(next, depth + 1), attributes);
    return next() < 0.3 ? { ...shape, key: String(Math.floor(next() * 3)) } : shape;
  });
}

function made(shapes: readonly Shape[]): HTMLElement {
  const root = document.createElement("div");
  for (const shape of shapes) root.append(make(shape));
  return root;
}

test("updated elements equal newly created ones", () => {
  const next = chance(5);
  for (let trial = 0; trial < 500; trial += 1) {
    const [old, wanted] = [anyShapes(next), anyShapes(next)];
    const root = made(old);
    patch(root, old, wanted);
    // Removing the last class leaves an empty attribute.
    for (const one of root.querySelectorAll('[class=""]')) one.removeAttribute("class");
    expect(root.isEqualNode(made(wanted))).toBe(true);
  }
});

test("unchanged elements are not touched, even if the beginning is dropped", () => {
  const shapes = ["a", "b", "c"].map((key) => ({ ...element("i", undefined, [key]), key }));
  const root = made(shapes);
  const [, second, third] = root.childNodes;
  patch(root, shapes, [...shapes.slice(1), "end"]);
  expect([...root.childNodes].slice(0, 2)).toEqual([second, third]);
  expect(root.textContent).toBe("bcend");
});

test("an element with a drawing function is drawn again only when its key changes", () => {
  let fills = 0;
  const shape = (key: string): Shape => ({
    ...element("b", undefined, []),
    fill: { key, draw: (into) => (into.textContent = String((fills += 1))) },
  });
  const root = made([shape("x")]);
  patch(root, [shape("x")], [shape("x")]);
  expect(root.textContent).toBe("1");
  patch(root, [shape("x")], [shape("y")]);
  expect(root.textContent).toBe("2");
});
