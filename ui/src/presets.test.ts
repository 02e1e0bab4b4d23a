import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { defaults } from "./bindings/defaults";
import type { Preset } from "./bindings/Preset";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

const OF_MINE: Preset = {
  id: "mine",
  name: "Mine",
  values: {
    system_prompt: "Be brief.",
    sampling: { ...defaults.sampling, temperature: 1.5 },
    speculation: defaults.speculation,
    max_tokens: 9,
    stop: [],
    word_bias: [],
    tools: "off",
  },
};

const value = (testid: string) => window.present(testid).dataset["value"];
const presets = () => window.app.settings.values.presets;
const names = () => presets().map(({ name }) => name);

async function openPresets() {
  window.app.view.openSettings("presets");
  await window.pass();
}

/** Chooses an action in the menu of a preset's row. */
async function act(preset: string, action: string) {
  const row = document.querySelector<HTMLElement>(`[data-preset="${preset}"]`);
  row?.querySelector<HTMLElement>('[data-testid="preset-actions"]')?.click();
  await window.pass();
  await window.click(action);
}

beforeEach(async () => {
  window = await WindowFixture.open();
  await window.app.settings.choose({ presets: [OF_MINE] });
  await window.pass();
});
afterEach(() => window.close());

test("a preset chosen for a conversation does not apply to others", async () => {
  const { app } = window;
  expect(value("preset-picker")).toBe("");
  await window.click("preset-picker");
  await window.click("preset-option-mine");
  expect(value("preset-picker")).toBe("mine");
  expect(app.setup.current).toMatchObject({ own: true, preset: "mine", values: OF_MINE.values });
  const [first, second] = app.conversations.list;
  await app.open(second?.id ?? 0);
  await window.pass();
  expect(value("preset-picker")).toBe("");
  await app.open(first?.id ?? 0);
  await window.pass();
  expect(value("preset-picker")).toBe("mine");
  await window.click("preset-picker");
  await window.click("preset-option-");
  expect(app.setup.current).toMatchObject({ own: false, preset: null });
});

test("a change in an open conversation is its own, and the general settings stay", async () => {
  const { app } = window;
  await window.click("preset-picker");
  await window.click("preset-option-more-0");
  expect(value("settings-scope")).toBe("conversation");
  await window.type("settings-max-tokens", "77");
  await window.pass(1000);
  expect(app.settings.values.max_tokens).toBe(defaults.max_tokens);
  expect(app.setup.current).toMatchObject({ own: true, preset: null, values: { max_tokens: 77 } });
  expect(await window.backend.openSetup(app.conversations.current)).toMatchObject({
    values: { max_tokens: 77 },
  });
  await window.click("settings-close");
  expect(value("preset-picker")).toBe("own");
  app.startNew();
  await window.pass();
  expect(app.setup.current).toMatchObject({
    own: false,
    values: { max_tokens: defaults.max_tokens },
  });
});

test("a conversation without its own settings follows the general ones", async () => {
  const { app } = window;
  app.setup.scope = "general";
  app.view.openSettings("sampling");
  await window.pass();
  await window.type("settings-max-tokens", "55");
  await window.pass(1000);
  expect(app.settings.values.max_tokens).toBe(55);
  expect(app.setup.current).toMatchObject({ own: false, values: { max_tokens: 55 } });
});

