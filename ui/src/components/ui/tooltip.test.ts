import { parse } from "svelte/compiler";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { showTooltips } from "./tooltip";

const sources = import.meta.glob<string>("../../**/*.svelte", {
  query: "?raw",
  import: "default",
  eager: true,
});

let end: () => void;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  end = showTooltips();
});
afterEach(() => {
  end();
  document.body.replaceChildren();
  vi.useRealTimers();
});

function button(tooltip: string, words = "", cut = false): HTMLElement {
  const made = document.createElement("button");
  made.dataset["tooltip"] = tooltip;
  made.textContent = words;
  Object.defineProperty(made, "clientWidth", { value: 50 });
  Object.defineProperty(made, "scrollWidth", { value: cut ? 90 : 50 });
  document.body.append(made);
  return made;
}

const shown = () => document.querySelector(".tooltip")?.textContent ?? null;
const point = (element: Element) =>
  element.dispatchEvent(new MouseEvent("pointerover", { bubbles: true }));

test("a tooltip appears after 400 ms under a resting pointer, and the next one at once", () => {
  const [first, second] = [button("Copy"), button("Edit")];
  point(first);
  vi.advanceTimersByTime(399);
  expect(shown()).toBeNull();
  vi.advanceTimersByTime(1);
  expect(shown()).toBe("Copy");
  expect(first.getAttribute("aria-description")).toBe("Copy");
  point(second);
  vi.advanceTimersByTime(0);
  expect(shown()).toBe("Edit");
  expect(first.hasAttribute("aria-description")).toBe(false);
});

test.each(["pointerdown", "keydown", "scroll", "focusout"])("%s hides it", (type) => {
  point(button("Copy"));
  vi.advanceTimersByTime(400);
  document.dispatchEvent(new Event(type));
  expect(shown()).toBeNull();
});

test("in a dialog a tooltip is part of the dialog, which hides everything outside", () => {
  const dialog = document.createElement("dialog");
  document.body.append(dialog);
  dialog.append(button("Close"));
  point(dialog.firstElementChild ?? expect.fail());
  vi.advanceTimersByTime(400);
  expect(dialog.querySelector(".tooltip")?.textContent).toBe("Close");
});

test("visible text gets no tooltip, and cut text does", () => {
  point(button("A fox", "A fox"));
  vi.advanceTimersByTime(400);
  expect(shown()).toBeNull();
  point(button("A fox and a lantern", "A fox and a lantern", true));
  vi.advanceTimersByTime(400);
  expect(shown()).toBe("A fox and a lantern");
});

test("an element removed meanwhile gets no tooltip", () => {
  const gone = button("Copy");
  point(gone);
  gone.remove();
  vi.advanceTimersByTime(400);
  expect(shown()).toBeNull();
});

test("no element has the browser's own tooltip", () => {
  const titled: string[] = [];
  for (const [file, source] of Object.entries(sources)) {
    const walk = (node: unknown) => {
      if (typeof node !== "object" || node === null) return;
      const { type, attributes } = node as { type?: string; attributes?: { name?: string }[] };
      if (type === "RegularElement" && attributes?.some(({ name }) => name === "title")) {
        titled.push(file);
      }
      Object.values(node).forEach(walk);
    };
    walk(parse(source, { modern: true }).fragment);
  }
  expect(titled).toEqual([]);
});
