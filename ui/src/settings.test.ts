import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Settings } from "./bindings/Settings";
import { defaults } from "./bindings/defaults";
import { SETTINGS, type SettingId } from "./settings/words";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
  await window.press("Ctrl ,");
});
afterEach(() => window.close());

const shown = () => window.all("setting").map(({ dataset }) => dataset["setting"]);
const marks = () =>
  [...window.present("settings-panel").querySelectorAll("mark")].map((mark) => mark.textContent);
const resets = () => [
  ...window.present("settings-panel").querySelectorAll<HTMLElement>("[aria-label^=Reset]"),
];

test("a search covers all sections and marks the words", async () => {
  await window.type("settings-search", "draft model");
  expect(shown()).toEqual(["draft", "drafter", "staged", "verification", "draft_device"]);
  expect(new Set(marks().map((mark) => mark.toLowerCase()))).toEqual(new Set(["draft", "model"]));
  const headings = [...window.present("settings-panel").querySelectorAll("h3")];
  expect(headings.map(({ textContent }) => textContent)).toEqual(["Speculation", "Device"]);
});

test("the settings open at the appearance, with theme, language and text size first", () => {
  expect(shown().slice(0, 3)).toEqual(["theme", "language", "text_size"]);
});

test("a part below a setting takes no room while it is empty", () => {
  const source = readFileSync("src/components/settings/SettingRow.svelte", "utf8");
  const sheet = document.createElement("style");
  sheet.textContent = /<style>([^]*)<\/style>/.exec(source)?.[1] ?? "";
  document.head.append(sheet);
  const parts = [...document.querySelectorAll<HTMLElement>(".setting > .below")];
  const inGrid = () => parts.map((part) => getComputedStyle(part).position !== "absolute");
  expect(inGrid()).toEqual([false, false]);
  parts[0]?.append(document.createElement("p"));
  expect(inGrid()).toEqual([false, false]);
  parts[0]?.querySelector("p")?.append("text");
  expect(inGrid()).toEqual([true, false]);
  sheet.remove();
});

test("the version stands below the sections", async () => {
  const { version } = window.app.info ?? expect.fail("no version");
  for (const section of ["appearance", "data"]) {
    await window.click(`settings-tab-${section}`);
    expect(window.present("app-version").textContent.trim()).toBe(`Foretoken ${version}`);
  }
});

test("the button that resets a changed setting names its default", async () => {
  const reset = () =>
    window
      .all("setting")
      .find(({ dataset }) => dataset["setting"] === "text_size")
      ?.querySelector<HTMLElement>(".label button");
  expect(reset()).toBeNull();
  window.app.settings.changeAppearance({ text_size: 120 });
  await window.pass();
  expect(reset()?.dataset["tooltip"]).toBe("Reset to the default: 100%");
  window.app.settings.changeAppearance({ language: "de" });
  await window.pass();
  expect(reset()?.dataset["tooltip"]).toBe("Auf die Vorgabe zurücksetzen: 100 %");
});

test.each([
  [
    "speculation",
    "settings-learn-from-earlier",
    () => window.app.settings.values.learn_from_earlier,
  ],
  ["sampling", "settings-stop-loops", () => window.app.setup.values.sampling.stop_loops],
  ["server", "settings-server", () => window.app.settings.values.server.enabled],
  ["appearance", "settings-notifications", () => window.app.settings.values.notifications],
  ["data", "settings-write-titles", () => window.app.settings.values.write_titles],
  ["data", "settings-keep-traces", () => window.app.settings.values.keep_traces],
])("in %s, %s is a switch with a name", async (section, testid, value) => {
  await window.click(`settings-tab-${section}`);
  const control = window.present(testid) as HTMLInputElement;
  const label = document.getElementById(control.getAttribute("aria-labelledby") ?? "");
  expect(control.getAttribute("role")).toBe("switch");
  expect(label?.textContent).not.toBe("");
  const before = value();
  expect(control.checked).toBe(before);
  await window.click(testid);
  expect([control.checked, value()]).toEqual([!before, !before]);
});