test("presets can be created, renamed, copied, edited and deleted, with undo", async () => {
  const { app } = window;
  await openPresets();
  await window.click("preset-create");
  expect(names()).toEqual(["Mine", "My preset"]);
  await act("mine", "preset-duplicate");
  expect(names()).toEqual(["Mine", "My preset", "Mine 2"]);
  expect(presets()[2]?.values).toEqual(OF_MINE.values);

  const field = window.present("preset-name") as HTMLInputElement;
  const rename = async (to: string) => {
    field.value = to;
    field.dispatchEvent(new Event("change", { bubbles: true }));
    await window.pass();
  };
  for (const [bad, why] of [
    ["mine 2", "Another preset"],
    ["precise", "Another preset"],
    [" ", "needs a name"],
    ["x".repeat(10_000), "at most 60 letters"],
  ] as const) {
    await rename(bad);
    expect(document.querySelector('[role="alert"]')?.textContent, bad).toContain(why);
    expect(names()[0]).toBe("Mine");
  }
  await rename(" Yours ");
  expect(names()[0]).toBe("Yours");
  expect(document.querySelector('[role="alert"]')).toBeNull();

  await act("mine", "preset-edit");
  expect(value("settings-scope")).toBe("preset");
  await window.type("settings-max-tokens", "12");
  await window.pass(1000);
  expect(presets()[0]?.values.max_tokens).toBe(12);
  expect(app.settings.values.max_tokens).toBe(defaults.max_tokens);

  await openPresets();
  await act("mine", "preset-delete");
  expect(names()).toEqual(["My preset", "Mine 2"]);
  app.toasts.list.at(-1)?.action?.run();
  await window.pass();
  expect(names()).toEqual(["Yours", "My preset", "Mine 2"]);
});

test("a built-in preset can be hidden and copied, but not changed", async () => {
  await openPresets();
  await act("precise", "preset-hide");
  await window.click("settings-close");
  await window.click("preset-picker");
  expect(window.find("preset-option-precise")).toBeNull();
  expect(window.find("preset-option-creative")).not.toBeNull();
  await openPresets();
  await act("precise", "preset-duplicate");
  expect(presets().at(-1)).toMatchObject({
    name: "Precise 2",
    values: { sampling: { temperature: 0.2, top_p: 0.9 } },
  });
});

test("the recommended values of the model's publisher are shown, and applied with one click", async () => {
  const { app } = window;
  expect(window.find("recommended-sampling")).toBeNull();
  const storyteller = app.engine.status.targets.find(({ recommended }) => recommended);
  await app.settings.choose({ target: storyteller?.id ?? "" });
  await window.pass();
  app.view.openSettings("sampling");
  await window.pass();
  const said = () => window.present("recommended-sampling").textContent;
  expect(said()).toContain("temperature 0.6, top-k 20, top-p 0.95");
  await window.click("use-recommended");
  await window.pass(1000);
  expect(said()).toContain("In use");
  expect(app.setup.current?.values.sampling).toMatchObject({ temperature: 0.6, top_k: 20 });
});

test("a conversation of another model says so, and loads that model only on request", async () => {
  const { app } = window;
  void app.reply.send({ text: "Hello", kept: [], attached: [] }, () => undefined);
  await window.pass(100);
  await app.reply.stop();
  await window.pass(5000);
  expect(app.reply.active).toBe(false);
  expect(window.find("other-target")).toBeNull();
  const other = app.engine.status.targets.find(({ recommended }) => recommended);
  await app.settings.choose({ target: other?.id ?? "" });
  await window.pass();
  const { current } = app.conversations;
  app.startNew();
  await window.pass();
  expect(window.find("other-target")).toBeNull();
  await app.open(current ?? 0);
  await window.pass();
  expect(window.present("other-target").textContent).toContain("Starter 8.1M · Q8_0 wrote");
  expect(app.engine.status.target?.id).toBe(other?.id);
  await window.click("load-other-target");
  expect(app.engine.status.target?.id).toBe("starter");
  expect(window.find("other-target")).toBeNull();
});

test("the set-up is fetched once per target, however often the engine's status changes", async () => {
  const { app } = window;
  const fetched = vi.spyOn(window.backend, "openSetup");
  for (const at of [1, 2, 3]) {
    const { memory } = app.engine.status;
    app.engine.status = { ...app.engine.status, memory: { ...memory, process_bytes: at } };
    await window.pass();
  }
  expect(fetched).not.toHaveBeenCalled();
  const { target } = app.engine.status;
  app.engine.status = { ...app.engine.status, target: target && { ...target, id: "other" } };
  await window.pass();
  expect(fetched).toHaveBeenCalledTimes(1);
});
