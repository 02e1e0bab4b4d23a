/** Folders of conversations in the sidebar. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

/** Creates a folder by the button of the sidebar. */
async function create(name: string) {
  await window.click("new-folder");
  await window.type("folder-name", name);
  await window.press("Enter");
}

const inside = (element: Element, testid: string) =>
  [...element.querySelectorAll<HTMLElement>(`[data-testid="${testid}"]`)].map((one) =>
    one.textContent.trim(),
  );
const folders = () =>
  window.all("folder").map((folder) => ({
    name: inside(folder, "folder-item")[0],
    titles: inside(folder, "conversation-item"),
  }));
const titles = () => window.app.conversations.list.map(({ title }) => title);
const rowOf = (title: string) =>
  window.all("conversation-item").find((row) => row.textContent.trim() === title) ??
  expect.fail(`no ${title}`);

test("conversations are moved into folders and out of them by the menu", async () => {
  await create("Work");
  await create("Art");
  expect(folders()).toEqual([
    { name: "Art", titles: [] },
    { name: "Work", titles: [] },
  ]);
  const [first = "", second = ""] = titles();
  for (const title of [first, second]) {
    rowOf(title).focus();
    await window.press("m");
    const work = window.app.conversations.folders.list[1] ?? expect.fail("no folder");
    expect(document.activeElement?.textContent.trim()).toBe("Art");
    await window.click(`move-to-${work.id}`);
  }
  expect(folders()[1]).toEqual({ name: "Work", titles: [first, second] });
  expect(inside(window.present("no-folder"), "conversation-item")).not.toContain(first);
  expect(document.activeElement).toBe(rowOf(second));
  await window.press("m");
  await window.click("move-out");
  expect(folders()[1]?.titles).toEqual([first]);
  expect(inside(window.present("no-folder"), "conversation-item")).toContain(second);
});

test("a folder is created for a conversation, renamed, deleted and restored", async () => {
  const [title = ""] = titles();
  rowOf(title).focus();
  await window.press("M");
  await window.click("move-to-new");
  await window.type("folder-name", "Foxes");
  await window.press("Enter");
  expect(folders()).toEqual([{ name: "Foxes", titles: [title] }]);

  const row = window.present("folder-item");
  row.focus();
  await window.press("F2");
  await window.type("folder-name", "Hens");
  await window.press("Enter");
  expect(folders()[0]?.name).toBe("Hens");
  expect(document.activeElement).toBe(window.present("folder-item"));

  await window.press("Delete");
  expect(folders()).toEqual([]);
  expect(titles()).toContain(title);
  window.app.toasts.undoLast();
  await window.pass();
  expect(folders()).toEqual([{ name: "Hens", titles: [title] }]);
});

test("an empty name creates nothing, and a taken one is refused in words", async () => {
  await create("  ");
  expect(folders()).toEqual([]);
  await create("Work");
  await create("work");
  expect(folders()).toHaveLength(1);
  expect(window.app.toasts.list.at(-1)?.text).toContain("no other folder");
  await window.click("new-folder");
  await window.type("folder-name", "Other");
  await window.press("Escape");
  expect(folders()).toHaveLength(1);
});

test("a folded folder shows no conversations, and is marked if one of them is open", async () => {
  await create("Work");
  const { conversations, view } = window.app;
  const [folder] = conversations.folders.list;
  const [one] = conversations.list;
  if (!folder || !one) return expect.fail("nothing to move");
  await conversations.folders.move(one, folder.id);
  await window.pass();
  const row = window.present("folder-item");
  expect([row.getAttribute("aria-expanded"), row.ariaCurrent]).toEqual(["true", null]);
  row.click();
  await window.pass(400);
  expect(folders()[0]?.titles).toEqual([]);
  expect(row.getAttribute("aria-expanded")).toBe("false");
  expect(row.getAttribute("aria-current")).toBe("page");
  expect((await window.backend.viewState())?.folded_folders).toEqual([folder.id]);
  view.folders.open(folder.id);
  await window.pass();
  expect(folders()[0]?.titles).toEqual([one.title]);
});

test("a new chat begins in the folder it was opened in", async () => {
  await create("Work");
  await window.click("folder-more");
  await window.click("menu-new-chat-here");
  expect(window.present("folder-item").getAttribute("aria-current")).toBe("page");
  await window.type("composer", "Who?");
  await window.press("Enter", window.present("composer"));
  await window.pass(500);
  expect(folders()[0]?.titles).toEqual(["Who?"]);
  window.app.startNew();
  expect(window.app.conversations.folders.newIn).toBeNull();
});

test("search results name the folder", async () => {
  await create("Work");
  const { conversations } = window.app;
  const [folder] = conversations.folders.list;
  const fox = conversations.list.find(({ title }) => title.includes("fox"));
  if (!folder || !fox) return expect.fail("nothing to move");
  await conversations.folders.move(fox, folder.id);
  await window.type("search", "lantern");
  await window.pass(100);
  expect(window.present("search-folder").textContent).toBe("Work");
});

test("a conversation is dragged onto a folder, and Esc ends a drag", async () => {
  await create("Work");
  const [title = ""] = titles();
  const drag = async (element: Element, to: Element) => {
    const at = (type: string, clientX: number, target: EventTarget) =>
      target.dispatchEvent(
        Object.assign(new MouseEvent(type, { bubbles: true, clientX, button: 0 }), {
          pointerType: "mouse",
        }),
      );
    document.elementFromPoint = () => to;
    at("pointerdown", 0, element);
    at("pointermove", 2, globalThis.window);
    await window.pass();
    expect(window.find("dragged")).toBeNull();
    at("pointermove", 20, globalThis.window);
    await window.pass();
    expect(window.present("dragged").textContent).toBe(title);
    return async () => {
      at("pointerup", 20, globalThis.window);
      await window.pass();
      expect(window.find("dragged")).toBeNull();
    };
  };
  const folder = window.present("folder-item");
  await drag(rowOf(title), folder);
  await window.press("Escape");
  expect(window.find("dragged")).toBeNull();
  expect(folders()[0]?.titles).toEqual([]);
  await (
    await drag(rowOf(title), folder)
  )();
  expect(folders()[0]?.titles).toEqual([title]);
  await (
    await drag(rowOf(title), folder)
  )();
  expect(folders()[0]?.titles, "its own folder").toEqual([title]);
  await (
    await drag(rowOf(title), window.present("no-folder"))
  )();
  expect(folders()[0]?.titles).toEqual([]);
});
