/** Right-to-left text: texts of people and models have their own direction. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

/** "Peace", in Hebrew. */
const WORD = "שלום";

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

/** Directions of the elements around the word. */
function directions(): (string | null | undefined)[] {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { textContent, parentElement } = walker.currentNode;
    if (textContent?.includes(WORD))
      found.push(parentElement?.closest("[dir]")?.getAttribute("dir"));
  }
  return found;
}

test("titles and search results have the direction of their text", async () => {
  const one = window.app.conversations.list[0] ?? expect.fail("no conversation");
  window.app.conversations.list = [{ ...one, title: WORD }];
  await window.pass();
  expect(directions()).toEqual(["auto"]);

  await window.press("Ctrl k");
  await window.type("palette-field", WORD);
  expect(directions().length).toBeGreaterThan(1);
  expect(new Set(directions())).toEqual(new Set(["auto"]));
  await window.press("Escape");

  const hit = { conversation: { ...one, title: WORD }, message: 1, excerpt: `\u0002${WORD}\u0003` };
  vi.spyOn(window.backend, "search").mockResolvedValue([hit]);
  await window.type("search", WORD);
  await window.pass(500);
  expect(directions().length).toBeGreaterThan(1);
  expect(new Set(directions())).toEqual(new Set(["auto"]));
});

test("fields have the direction of the typed text", async () => {
  await window.press("Ctrl f", document.body);
  window.app.view.renaming = window.app.conversations.list[0]?.id ?? 0;
  await window.pass();
  const fields = [
    document.activeElement,
    ...["composer", "find-field", "search"].map((name) => window.find(name)),
  ];
  for (const field of fields) expect(field?.getAttribute("dir")).toBe("auto");
});
