/** A sidebar with very many conversations. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

test("conversations are drawn only as far as they are scrolled", async () => {
  const ends: (() => void)[] = [];
  vi.stubGlobal(
    "IntersectionObserver",
    class {
      constructor(readonly callback: (entries: object[]) => void) {}
      observe(target: Element) {
        ends.push(() => this.callback([{ target, isIntersecting: true }]));
      }
      unobserve() {}
    },
  );
  const one = window.app.conversations.list[0] ?? expect.fail("no conversation");
  const many = [...Array(200).keys()].map((at) => ({ ...one, id: 1000 + at, updated_at: at }));
  window.app.conversations.list = many;
  await window.pass();
  const drawn = () => window.all("conversation-item").length;
  expect(drawn()).toBe(60);
  for (const more of [120, 180, 200]) {
    ends.at(-1)?.();
    await window.pass();
    expect(drawn()).toBe(more);
  }
});