test("among several words, Off is the last", async () => {
  const off = { en: "Off", de: "Aus" };
  for (const language of ["en", "de"] as const) {
    window.app.settings.changeAppearance({ language });
    for (const section of ["speculation", "sampling"]) {
      await window.click(`settings-tab-${section}`);
      const choices = [...window.present("settings-panel").querySelectorAll(".segmented")]
        .map((choice) =>
          [...choice.querySelectorAll("label")].map((word) => word.textContent.trim()),
        )
        .filter((words) => words.includes(off[language]));
      expect(choices.length).toBeGreaterThan(0);
      for (const words of choices) expect(words.at(-1), words.join()).toBe(off[language]);
    }
  }
});

test("a search finds entries that are no settings, and nothing else of their section", async () => {
  await window.type("settings-search", "stored here");
  expect(shown()).toEqual([]);
  expect(window.present("settings-panel").textContent).toContain("Data folder");
  expect(window.find("trace-storage")).toBeNull();
});

test("a search without results says so", async () => {
  await window.type("settings-search", "zebra");
  expect(shown()).toEqual([]);
  expect(window.present("settings-none").textContent).toBe("No matches");
});

test("Esc ends a search without closing the settings, and so does choosing a section", async () => {
  await window.type("settings-search", "seed");
  await window.press("Escape", window.present("settings-search"));
  expect((window.present("settings-search") as HTMLInputElement).value).toBe("");
  expect(shown()).toContain("theme");
  await window.type("settings-search", "seed");
  await window.click("settings-tab-device");
  expect(shown()).toEqual([
    "device",
    "draft_device",
    "context_length",
    "int8_kv_cache",
    "context_memory",
    "context_disk",
  ]);
});

test("closing the settings ends the search", async () => {
  await window.type("settings-search", "seed");
  await window.click("settings-close");
  expect(window.find("settings-panel")).toBeNull();
  await window.press("Ctrl ,");
  expect((window.present("settings-search") as HTMLInputElement).value).toBe("");
});

test("automatic penalties are the model's, and custom ones begin with the same values", async () => {
  const sampling = () => window.app.settings.values.sampling;
  window.app.setup.scope = "general";
  await window.click("settings-tab-sampling");
  expect(shown()).not.toContain("dry_multiplier");
  expect(window.present("penalties-now").textContent).toBe(
    "Now, with starter: Repetition penalty 1.03, last 128 tokens; DRY 0.8 × 1.75, from 4 tokens on, last 2,048 tokens",
  );
  const custom = window.present("settings-automatic-penalties").querySelectorAll("input")[1];
  custom?.click();
  await window.pass();
  expect(window.find("penalties-now")).toBeNull();
  expect(shown()).toContain("dry_multiplier");
  expect(sampling()).toMatchObject({
    automatic_penalties: false,
    repetition_penalty: 1.03,
    dry_allowed_length: 4,
  });
  const field = window.present("settings-dry-sequence-breakers") as HTMLInputElement;
  expect(field.value).toBe('\\n : " *');
  field.value = ". \\n";
  field.dispatchEvent(new Event("change", { bubbles: true }));
  await window.pass();
  expect(sampling().dry_sequence_breakers).toEqual([".", "\n"]);
});

test("a search finds single penalties while they are automatic, and setting one makes it custom", async () => {
  window.app.setup.scope = "general";
  await window.type("settings-search", "DRY strength");
  expect(shown()).toEqual(["dry_multiplier"]);
  const field = window.present("settings-dry_multiplier") as HTMLInputElement;
  expect(field.value).toBe("0.8");
  await window.type("settings-dry_multiplier", "1.5");
  expect(window.app.settings.values.sampling).toMatchObject({
    automatic_penalties: false,
    dry_multiplier: 1.5,
    repetition_penalty: 1.03,
  });
});

