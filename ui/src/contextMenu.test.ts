/** Context menus of the window by pointer and keyboard. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

/** Right-clicks an element; resolves with whether the browser's own menu would open. */
async function rightClick(element: Element): Promise<boolean> {
  const event = new MouseEvent("contextmenu", {
    button: 2,
    bubbles: true,
    cancelable: true,
  });
  const own = element.dispatchEvent(event);
  await window.pass();
  return own;
}

const menu = () => document.querySelector("[role=menu]");
const entries = () =>
  [...(menu()?.querySelectorAll("[role=menuitem] span") ?? [])].map((item) => item.textContent);

test("the browser's menu opens only in text fields", async () => {
  expect(await rightClick(document.body)).toBe(false);
  expect(menu()).toBeNull();
  expect(await rightClick(window.present("composer"))).toBe(true);
  expect(menu()).toBeNull();
});

test("a conversation's context menu equals the menu of its button", async () => {
  const conversation = window.present("conversation-item");
  expect(await rightClick(conversation)).toBe(false);
  const named = [
    ...[
      "Rename",
      "Unpin",
      "Move to folder…",
      "Open beside",
      "Duplicate",
      "Export as Markdown",
      "Export as JSON",
      "Print…",
    ],
    "Delete",
  ];
  expect(entries()).toEqual(named);
  expect(window.present("menu-delete").classList).toContain("dangerous");
  await window.press("Escape");
  expect(menu()).toBeNull();
  await window.click("conversation-more");
  expect(entries()).toEqual(named);
});

test("an entry acts on the conversation that was clicked", async () => {
  const [, other] = window.app.conversations.list;
  const row = window.all("conversation-item")[1] ?? expect.fail("one conversation only");
  await rightClick(row);
  await window.click("menu-delete");
  expect(window.app.conversations.list.map(({ id }) => id)).not.toContain(other?.id);
  expect(menu()).toBeNull();
});

test("a question can be edited from its menu, except while a reply is written", async () => {
  const question = window.present("message-user");
  await rightClick(question);
  expect(entries()).toContain("New chat from here");
  await window.click("menu-edit");
  expect(window.app.view.editing).not.toBeNull();
  window.app.view.editing = null;
  window.app.reply.active = true;
  await window.pass();
  await rightClick(window.present("message-user"));
  expect(window.present("menu-edit").hasAttribute("disabled")).toBe(true);
  expect(window.present("menu-copy").hasAttribute("disabled")).toBe(false);
});

test("the menu key opens the menu of the focused element, and Esc restores the focus", async () => {
  const conversation = window.present("conversation-item");
  for (const keys of ["ContextMenu", "Shift F10"]) {
    conversation.focus();
    await window.press(keys);
    expect(document.activeElement).toBe(window.present("menu-rename"));
    await window.press("ArrowUp");
    expect(document.activeElement).toBe(window.present("menu-delete"));
    await window.press("Escape");
    expect(document.activeElement).toBe(conversation);
  }
});

test("a press beside the menu closes it, and another menu replaces it", async () => {
  await rightClick(window.present("conversation-item"));
  document.body.dispatchEvent(new Event("pointerdown", { bubbles: true }));
  await window.pass();
  expect(menu()).toBeNull();
  await rightClick(window.present("conversation-item"));
  await rightClick(window.present("message-user"));
  expect(document.querySelectorAll("[role=menu]")).toHaveLength(1);
  expect(entries()).toContain("Edit");
});

test("a token can be copied from its menu, and shown in the heatmap", async () => {
  const { app } = window;
  const copied = vi.fn().mockResolvedValue(undefined);
  Object.defineProperty(navigator, "clipboard", {
    value: { writeText: copied },
    configurable: true,
  });
  app.panels.hide("inspector");
  const chips = window.all("token-chip");
  const chip = chips.find(({ textContent }) => textContent.trim() !== "") ?? expect.fail("none");
  await rightClick(chip);
  expect(entries().slice(0, 3)).toEqual(["Copy token", "Show in heatmap", "Copy"]);
  await window.click("menu-copy-token");
  expect(copied).toHaveBeenCalledWith(chip.textContent);
  expect(app.view.selected, "copying selects nothing").toBeNull();
  await rightClick(chip);
  await window.click("menu-show-in-heatmap");
  const { round, slot } = chip.dataset;
  expect(app.view.selected).toEqual({ round: Number(round), slot: Number(slot) });
  expect(app.panels.isOpen("inspector")).toBe(true);
});

test("the menu key on the token view opens the menu of the selected token", async () => {
  const tokens = window.present("token-view");
  tokens.focus();
  await window.press("ContextMenu");
  expect(entries()).not.toContain("Copy token");
  await window.press("Escape");
  tokens.focus();
  await window.press("Home");
  await window.press("ContextMenu");
  expect(entries()[0]).toBe("Copy token");
});
