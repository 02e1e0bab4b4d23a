import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
  window.app.setup.scope = "general";
  await window.press("Ctrl ,");
});
afterEach(() => window.close());

async function fill(testid: string, text: string) {
  const field = window.present(testid) as HTMLInputElement | HTMLTextAreaElement;
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new Event("change", { bubbles: true }));
  await window.pass(0);
}

test("stop words are typed one a line, and too many or too long ones are refused", async () => {
  await window.click("settings-tab-sampling");
  const stop = () => window.app.settings.values.stop;
  await fill("settings-stop", "User:\n\\n\\n\n");
  expect(stop()).toEqual(["User:", "\n\n"]);
  const many = Array.from({ length: 17 }, (_, at) => `word ${at}`).join("\n");
  for (const refused of [many, "ä".repeat(129)]) {
    await fill("settings-stop", refused);
    expect(stop()).toEqual(["User:", "\n\n"]);
    expect(window.present("settings-stop").getAttribute("aria-invalid")).toBe("true");
  }
});

test("a word gets a bias, which can be changed within its range and removed", async () => {
  await window.click("settings-tab-sampling");
  const biases = () => window.app.settings.values.word_bias;
  await fill("bias-word", "fox");
  await window.click("bias-add");
  await fill("bias-word", "two words");
  await window.click("bias-add");
  expect(biases()).toEqual([
    { word: "fox", bias: -5 },
    { word: "two words", bias: -5 },
  ]);
  expect(
    window.all("bias").map(({ textContent }) => textContent.includes("several tokens")),
  ).toEqual([false, true]);
  await fill("bias-value", "7.5");
  expect(biases()[0]).toEqual({ word: "fox", bias: 7.5 });
  await fill("bias-value", "101");
  expect(biases()[0]).toEqual({ word: "fox", bias: 7.5 });
  await window.click("bias-remove");
  expect(biases()).toEqual([{ word: "two words", bias: -5 }]);
});

test("a search service wants an address or a key, which goes to the keyring alone", async () => {
  await window.click("settings-tab-tools");
  expect(window.find("search-service")).toBeNull();
  await window.click("builtin-web_search");
  await fill("search-service", "searxng");
  await fill("search-address", " http://search.example ");
  expect(window.app.settings.values).toMatchObject({
    search_service: "searxng",
    searxng_address: "http://search.example",
  });
  await fill("search-service", "brave");
  const keep = vi.spyOn(window.app.tools, "setSearchKey").mockResolvedValue(true);
  await fill("search-key", "secret");
  await window.click("search-key-set");
  expect(keep).toHaveBeenCalledWith("brave", "secret");
  expect(JSON.stringify(window.app.settings.values)).not.toContain("secret");
  expect((window.present("search-key") as HTMLInputElement).value).toBe("");
});
