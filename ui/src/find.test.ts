/** Finding words in the open conversation, in the whole window. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

const field = () => window.present("find-field") as HTMLInputElement;
const count = () => window.present("find-count").textContent.trim();
/** Where nothing can be lit up the present hit is selected. */
const selected = () => getSelection()?.toString() ?? "";
const said = () =>
  [...window.all("message-user"), ...window.all("reply-text")]
    .map(({ textContent }) => textContent)
    .join("\n");

async function look(query: string) {
  await window.press("Ctrl f", document.body);
  await window.type("find-field", query);
  await window.pass(200);
}

test("all places are counted, the present one is shown, and Enter goes round them", async () => {
  await look("the");
  const hits = said().toLowerCase().split("the").length - 1;
  expect(hits).toBeGreaterThan(1);
  expect(count()).toBe(`1 / ${hits}`);
  expect(selected().toLowerCase()).toBe("the");
  await window.press("Enter", field());
  expect(count()).toBe(`2 / ${hits}`);
  await window.press("Shift Enter", field());
  await window.press("Shift Enter", field());
  expect(count()).toBe(`${hits} / ${hits}`);
  await window.click("find-next");
  expect(count()).toBe(`1 / ${hits}`);
});

test("what is not there has no hits, and Esc ends the search and shows nothing more", async () => {
  await look("no such words");
  expect(count()).toBe("No hits");
  expect((window.present("find-next") as HTMLButtonElement).disabled).toBe(true);
  await window.type("find-field", "the");
  await window.pass(200);
  await window.press("Escape", field());
  expect(window.find("find")).toBeNull();
  expect(selected()).toBe("");
});

test("a hit of the search over all messages opens at its message with its words lit up", async () => {
  const [asked] = window.all("message-user");
  const word = /[\p{L}]{4,}/u.exec(asked?.textContent ?? "")?.[0] ?? expect.fail("no word");
  window.app.startNew();
  await window.type("search", word);
  await window.pass(500);
  await window.press("Enter", window.present("search"));
  await window.pass(500);
  expect(field().value).toBe(word);
  expect(count()).toMatch(/^\d+ \/ \d+$/);
  expect(selected().toLowerCase()).toBe(word.toLowerCase());
  expect(document.activeElement, "the search keeps the keyboard").not.toBe(field());
});

test("replies are text while something is looked for, and tokens again after that", async () => {
  expect(window.all("token-view").length).toBeGreaterThan(0);
  await look("the");
  expect(window.all("token-view")).toEqual([]);
  await window.press("Escape", field());
  expect(window.all("token-view").length).toBeGreaterThan(0);
});

test("where no conversation is open the keys search all of them", async () => {
  window.app.startNew();
  await window.pass();
  await window.press("Ctrl f", document.body);
  expect(document.activeElement).toBe(window.present("search"));
  expect(window.find("find")).toBeNull();
});
