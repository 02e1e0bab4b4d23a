/** Search in the open conversation, in the whole window. */
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
/** The current hit, which is selected where highlights are missing. */
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

test("all hits are counted, the current one is shown, and Enter wraps around", async () => {
  await look("the");
  const hits = said().toLowerCase().split("the").length - 1;
  expect(hits).toBeGreaterThan(1);
  expect(count()).toBe(`1 of ${hits}`);
  expect(selected().toLowerCase()).toBe("the");
  await window.press("Enter", field());
  expect(count()).toBe(`2 of ${hits}`);
  await window.press("Shift Enter", field());
  await window.press("Shift Enter", field());
  expect(count()).toBe(`${hits} of ${hits}`);
  await window.click("find-next");
  expect(count()).toBe(`1 of ${hits}`);
});

test("a query without matches has no hits, and Esc ends the search and its highlights", async () => {
  await look("no such words");
  expect(count()).toBe("No matches");
  expect((window.present("find-next") as HTMLButtonElement).disabled).toBe(true);
  await window.type("find-field", "the");
  await window.pass(200);
  await window.press("Escape", field());
  expect(window.find("find")).toBeNull();
  expect(selected()).toBe("");
});

test("a hit of the search over all messages opens its message with the words highlighted", async () => {
  const [asked] = window.all("message-user");
  const word = /[\p{L}]{4,}/u.exec(asked?.textContent ?? "")?.[0] ?? expect.fail("no word");
  window.app.startNew();
  await window.type("search", word);
  await window.pass(500);
  window.present("search").focus();
  await window.press("Enter");
  await window.pass(500);
  expect(field().value).toBe(word);
  expect(count()).toMatch(/^\d+ of \d+$/);
  expect(selected().toLowerCase()).toBe(word.toLowerCase());
  expect(document.activeElement, "the search keeps the keyboard").toBe(window.present("search"));
});

test("results of a search over all messages are grouped by conversation", async () => {
  const [one, other] = window.app.conversations.list;
  if (!one || !other) throw new Error("too few conversations");
  const hits = [one, other, one].map((conversation, message) => ({
    conversation,
    message,
    excerpt: `${message}`,
  }));
  vi.spyOn(window.app.conversations, "search").mockResolvedValue(hits);
  await window.type("search", "the");
  await window.pass(500);
  const titles = window.all("search-title").map(({ textContent }) => textContent);
  expect(titles).toEqual([one.title, other.title]);
  const found = window.all("search-hit").map(({ textContent }) => textContent.trim());
  expect(found).toEqual(["0", "2", "1"]);
});

test("replies are shown as text during a search, and as tokens again after it", async () => {
  expect(window.all("token-view").length).toBeGreaterThan(0);
  await look("the");
  expect(window.all("token-view")).toEqual([]);
  await window.press("Escape", field());
  expect(window.all("token-view").length).toBeGreaterThan(0);
});

test("during a search the button of a reply offers its tokens, and ends the search", async () => {
  const pressed = () => window.present("toggle-tokens").getAttribute("aria-pressed");
  expect(pressed()).toBe("true");
  await look("the");
  expect(pressed()).toBe("false");
  await window.click("toggle-tokens");
  expect(window.find("find")).toBeNull();
  expect(pressed()).toBe("true");
  expect(window.all("token-view").length).toBeGreaterThan(0);
});

test("without an open conversation the shortcut searches all of them", async () => {
  window.app.startNew();
  await window.pass();
  await window.press("Ctrl f", document.body);
  expect(document.activeElement).toBe(window.present("search"));
  expect(window.find("find")).toBeNull();
});

test("of very many hits only the first thousands are counted, with a note that there are more", async () => {
  const { app } = window;
  const [first] = app.conversations.messages;
  if (!first) throw new Error("no message");
  app.conversations.messages = [{ ...first, text: "ab ".repeat(6000) }];
  await window.pass();
  await look("a");
  expect(count()).toBe("1 of 5,000+");
});

test("a streaming reply is searched while it grows, not only when it pauses", async () => {
  const { app } = window;
  const [first] = app.conversations.messages;
  if (!first) throw new Error("no message");
  app.conversations.messages = [{ ...first, text: "zebra" }];
  await window.pass();
  await look("zebra");
  for (let words = 2; words <= 9; words += 1) {
    app.conversations.messages = [{ ...first, text: "zebra ".repeat(words) }];
    await window.pass(50);
  }
  expect(Number(count().split(" of ")[1])).toBeGreaterThan(5);
});

test("the search waits for a pause in typing", async () => {
  const { app } = window;
  await window.press("Ctrl f", document.body);
  await window.pass(500);
  const looked = vi.spyOn(Element.prototype, "querySelectorAll");
  const looks = () =>
    looked.mock.calls.filter(([selector]) => selector === "[data-message]").length;
  app.find.type("t");
  await window.pass(30);
  app.find.type("th");
  await window.pass(30);
  expect(looks()).toBe(0);
  await window.pass(200);
  expect(looks()).toBe(1);
  looked.mockRestore();
});

test("the bar moves away from a hit that it would cover, and the text does not move", async () => {
  const content = document.querySelector<HTMLElement>("main .content") ?? expect.fail("no content");
  const hit = vi.spyOn(Range.prototype, "getBoundingClientRect");
  hit.mockReturnValue(new DOMRect(500, 20, 40, 20));
  await window.press("Ctrl f", document.body);
  const bar = window.present("find");
  vi.spyOn(bar, "getBoundingClientRect").mockReturnValue(new DOMRect(400, 10, 300, 40));
  await window.type("find-field", "the");
  await window.pass(200);
  expect(bar.classList).toContain("low");
  expect(content.style.marginTop).toBe("");
  hit.mockReturnValue(new DOMRect(100, 20, 40, 20));
  await window.type("find-field", "a");
  await window.pass(200);
  expect(bar.classList, "beside the bar").not.toContain("low");
  hit.mockRestore();
});