test("the view of all replies can be set, and matches the header's switch", async () => {
  expect(window.present("reply-view").dataset["value"]).toBe("tokens");
  window.present("settings-reply-view").querySelector("input")?.click();
  await window.pass();
  expect(window.present("reply-view").dataset["value"]).toBe("text");
});

test("the folders of data and models open in the file manager, with a message on failure", async () => {
  await window.click("settings-tab-data");
  const openFolder = vi.spyOn(window.backend, "openFolder").mockResolvedValueOnce(undefined);
  await window.click("open-folder-models");
  expect(openFolder).toHaveBeenLastCalledWith("models");
  expect(window.app.toasts.list).toEqual([]);
  await window.click("open-folder-data");
  expect(openFolder).toHaveBeenLastCalledWith("data");
  expect(window.app.toasts.list.map(({ text }) => text)).toEqual([
    "A page in a browser has no folders.",
  ]);
});

test("in the settings the shortcut of the search focuses their own search", async () => {
  await window.press("Ctrl f");
  expect(document.activeElement).toBe(window.present("settings-search"));
});

/** Values other than the default, for all settings with one. */
const OTHERS: Partial<Record<SettingId, Partial<Settings>>> = {
  draft: { drafts: { starter: "ngram" } },
  drafter: { speculation: { ...defaults.speculation, drafter: "ngram" } },
  draft_length: { speculation: { ...defaults.speculation, length: { type: "off" } } },
  mode: { sampling: { ...defaults.sampling, mode: "reproducible" } },
  learn_from_earlier: { learn_from_earlier: true },
  threshold: { speculation: { ...defaults.speculation, threshold: { type: "auto" } } },
  tree: { speculation: { ...defaults.speculation, tree: { type: "off" } } },
  staged: { speculation: { ...defaults.speculation, staged: "off" } },
  verification: { speculation: { ...defaults.speculation, verification: "token" } },
  temperature: { sampling: { ...defaults.sampling, temperature: 1 } },
  top_k: { sampling: { ...defaults.sampling, top_k: 40 } },
  top_p: { sampling: { ...defaults.sampling, top_p: 0.5 } },
  min_p: { sampling: { ...defaults.sampling, min_p: 0.1 } },
  repetition_penalty: { sampling: { ...defaults.sampling, repetition_penalty: 1.1 } },
  automatic_penalties: { sampling: { ...defaults.sampling, automatic_penalties: false } },
  repeat_last_n: { sampling: { ...defaults.sampling, repeat_last_n: 128 } },
  dry_multiplier: { sampling: { ...defaults.sampling, dry_multiplier: 0.8 } },
  dry_base: { sampling: { ...defaults.sampling, dry_base: 2 } },
  dry_allowed_length: { sampling: { ...defaults.sampling, dry_allowed_length: 4 } },
  dry_penalty_last_n: { sampling: { ...defaults.sampling, dry_penalty_last_n: 512 } },
  dry_sequence_breakers: { sampling: { ...defaults.sampling, dry_sequence_breakers: ["."] } },
  presence_penalty: { sampling: { ...defaults.sampling, presence_penalty: 0.5 } },
  frequency_penalty: { sampling: { ...defaults.sampling, frequency_penalty: -0.5 } },
  word_bias: { word_bias: [{ word: "fox", bias: -5 }] },
  stop_loops: { sampling: { ...defaults.sampling, stop_loops: false } },
  seed: { sampling: { ...defaults.sampling, seed: 7 } },
  max_tokens: { max_tokens: 100 },
  stop: { stop: ["User:"] },
  context_overflow: { context_overflow: "stop" },
  thinking: { thinking: true },
  model_preset: { model_presets: { ...defaults.model_presets, starter: "precise" } },
  device: { device: "cpu" },
  draft_device: { draft_device: "cpu" },
  context_length: { context_lengths: { starter: 2048 } },
  int8_kv_cache: { int8_kv_caches: ["starter"] },
  context_memory: { context_memory_mb: 4000 },
  context_disk: { context_disk_gb: 2 },
  system_prompt: { system_prompt: "Be brief." },
  theme: { appearance: { ...defaults.appearance, theme: "dark" } },
  language: { appearance: { ...defaults.appearance, language: "en" } },
  text_size: { appearance: { ...defaults.appearance, text_size: 120 } },
  wide_chat: { appearance: { ...defaults.appearance, wide_chat: true } },
  motion: { appearance: { ...defaults.appearance, reduced_motion: true } },
  send_key: { appearance: { ...defaults.appearance, send_key: "command_enter" } },
  server_enabled: { server: { ...defaults.server, enabled: true } },
  server_host: { server: { ...defaults.server, host: "0.0.0.0" } },
  server_port: { server: { ...defaults.server, port: 8080 } },
  server_key: { server: { ...defaults.server, key: "secret" } },
  tool_calculate: { builtin_tools: ["calculate"] },
  tool_now: { builtin_tools: ["now"] },
  tool_read_page: { builtin_tools: ["read_page"] },
  tool_web_search: { builtin_tools: ["web_search"] },
  tool_read_attachment: { builtin_tools: ["read_attachment"] },
  tool_search_conversations: { builtin_tools: ["search_conversations"] },
  embedding_model: { embedding_model: "owner/model" },
  notifications: { notifications: false },
  start_at_login: { start_at_login: true },
  tray_icon: { tray_icon: true },
  keep_in_tray: { keep_in_tray: true },
  quick_shortcut: { quick_shortcut: "control+Space" },
  write_titles: { write_titles: false },
  keep_traces: { keep_traces: false },
  check_for_updates: { check_for_updates: true },
};

