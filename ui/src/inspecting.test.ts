/** The reply shown by inspector and header, and the effect of a new draft, in the whole window. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { facts } from "./bindings/facts";
import { COLUMN_WIDTH, GUTTER } from "./heatmap/layout";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

// Each test plays a whole reply.
vi.setConfig({ testTimeout: 20_000 });

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

const shown = () => Number(window.present("inspector").dataset["message"]);
const ids = () =>
  window.app.conversations.messages.filter(({ role }) => role === "assistant").map(({ id }) => id);

async function ask(text: string) {
  await window.type("composer", text);
  await window.press("Enter", window.present("composer"));
}

test("a click on a reply's numbers shows that reply, and a link leads back to the newest", async () => {
  await ask("Count.");
  await window.pass(120_000);
  const [first, second] = ids();
  expect(shown()).toBe(second);
  await window.click("reply-numbers");
  expect(shown()).toBe(first);
  expect(window.present("inspected-reply").textContent.trim()).toBe("Reply 1 of 2");
  document.querySelector<HTMLElement>(".newest")?.click();
  await window.pass();
  expect(shown()).toBe(second);
});

test("the inspector shows the reply in view, and at the end of the conversation the newest", async () => {
  await ask("Count.");
  await window.pass(120_000);
  const [first, second] = ids();
  window.app.chat.inView = first ?? null;
  await window.pass();
  expect(shown()).toBe(first);
  window.app.chat.inView = null;
  await window.pass();
  expect(shown()).toBe(second);
});

test.each([
  [592, "1.1×"],
  [700, "1.1× faster"],
])("a header %i px wide leaves room for the models' names: %s", async (width, words) => {
  await window.close();
  const sized = vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(width);
  window = await WindowFixture.open();
  sized.mockRestore();
  expect(window.present("speed-pill").textContent.trim()).toBe(words);
});

test("a draft chosen while a reply is written applies from the next one on, with a notice", async () => {
  await ask("Count.");
  await window.pass(100);
  expect(window.app.reply.active).toBe(true);
  await window.app.chooseDraft(facts.draftNgram);
  await window.pass();
  const said = "N-gram from the next reply";
  expect(window.app.toasts.list.map(({ text }) => text)).toContain(said);
  window.present("speed-pill").querySelector("button")?.focus();
  await window.pass();
  expect(window.present("speed-pill").textContent).toContain(said);
  await window.pass(120_000);
  expect(window.app.nextDraft).toBeNull();
});

test("the outline of a token in the heatmap's first column is not cut at the row numbers", async () => {
  window.app.view.inspect(ids()[0] ?? expect.fail(), { round: 0, slot: 0 });
  await window.pass();
  const frame = document.querySelector<HTMLElement>(".frame.selected") ?? expect.fail();
  const [x = 0] = /[\d.]+/.exec(frame.style.transform) ?? [];
  expect(Number(x), "the outline begins 3 px before the cell").toBeGreaterThanOrEqual(3);
  const left = parseFloat(frame.parentElement?.style.left ?? "");
  expect(left + Number(x), "the cell is beside the row numbers").toBeGreaterThanOrEqual(GUTTER);
  expect(left + Number(x)).toBeLessThan(GUTTER + COLUMN_WIDTH);
});
