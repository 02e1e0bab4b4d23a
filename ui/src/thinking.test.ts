import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

/**
 * Loads a model that thinks by default (true), does not by default (false), or has no choice
 * (null).
 */
async function load(thinks: boolean | null) {
  const { engine } = window.app;
  engine.status = { ...engine.status, thinks };
  await window.pass(0);
}

const pressed = () => window.present("thinking-switch").getAttribute("aria-pressed");

test("a model without a choice has no switch for thinking", async () => {
  await load(null);
  expect(document.querySelector("[data-testid='thinking-switch']")).toBeNull();
});

test("the switch shows the model's default, and changes it", async () => {
  const { settings } = window.app;
  for (const thinks of [true, false]) {
    settings.change({ thinking: null });
    await load(thinks);
    expect(pressed()).toBe(String(thinks));
    await window.click("thinking-switch");
    expect(settings.values.thinking).toBe(!thinks);
    expect(pressed()).toBe(String(!thinks));
    await window.click("thinking-switch");
    expect(settings.values.thinking).toBe(thinks);
  }
});
