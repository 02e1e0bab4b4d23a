import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { locale } from "./messages/locale.svelte";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

const speak = async (language: "system" | "en" | "de") => {
  window.app.settings.changeAppearance({ language });
  await window.pass();
};
const composer = () => window.present("composer") as HTMLTextAreaElement;

test("a half-written message survives a change of the language", async () => {
  await window.type("composer", "Why is the");
  await speak("de");
  expect(composer().value).toBe("Why is the");
  expect(composer().placeholder).toBe("Stell eine Frage");
  expect(window.present("send").textContent).toContain("Senden");
});

test("the settings stay open, and are found by words of the new language", async () => {
  await window.press("Ctrl ,");
  await window.click("settings-tab-appearance");
  const panel = window.present("settings-panel");
  const german = [...panel.querySelectorAll<HTMLInputElement>("input[value=de]")][0];
  german?.click();
  await window.pass();
  expect(window.present("settings-panel")).toBe(panel);
  expect(panel.textContent).toContain("Farbschema");
  expect(window.app.view.settingsSection).toBe("appearance");
  await window.type("settings-search", "sprache");
  expect(window.all("setting").map(({ dataset }) => dataset["setting"])).toContain("language");
});

test("a reply under way continues with the same text", async () => {
  await window.press("Ctrl Shift T");
  await window.press("Ctrl n");
  await window.type("composer", "Tell me a story");
  await window.click("send");
  await window.pass(400);
  expect(window.app.reply.active).toBe(true);
  const before = window.app.reply.trace?.length ?? 0;
  await speak("de");
  expect(window.present("stop").textContent).toContain("Stoppen");
  await window.pass(60_000);
  expect(window.app.reply.active).toBe(false);
  const reply = window.app.newestReply;
  expect(window.app.traces.of(reply?.id ?? 0)?.length).toBeGreaterThan(before);
  expect(window.all("reply-text").at(-1)?.textContent).toContain(reply?.text.slice(0, 12));
});

test("text of a model stays as it is", async () => {
  const texts = () => window.all("message-user").map(({ textContent }) => textContent);
  const before = texts();
  await speak("de");
  expect(texts()).toEqual(before);
});

test("the document declares its language", async () => {
  await speak("de");
  expect(document.documentElement.lang).toBe("de");
  await speak("en");
  expect(document.documentElement.lang).toBe("en");
});

test("the first system language with messages is used, else English", async () => {
  const languages = vi.spyOn(navigator, "languages", "get");
  const spoken = async (...tags: string[]) => {
    languages.mockReturnValue(tags);
    globalThis.dispatchEvent(new Event("languagechange"));
    await window.pass();
    return locale();
  };
  await speak("system");
  expect(await spoken("de-AT", "en-US")).toBe("de");
  expect(await spoken("fr-FR", "de", "en")).toBe("de");
  expect(await spoken("fr-FR")).toBe("en");
  expect(await spoken("C")).toBe("en");
  languages.mockRestore();
});

test("file dialogs are named in the language of the page", async () => {
  const named = vi.spyOn(window.backend, "nameAttachDialog");
  const chosen = vi.spyOn(window.backend, "chooseModelFile").mockResolvedValue(null);
  await speak("de");
  expect(named).toHaveBeenLastCalledWith(
    "Dateien anhängen",
    "Text, Code, Bilder, PDF- oder Office-Dateien",
    "Alle Dateien",
  );
  await window.app.chooseModelFile();
  expect(chosen).toHaveBeenLastCalledWith("Modell wählen", "GGUF-Modelle");
});

test("the tray icon's menu is named in the language of the page", async () => {
  const named = vi.spyOn(window.backend, "nameTray");
  await speak("de");
  const words = named.mock.lastCall?.[0];
  expect([words?.open, words?.running]).toEqual(["Foretoken öffnen", "Lokaler Server: {url}"]);
});