test.each(Object.entries(OTHERS))(
  "%s is reset with its section and with all settings, and both can be undone",
  async (id, other) => {
    const { settings } = window.app;
    const { section } = SETTINGS[id as SettingId];
    window.app.setup.scope = "general";
    settings.values = { ...defaults };
    const before = settings.values;
    await window.click(`settings-tab-${section}`);
    for (const button of ["settings-reset-section", "settings-reset-all"]) {
      expect((window.present(button) as HTMLButtonElement).disabled, "nothing to reset").toBe(true);
      settings.change(other);
      await window.pass(0);
      const changed = settings.values;
      await window.click(button);
      expect(settings.values).toEqual(before);
      expect(document.activeElement).toBe(window.present("settings-undo"));
      await window.click("settings-undo");
      expect(settings.values).toEqual(changed);
      expect(window.find("settings-undo")).toBeNull();
      await window.click(button);
    }
  },
);

test("a section resets only its own settings, and no panel or model", async () => {
  const { settings } = window.app;
  settings.values = {
    ...defaults,
    sampling: { ...defaults.sampling, temperature: 1, mode: "reproducible" },
    appearance: { ...defaults.appearance, sidebar_open: false },
    added_models: ["/a.gguf"],
  };
  window.app.setup.scope = "general";
  await window.click("settings-tab-sampling");
  await window.click("settings-reset-section");
  expect(settings.values.sampling).toEqual({ ...defaults.sampling, mode: "reproducible" });
  await window.click("settings-reset-all");
  expect(settings.values.sampling).toEqual(defaults.sampling);
  expect(settings.values.appearance.sidebar_open).toBe(false);
  expect(settings.values.added_models).toEqual(["/a.gguf"]);
});

test("a section with a conversation's own settings does not reset the general ones", async () => {
  const { app } = window;
  const button = () => window.present("settings-reset-section") as HTMLButtonElement;
  app.settings.change({ max_tokens: 9 });
  await window.click("settings-tab-sampling");
  expect(app.setup.shown).toBe("conversation");
  expect(button().disabled).toBe(true);
  expect(button().dataset["tooltip"]).toContain("All conversations");
  await window.click("settings-tab-data");
  app.settings.change({ keep_traces: !defaults.keep_traces });
  await window.pass(0);
  expect(button().disabled).toBe(false);
  app.setup.scope = "general";
  await window.click("settings-tab-sampling");
  expect(button().disabled).toBe(false);
});

