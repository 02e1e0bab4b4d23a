import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LIBRARY_SECTIONS } from "./commands/sections";
import { englishTexts, findings } from "./findings";
import { isNightly } from "./nightly";
import { SECTIONS } from "./settings/words";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

/** Interval of the German screens that axe checks; all are searched for English. */
const GERMAN_INTERVAL = isNightly ? 1 : 6;

let window: WindowFixture;

afterEach(() => window.close());

type Screen = [name: string, show: () => Promise<void>];

const SCREENS: Screen[] = [
  ["a conversation with the inspector", () => Promise.resolve()],
  ["the welcome", () => window.press("Ctrl n")],
  ["a reply as its text", () => window.press("Ctrl Shift T")],
  [
    "a question, a menu and a picker",
    async () => {
      await window.click("reply-more");
      await window.press("Ctrl d");
    },
  ],
  [
    "several branches",
    async () => {
      const reply = window.app.newestReply ?? expect.fail();
      void window.backend.regenerate(reply.id, () => undefined);
      await window.pass(120_000);
      await window.app.open(reply.conversation);
      await window.pass();
      window.present("previous-branch");
    },
  ],
  ["a question that is changed", () => window.click("edit-question")],
  [
    "a replay",
    async () => {
      await window.click("reply-more");
      await window.click("replay-open");
    },
  ],
  [
    "a reply that was checked",
    async () => {
      await window.click("reply-more");
      await window.click("check-reply");
      await window.pass(5000);
    },
  ],
  [
    "what a search found",
    async () => {
      await window.type("search", "fox");
      await window.pass(500);
    },
  ],
  ["the arena", () => window.press("Ctrl e")],
  [
    "the arena with a result",
    async () => {
      await window.press("Ctrl e");
      await window.type("arena-prompt", "Why?");
      await window.click("arena-start");
      await window.pass(60_000);
      window.present("arena-verdict");
    },
  ],
  ["the palette", () => window.press("Ctrl k")],
  [
    "the palette with what was typed",
    async () => {
      await window.press("Ctrl k");
      await window.type("palette-field", "model");
    },
  ],
  [
    "the palette with nothing found",
    async () => {
      await window.press("Ctrl k");
      await window.type("palette-field", "zebra");
    },
  ],
  ["the keyboard shortcuts", () => window.press("Ctrl /")],
  [
    "prompts and resources of servers",
    async () => {
      window.app.settings.change({ tool_servers: { notes: "digest" } });
      await window.pass();
      await window.click("contents-open");
    },
  ],
  ...SECTIONS.map(({ id, name }): Screen => [
    `the settings: ${name}`,
    async () => {
      await window.press("Ctrl ,");
      await window.click(`settings-tab-${id}`);
    },
  ]),
  [
    "settings that were looked for",
    async () => {
      await window.press("Ctrl ,");
      await window.type("settings-search", "draft");
    },
  ],
  ...LIBRARY_SECTIONS.map(({ id, name }): Screen => [
    `the library: ${name}`,
    async () => {
      await window.press("Ctrl l");
      await window.click(`library-tab-${id}`);
      await window.pass(1000);
    },
  ]),
];

beforeEach(async () => {
  // Title as in index.html.
  document.title = "Foretoken";
  document.documentElement.lang = "en";
  window = await WindowFixture.open();
});

// One theme is enough: themes differ only in colours, which jsdom lacks.
test.each(SCREENS)("axe finds no serious violation in %s", async (_, show) => {
  await show();
  expect(await findings()).toEqual([]);
});

test.each(SCREENS.map((screen, at) => [...screen, at] as const))(
  "in German, axe finds no serious violation and no text is in English: %s",
  async (_, show, at) => {
    window.app.settings.changeAppearance({ language: "de" });
    await window.pass();
    await show();
    expect(document.documentElement.lang).toBe("de");
    expect(englishTexts()).toEqual([]);
    if (at % GERMAN_INTERVAL === 0) expect(await findings()).toEqual([]);
  },
);

test.each(SCREENS)(
  "a change of the language updates open parts of the window: %s",
  async (_, show) => {
    await show();
    const before = document.querySelectorAll("*").length;
    window.app.settings.changeAppearance({ language: "de" });
    await window.pass();
    expect(englishTexts()).toEqual([]);
    expect(document.querySelectorAll("*").length).toBeGreaterThan(0.9 * before);
  },
);
