/** Two chats side by side. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { App } from "./state/app.svelte";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

const chats = () => window.all("chat");
const within = (chat: number, testid: string) =>
  chats()[chat]?.querySelector<HTMLElement>(`[data-testid="${testid}"]`) ??
  expect.fail(`no ${testid}`);
const questions = (chat: number) =>
  [...(chats()[chat]?.querySelectorAll("[data-testid=message-user]") ?? [])].map(
    (one) => one.textContent,
  );
const focused = () => chats().map(({ dataset }) => dataset["focused"]);
const idOf = (at: number) =>
  window.app.conversations.list[at]?.id ?? expect.fail("no conversation");

async function type(chat: number, text: string) {
  const field = within(chat, "composer") as HTMLTextAreaElement;
  field.focus();
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await window.pass();
}

test("a second conversation opens beside the first, with its own draft", async () => {
  await window.app.openBeside(idOf(1));
  await window.pass(100);
  expect(chats()).toHaveLength(2);
  expect(focused()).toEqual(["false", "true"]);
  expect(questions(0)).not.toEqual(questions(1));
  await type(0, "left");
  expect(focused()).toEqual(["true", "false"]);
  await type(1, "right");
  expect((within(0, "composer") as HTMLTextAreaElement).value).toBe("left");
  expect(window.app.unsent.of(idOf(0))).toBe("left");
  expect(window.app.unsent.of(idOf(1))).toBe("right");
});

test("a reply is written in its own chat while the other one is used, which waits", async () => {
  await window.app.openBeside(idOf(1));
  await window.pass(100);
  const before = [questions(0).length, questions(1).length];
  await type(1, "Count from one to twelve.");
  await window.press("Enter", within(1, "composer"));
  await window.pass(200);
  expect(window.app.reply.active).toBe(true);
  await type(0, "meanwhile");
  await window.press("Enter", within(0, "composer"));
  await window.pass(20_000);
  expect(window.app.reply.active).toBe(false);
  expect([questions(0).length, questions(1).length]).toEqual([before[0], (before[1] ?? 0) + 1]);
  expect((within(0, "composer") as HTMLTextAreaElement).value).toBe("meanwhile");
});

test("commands and the inspector follow the chat with the focus", async () => {
  await window.app.openBeside(idOf(1));
  await window.pass(100);
  const right = window.app.inspected;
  await window.press("F6", document.body);
  expect(focused()).toEqual(["true", "false"]);
  expect(document.activeElement).toBe(within(0, "composer"));
  expect(window.app.inspected).not.toEqual(right);
  window.app.find.start();
  await window.pass();
  expect(chats()[1]?.querySelector("[data-testid=find]")).toBeNull();
});

test("the same conversation is not opened twice, and a closed chat leaves the other one", async () => {
  await window.app.openBeside(idOf(1));
  await window.pass(100);
  await window.app.open(idOf(0));
  await window.app.openBeside(idOf(0));
  await window.pass(100);
  expect(focused()).toEqual(["true", "false"]);
  const kept = questions(1);
  within(0, "chat-close").click();
  await window.pass();
  expect(chats()).toHaveLength(1);
  expect(questions(0)).toEqual(kept);
  expect(window.find("chat-head")).toBeNull();
});

test("there is at most one new chat", async () => {
  await window.press("Ctrl Shift N", document.body);
  expect(window.app.conversations.current).toBeNull();
  await window.app.open(idOf(1));
  window.app.startNew();
  await window.press("F6", document.body);
  await window.press("Ctrl N", document.body);
  expect(window.app.chats.map((chat) => chat.conversations.current)).toEqual([idOf(0), null]);
  expect(focused()).toEqual(["false", "true"]);
});

test("deleting a conversation closes its chat", async () => {
  await window.app.openBeside(idOf(1));
  await window.pass(100);
  const [first, second] = window.app.conversations.list;
  if (!first || !second) return expect.fail("no conversation");
  await window.app.delete(second);
  await window.pass();
  expect(chats()).toHaveLength(1);
  expect(window.app.conversations.current).toBe(first.id);
});

test("both conversations and the width are there after a restart", async () => {
  await window.app.openBeside(idOf(1));
  await window.pass(100);
  const divider = window.present("chat-divider");
  divider.focus();
  await window.press("ArrowRight");
  await window.pass(1000);
  expect(divider.getAttribute("aria-valuenow")).toBe("54");
  const again = new App(window.backend);
  await again.view.load();
  const started = again.start();
  await window.pass(500);
  await started;
  expect(again.chats.map((chat) => chat.conversations.current)).toEqual([idOf(0), idOf(1)]);
  expect(again.chat).toBe(again.chats[0]);
  expect(again.view.splitPercent).toBe(54);
  again.close(again.chat);
  expect(again.conversations.current).toBe(idOf(1));
});
