/** Reading position when replies switch between text and tokens; heights are simulated. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

const observers = vi.hoisted(() => new Set<(entries: []) => void>());
vi.mock("./resizeObserver", () => ({
  stubResizeObserver: () =>
    vi.stubGlobal(
      "ResizeObserver",
      class {
        constructor(onChange: (entries: []) => void) {
          observers.add(onChange);
        }
        observe() {}
        unobserve() {}
        disconnect() {}
      },
    ),
}));

/** Position of the second block: 100 px as text, further down as tokens. */
const HEIGHT = { text: 100, tokens: 170 };

let window: WindowFixture;
let scroller: HTMLElement;

const blocks = () => [...scroller.querySelectorAll<HTMLElement>("[data-from]")];

/** Edges of a block; the first one ends where the second begins. */
function boxOf(block: HTMLElement): DOMRect {
  const height = HEIGHT[block.closest(".tokens") ? "tokens" : "text"];
  const at = blocks().indexOf(block) * height - scroller.scrollTop;
  return new DOMRect(0, at, 600, height);
}

beforeEach(async () => {
  vi.spyOn(HTMLElement.prototype, "getBoundingClientRect").mockImplementation(function (
    this: HTMLElement,
  ) {
    if (this.dataset["from"] !== undefined) return boxOf(this);
    // The question is out of view, its reply in view.
    const isAnswer = this.querySelector("[data-from]") !== null;
    return new DOMRect(0, isAnswer ? 0 : -20, 600, isAnswer ? 600 : 20);
  });
  vi.spyOn(HTMLElement.prototype, "getClientRects").mockImplementation(
    () => [new DOMRect()] as unknown as DOMRectList,
  );
  window = await WindowFixture.open();
  scroller = document.querySelector<HTMLElement>("main .scroller") ?? expect.fail("no scroller");
});
afterEach(async () => {
  await window.close();
  vi.restoreAllMocks();
  observers.clear();
});

async function showAs(view: "text" | "tokens") {
  window.app.view.showAllAs(view);
  await window.pass();
  for (const resized of observers) resized([]);
}

test("the block at the upper edge keeps its position in both directions", async () => {
  scroller.scrollTop = HEIGHT.tokens + 30;
  await showAs("text");
  expect(blocks()[1]?.getBoundingClientRect().top).toBe(-30);
  expect(scroller.scrollTop).toBe(HEIGHT.text + 30);
  await showAs("tokens");
  expect(blocks()[1]?.getBoundingClientRect().top).toBe(-30);
  expect(scroller.scrollTop).toBe(HEIGHT.tokens + 30);
});

test("the space below fast text shrinks where it is out of view", async () => {
  const content = scroller.firstElementChild as HTMLElement;
  const space = () => parseFloat(content.style.paddingBottom);
  let text = 400;
  Object.defineProperties(scroller, {
    clientHeight: { value: 500 },
    scrollHeight: { get: () => text + space() },
  });
  const small = space();

  window.app.reply.active = true;
  await window.pass();
  text = 2000;
  for (const resized of observers) resized([]);
  await window.pass();
  expect(space()).toBe(200);

  window.app.reply.active = false;
  const scrollUp = async (pixels: number) => {
    scroller.scrollTop -= pixels;
    scroller.dispatchEvent(new Event("scroll"));
    await window.pass();
  };
  scroller.scrollTop = scroller.scrollHeight - 500;
  await scrollUp(50);
  expect(space()).toBe(150);
  await scrollUp(500);
  expect(space()).toBe(small);
});
