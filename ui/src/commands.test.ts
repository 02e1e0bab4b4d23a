import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

const field = () => window.present("palette-field") as HTMLInputElement;
const options = () => window.all("palette-option").map(({ textContent }) => textContent.trim());
/** The active line as announced by screen readers. */
const active = () =>
  document.getElementById(field().getAttribute("aria-activedescendant") ?? "")?.textContent.trim();

test("typing filters the list, arrow keys move in it and Enter runs the active entry", async () => {
  await window.press("Ctrl k");
  expect(document.activeElement).toBe(field());
  const all = options().length;
  await window.type("palette-field", "theme");
  expect(options().length).toBeLessThan(all);
  expect(active()).toBe("Theme: light");
  await window.press("ArrowDown");
  expect(active()).toBe("Theme: dark");
  await window.press("Enter");
  expect(window.app.settings.values.appearance.theme).toBe("dark");
  expect(window.find("palette")).toBeNull();
});

test("another query selects its best match", async () => {
  await window.press("Ctrl k");
  await window.press("ArrowDown");
  await window.press("ArrowDown");
  await window.type("palette-field", "arena");
  expect(active()).toContain("Open or close the arena");
  await window.type("palette-field", "zebra");
  expect(field().getAttribute("aria-expanded")).toBe("false");
  expect(window.present("palette").textContent).toContain("No matches");
});

test("closing the palette restores the focus", async () => {
  const before = window.present("conversation-item");
  before.focus();
  await window.press("Ctrl k");
  expect(document.activeElement).not.toBe(before);
  await window.press("Ctrl k");
  expect(window.find("palette")).toBeNull();
  expect(document.activeElement).toBe(before);
});

test("an unavailable command explains why and does not run", async () => {
  window.app.startNew();
  await window.press("Ctrl k");
  await window.type("palette-field", "regenerate");
  const option = window.present("palette-option");
  expect(option.getAttribute("aria-disabled")).toBe("true");
  expect(option.textContent).toContain("There is no reply yet");
  await window.press("Enter");
  expect(window.find("palette")).not.toBeNull();
});

test("choosing a setting scrolls to it and focuses it", async () => {
  await window.press("Ctrl k");
  await window.type("palette-field", "verification");
  await window.press("Enter");
  expect(window.present("settings-panel").querySelector("details")?.open).toBe(true);
  const row = document.activeElement?.closest<HTMLElement>("[data-testid=setting]");
  expect(row?.dataset["setting"]).toBe("verification");
});

test("a conversation is opened by its title", async () => {
  const other = window.app.conversations.list.at(-1) ?? expect.fail();
  await window.press("Ctrl k");
  await window.type("palette-field", other.title);
  await window.press("Enter");
  expect(window.app.conversations.current).toBe(other.id);
});

test("choosing a picker opens and focuses it, even from the arena", async () => {
  await window.press("Ctrl e");
  await window.press("Ctrl d");
  const picker = window.present("draft-picker");
  expect(document.activeElement).toBe(picker);
  expect(picker.getAttribute("aria-expanded")).toBe("true");
  expect(window.find("arena")).toBeNull();
});

test("a conversation is renamed from the palette, even during a search", async () => {
  await window.type("search", "nothing at all");
  await window.press("Ctrl k");
  await window.type("palette-field", "rename");
  await window.press("Enter");
  const title = document.activeElement as HTMLInputElement;
  expect(title.getAttribute("aria-label")).toBe("New title");
  expect(title.value).toBe(window.app.conversations.list[0]?.title);
});

test("the last reply is shown as its text and as its tokens by the keyboard", async () => {
  const pressed = () => window.present("toggle-tokens").getAttribute("aria-pressed");
  const before = pressed();
  await window.press("Ctrl Shift T");
  expect(pressed()).not.toBe(before);
  await window.press("Ctrl Shift T");
  expect(pressed()).toBe(before);
});

test("typing the sign of the list of shortcuts into a field does not open it", async () => {
  await window.press("?", window.present("composer"));
  expect(window.find("shortcuts")).toBeNull();
  await window.press("?", window.present("conversation-item"));
  const shown = window.present("shortcuts").textContent.replace(/\s+/g, " ");
  for (const line of ["New chat Ctrl N", "Find a command Ctrl K", "Zoom in + or =", "Rename F2"]) {
    expect(shown).toContain(line);
  }
  await window.click("shortcuts-close");
  await window.press("Ctrl /", window.present("composer"));
  expect(window.find("shortcuts")).not.toBeNull();
});

test("while a dialog is open, the keys of the window below do nothing", async () => {
  await window.press("Ctrl ,");
  await window.press("Ctrl n");
  expect(window.app.conversations.current).not.toBeNull();
});

test("every shortcut shown beside a control is that of the command", () => {
  const shown = (testid: string) => window.present(testid).dataset["tooltip"];
  expect(["new-chat", "library-open", "arena-open", "settings-open"].map(shown)).toEqual([
    ...["Ctrl N", "Ctrl L", "Ctrl E", "Ctrl ,"],
  ]);
});
