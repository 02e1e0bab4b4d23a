import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import Quick from "./Quick.svelte";
import { BackendError, type Backend } from "./backend/backend";
import { player } from "./backend/player";
import { englishTexts, findings } from "./findings";
import { App } from "./state/app.svelte";
import { stubBrowser } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let app: App;
let backend: Backend;
let shown: ReturnType<typeof mount>;

beforeEach(async () => {
  // Title as in index.html.
  document.title = "Foretoken";
  stubBrowser();
  backend = player(new URLSearchParams(), 0);
  app = new App(backend);
  await Promise.all([app.settings.load(), app.view.load()]);
  shown = mount(Quick, { target: document.body, props: { app } });
  await pass();
});
afterEach(async () => {
  await unmount(shown);
  if (vi.isFakeTimers()) await vi.advanceTimersByTimeAsync(50);
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

async function pass(ms = 50) {
  await vi.advanceTimersByTimeAsync(ms);
  flushSync();
}

const find = (testid: string) => document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);
const field = () => find("quick-field") as HTMLTextAreaElement;

async function ask(text: string) {
  field().value = text;
  field().dispatchEvent(new Event("input", { bubbles: true }));
  await press("Enter");
}

async function press(key: string) {
  field().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  await pass();
}

test("a question is answered below the field, which is empty for the next one", async () => {
  expect(find("quick-continue")).toBeNull();
  await ask("Tell me a story about a fox");
  await pass(20_000);
  expect(field().value).toBe("");
  const reply = find("quick-reply");
  expect(reply?.dataset["state"]).toBe("done");
  expect(reply?.textContent).toContain("Tell me a story about a fox");
  expect(app.newestReply?.text.length).toBeGreaterThan(20);
  const opened = vi.spyOn(backend, "continueInMain").mockResolvedValue();
  find("quick-continue")?.click();
  await pass();
  expect(opened).toHaveBeenCalledWith(app.conversations.current);
});

test("a reply can be scrolled with the keyboard, and its end is announced", async () => {
  const reply = () => find("quick-reply") as HTMLElement;
  expect(reply().tabIndex).toBe(-1);
  await ask("Tell me a story about a fox");
  await pass(20_000);
  expect(reply().tabIndex).toBe(0);
  const announced = [...document.querySelectorAll("[role=status]")].map((one) => one.textContent);
  expect(announced).toContain("Reply finished.");
});

test("a refused question stays in the field, with the reason", async () => {
  const busy = new BackendError("busy", "another reply is written");
  vi.spyOn(backend, "send").mockRejectedValue(busy);
  await ask("Hello");
  expect(field().value).toBe("Hello");
  expect(find("quick-problem")?.textContent.trim()).not.toBe("");
});

test("Escape hides the window, and the next time begins a conversation", async () => {
  const hidden = vi.spyOn(backend, "hideQuick").mockResolvedValue();
  await ask("Tell me a story about a fox");
  await pass(20_000);
  await press("Escape");
  expect(hidden).toHaveBeenCalledOnce();
  dispatchEvent(new Event("foretoken-shown"));
  await pass();
  expect(app.conversations.current).toBeNull();
  expect(find("quick-reply")?.textContent.trim()).toBe("");
  expect(document.activeElement).toBe(field());
});

const SCREENS: [name: string, show: () => Promise<void>][] = [
  ["before a question", () => Promise.resolve()],
  [
    "with a reply",
    async () => {
      await ask("Tell me a story about a fox");
      await pass(20_000);
    },
  ],
  [
    "with a reply in tokens",
    async () => {
      app.view.showAllAs("tokens");
      await ask("Tell me a story about a fox");
      await pass(20_000);
      expect(document.querySelector(".chip")).not.toBeNull();
    },
  ],
  [
    "with a problem",
    async () => {
      vi.spyOn(backend, "send").mockRejectedValue(new BackendError("busy", "busy"));
      await ask("Hello");
    },
  ],
];

const LANGUAGES = ["en", "de"] as const;

test.each(SCREENS.flatMap((screen) => LANGUAGES.map((language) => [...screen, language] as const)))(
  "axe finds no serious violation %s, and no text is in another language",
  async (_, show, language) => {
    app.settings.changeAppearance({ language });
    await pass();
    await show();
    if (language === "de") expect(englishTexts()).toEqual([]);
    expect(await findings()).toEqual([]);
  },
);
