/** Printing the open conversation. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;
const dialog = vi.fn();

beforeEach(async () => {
  window = await WindowFixture.open();
  vi.stubGlobal("print", dialog.mockClear());
});
afterEach(async () => {
  dispatchEvent(new Event("afterprint"));
  await window.close();
});

const printed = () => window.find("printed");
const change = (changed: object) => {
  const { conversations } = window.app;
  conversations.messages = conversations.messages.map((one) => ({ ...one, ...changed }));
};

test("all of a conversation is printed with its title, and nothing of it stays", async () => {
  const { conversations } = window.app;
  const title = document.title;
  await window.press("Ctrl P");
  await window.pass(500);
  expect(dialog).toHaveBeenCalledOnce();
  expect(printed()?.querySelector("h1")?.textContent).toBe(conversations.list[0]?.title);
  expect(document.title).toBe(conversations.list[0]?.title);
  expect(printed()?.querySelector("header p")?.textContent).toMatch(/20\d\d/);
  const questions = conversations.messages.filter(({ role }) => role === "user");
  for (const { text } of questions) expect(printed()?.textContent).toContain(text);
  expect(printed()?.querySelectorAll(".reply").length).toBe(
    conversations.messages.length - questions.length,
  );
  dispatchEvent(new Event("afterprint"));
  await window.pass();
  expect(printed()).toBeNull();
  expect(document.title).toBe(title);
});

test("replies are printed as Markdown, without thinking, with wrapped code", async () => {
  change({ text: "<think>hidden</think>\n\n# Head\n\n```html\n<b>\n```\n\n<script>x</script>" });
  await window.press("Ctrl P");
  const reply = printed()?.querySelector(".reply") ?? expect.fail("no reply");
  expect(reply.querySelector("h1")?.textContent).toBe("Head");
  expect(reply.querySelector("pre")?.textContent).toBe("<b>");
  expect(reply.querySelector("pre")?.hasAttribute("tabindex")).toBe(false);
  expect(reply.textContent).toContain("<script>x</script>");
  expect(reply.textContent).not.toContain("hidden");
  expect(reply.querySelector("script")).toBeNull();
});

test("a conversation of many messages is printed from its first one", async () => {
  const [first] = window.app.conversations.messages;
  window.app.conversations.messages = Array.from({ length: 300 }, (_, at) => ({
    ...(first ?? expect.fail("no message")),
    id: 1000 + at,
    text: `message ${at}.`,
    attachments: [],
  }));
  await window.press("Ctrl P");
  for (const at of [0, 150, 299]) expect(printed()?.textContent).toContain(`message ${at}.`);
});

test("the menu of another conversation opens it for printing", async () => {
  const [, other] = window.app.conversations.list;
  const row = window.all("conversation-item")[1] ?? expect.fail("one conversation only");
  row.dispatchEvent(new MouseEvent("contextmenu", { button: 2, bubbles: true, cancelable: true }));
  await window.pass();
  await window.click("menu-print");
  await window.pass(500);
  expect(window.app.conversations.current).toBe(other?.id);
  expect(printed()?.querySelector("h1")?.textContent).toBe(other?.title);
  expect(dialog).toHaveBeenCalledOnce();
});

test("nothing is printed while a reply is written, nor without a conversation", async () => {
  window.app.reply.active = true;
  await window.press("Ctrl P");
  expect(printed()).toBeNull();
  window.app.reply.active = false;
  window.app.startNew();
  await window.press("Ctrl P");
  expect(printed()).toBeNull();
  expect(window.app.toasts.list.map(({ text }) => text).join()).toContain("Open one of your");
});

test("a second print replaces a first that was cancelled", async () => {
  await window.press("Ctrl P");
  await window.pass(500);
  await window.press("Ctrl P");
  await window.pass(500);
  expect(window.all("printed")).toHaveLength(1);
  expect(dialog).toHaveBeenCalledTimes(2);
});