test("after an undo the focus is on a usable button", async () => {
  window.app.settings.change({ keep_traces: !defaults.keep_traces });
  await window.click("settings-tab-appearance");
  await window.click("settings-reset-all");
  await window.click("settings-undo");
  expect(document.activeElement).toBe(window.present("settings-reset-all"));
});

test("a change after a reset is not undone with it", async () => {
  window.app.settings.change({ sampling: { ...defaults.sampling, temperature: 1 } });
  window.app.setup.scope = "general";
  await window.click("settings-tab-sampling");
  await window.click("settings-reset-section");
  expect(window.find("settings-undo")).not.toBeNull();
  window.app.settings.change({ system_prompt: "Be brief." });
  await window.pass();
  expect(window.find("settings-undo")).toBeNull();
});

test("every setting that has a default is tried below", () => {
  const all = Object.entries(SETTINGS).filter(([, { standard }]) => standard !== undefined);
  expect(all.map(([id]) => id).sort()).toEqual(Object.keys(OTHERS).sort());
});

test.each(Object.entries(OTHERS))(
  "%s is reset by a button that names the default",
  async (id, other) => {
    const { label, standard = "", section } = SETTINGS[id as SettingId];
    const { settings } = window.app;
    const { target } = window.app.engine.status;
    window.app.setup.scope = "general";
    // Custom penalties have a row each, and a button.
    const isPenalty = /^(repe|dry)/.test(id);
    const sampling = { ...defaults.sampling, automatic_penalties: !isPenalty };
    settings.values = { ...defaults, sampling, target: target?.id ?? "", drafts: {} };
    const before = settings.values;
    await window.click(`settings-tab-${section}`);
    const own = () =>
      resets().filter(
        (button) => button.closest("[data-setting=automatic_penalties]") === null || !isPenalty,
      );
    expect(own()).toEqual([]);
    if (isPenalty && other.sampling)
      settings.change({ sampling: { ...other.sampling, automatic_penalties: false } });
    else settings.change(id === "draft" ? { drafts: { [target?.id ?? ""]: "ngram" } } : other);
    await window.pass(0);
    const [reset] = own();
    expect(own()).toHaveLength(1);
    expect(reset?.getAttribute("aria-label")).toBe(`Reset ${label} to its default, ${standard}`);
    reset?.focus();
    reset?.click();
    await window.pass();
    expect(settings.values).toEqual(before);
    expect(own()).toEqual([]);
    const row = document.activeElement?.closest<HTMLElement>("[data-testid=setting]");
    expect(row?.dataset["setting"]).toBe(id);
  },
);

test("a problem is shown below the content of a dialog, which stays in place", async () => {
  const content = document.querySelector("dialog [role=tabpanel]") ?? expect.fail("no content");
  const before = content.previousElementSibling;
  window.app.settings.problem = "The disk is full.";
  await window.pass();
  expect(content.nextElementSibling?.textContent).toContain("The disk is full.");
  expect(content.previousElementSibling).toBe(before);
});

test("a desktop without a tray is named while the icon is on, and nothing is kept without it", async () => {
  const { settings } = window.app;
  settings.values = { ...defaults };
  await window.click("settings-tab-appearance");
  const chosen = () => [settings.values.tray_icon, settings.values.keep_in_tray];
  expect(window.find("settings-no-tray")).toBeNull();
  await window.click("settings-keep-in-tray");
  await window.pass(0);
  expect(chosen()).toEqual([true, true]);
  expect(window.present("settings-no-tray").textContent).toContain("AppIndicator");
  await window.click("settings-tray-icon");
  expect(chosen()).toEqual([false, false]);
});
