/** Branches in the whole window: switch, edit, continue, delete. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

const questions = () => window.all("message-user").map(({ textContent }) => textContent);
const replies = () => window.all("message-reply").map(({ dataset }) => Number(dataset["message"]));
const places = () => window.all("branch-place").map(({ textContent }) => textContent);
const editor = () => window.present("question-editor") as HTMLTextAreaElement;
const wholeReply = () => window.pass(120_000);
const button = (testid: string) => window.present(testid) as HTMLButtonElement;

async function regenerate() {
  await window.click("regenerate");
  await wholeReply();
}

async function edit(text: string) {
  await window.click("edit-question");
  await window.type("question-editor", text);
  await window.press("Enter", editor());
  await wholeReply();
}

test("a regenerated reply can be compared with the one before, by pointer and keyboard", async () => {
  const [first] = replies();
  expect(places()).toEqual([]);
  await regenerate();
  const [second] = replies();
  expect(second).not.toBe(first);
  expect(places()).toEqual(["2 / 2"]);
  expect(button("next-branch").disabled).toBe(true);
  button("previous-branch").focus();
  await window.click("previous-branch");
  await window.pass();
  expect(replies()).toEqual([first]);
  expect(places()).toEqual(["1 / 2"]);
  expect(document.activeElement, "at the end the other one").toBe(button("next-branch"));
  expect(window.present("branch-announcement").textContent).toContain("Branch 1 of 2");
  await window.click("next-branch");
  expect(replies()).toEqual([second]);
});

test("a question whose reply was deleted has a button to answer it, but only the last one", async () => {
  expect(window.find("answer-question")).toBeNull();
  await window.type("composer", "And then?");
  await window.press("Enter", window.present("composer"));
  await wholeReply();
  const [, second] = replies();
  const last = window.app.conversations.messages.at(-1) ?? expect.fail();
  await window.app.conversations.deleteMessage(last);
  await window.pass();
  expect([questions().length, replies().length]).toEqual([2, 1]);
  expect(window.all("answer-question")).toHaveLength(1);
  await window.click("answer-question");
  expect(window.find("answer-question")).toBeNull();
  await wholeReply();
  expect([questions().length, replies().length]).toEqual([2, 2]);
  expect(replies()[1]).not.toBe(second);
});

test("branches cannot be switched while a reply is written", async () => {
  await regenerate();
  await window.click("regenerate");
  expect(places()).toEqual(["3 / 3"]);
  expect(button("previous-branch").disabled).toBe(true);
  expect(button("edit-question").disabled).toBe(true);
  expect(button("delete-question").disabled).toBe(true);
  await wholeReply();
  expect(button("previous-branch").disabled).toBe(false);
});

test("a question is edited in place, and its old version is kept with its reply", async () => {
  const [asked] = questions();
  const [first] = replies();
  await edit("Tell me a story about a hen.");
  expect(questions()).toEqual(["Tell me a story about a hen."]);
  expect(window.find("question-editor")).toBeNull();
  expect(replies()).not.toEqual([first]);
  expect(places()).toEqual(["2 / 2"]);
  await window.click("previous-branch");
  expect(questions()).toEqual([asked]);
  expect(replies()).toEqual([first]);
  expect(window.find("question-editor"), "it is not being changed any more").toBeNull();
});

test("an empty or unchanged edit cannot be sent, and Esc discards it", async () => {
  const sendInstead = vi.spyOn(window.backend, "sendInstead");
  const [asked] = questions();
  await window.click("edit-question");
  expect(document.activeElement).toBe(editor());
  expect(editor().value).toBe(asked);
  for (const text of [asked ?? "", ` ${asked} `, "  "]) {
    await window.type("question-editor", text);
    expect(button("send-edit").disabled).toBe(true);
    await window.press("Enter", editor());
  }
  await window.type("question-editor", "Another");
  await window.press("Shift Enter", editor());
  expect(sendInstead).not.toHaveBeenCalled();
  await window.press("Escape", editor());
  expect(questions()).toEqual([asked]);
  expect(document.activeElement).toBe(button("edit-question"));
});

test("an unsent edit of a question survives a look at another conversation", async () => {
  const [here, elsewhere] = window.app.conversations.list.map(({ id }) => id);
  const [asked] = questions();
  await window.click("edit-question");
  await window.type("question-editor", "Half a thought");
  await window.app.open(elsewhere ?? 0);
  await window.pass();
  await window.app.open(here ?? 0);
  await window.pass();
  expect(questions()[0]).toBe(asked);
  await window.click("edit-question");
  expect(editor().value).toBe("Half a thought");
  await window.press("Escape", editor());
  await window.click("edit-question");
  expect(editor().value, "what was given up is not kept").toBe(asked);
});

test("a refused edit stays in its editor with the reason", async () => {
  await window.click("edit-question");
  const long = "a ".repeat(20_000);
  await window.type("question-editor", long);
  await window.press("Enter", editor());
  expect(window.present("error-note").textContent).toContain("too long");
  expect(editor().value).toBe(long);
});

test("the last question is edited by the keyboard", async () => {
  await window.press("Ctrl Shift E");
  expect(document.activeElement).toBe(editor());
  await window.click("cancel-edit");
  expect(window.find("question-editor")).toBeNull();
});

test("a stopped reply can be continued until it is complete", async () => {
  await window.click("regenerate");
  await window.pass(800);
  await window.click("stop");
  await window.pass(1000);
  const [cut] = replies();
  expect(window.present("reply-ending").textContent).toContain("You stopped this reply.");
  await window.click("continue-reply");
  expect(window.find("reply-ending")).toBeNull();
  await wholeReply();
  expect(replies(), "it is one with what goes on").toEqual([cut]);
  expect(window.all("token-view")).toHaveLength(1);
  const { messages } = window.app.conversations;
  const [, first, second] = messages;
  expect(messages).toHaveLength(3);
  const shown = window.present("token-view").cloneNode(true) as HTMLElement;
  for (const hidden of shown.querySelectorAll("[aria-hidden=true]")) hidden.remove();
  expect(shown.textContent).toBe(`${first?.text}${second?.text}`);
  expect(window.all("reply-part").map(({ textContent }) => textContent.trim())).toEqual([
    "Part 1 of 2",
    "Part 2 of 2",
  ]);
  expect(window.present("inspected-part").textContent.trim()).toBe("Details of part 2 of 2");
  expect(window.find("continue-reply")).toBeNull();
});

test("deleting a message deletes everything after it, and the toast restores both", async () => {
  const before = [questions(), replies()];
  await window.click("delete-question");
  expect([questions(), replies()]).toEqual([[], []]);
  window.app.toasts.list[0]?.action?.run();
  await window.pass();
  expect([questions(), replies()]).toEqual(before);
  await window.click("reply-more");
  await window.click("delete-reply");
  expect(questions()).toEqual(before[0]);
  expect(replies()).toEqual([]);
  expect(window.app.toasts.list.at(-1)?.text).toBe("Message deleted");
});

test("Ctrl+Z restores the last deleted message, but undoes a field's change while typing", async () => {
  const before = replies();
  await window.click("reply-more");
  await window.click("delete-reply");
  expect(replies()).toEqual([]);
  await window.type("composer", "words");
  await window.press("Ctrl z", window.present("composer"));
  expect(replies()).toEqual([]);
  await window.type("composer", "");
  await window.press("Ctrl z", window.present("composer"));
  expect(replies()).toEqual(before);
});

test("a search shows a hit on another branch", async () => {
  await edit("Tell me of a zebra.");
  const last = questions();
  await window.click("previous-branch");
  expect(questions()).not.toEqual(last);
  const hits = await window.app.conversations.search("zebra");
  const hit = hits[0] ?? expect.fail();
  await window.app.open(hit.conversation.id, hit.message);
  await window.pass();
  expect(questions()).toEqual(last);
  expect(document.querySelector(`[data-message="${hit.message}"]`)?.classList).toContain("found");
});

test("an imported trace cannot be changed", async () => {
  const [reply] = window.app.conversations.messages.slice(-1);
  const imported = window.app.conversations.messages.map((message) => ({
    ...message,
    conversation: -1,
  }));
  window.app.conversations.show(-1, imported);
  await window.pass();
  expect(replies()).toEqual([reply?.id]);
  for (const testid of ["edit-question", "delete-question", "regenerate", "continue-reply"]) {
    expect(window.find(testid), testid).toBeNull();
  }
  expect(window.find("copy-question")).not.toBeNull();
});

test("a conversation can be continued from a reply in a new one, with only the messages before it", async () => {
  const home = window.app.conversations.current;
  const [first] = replies();
  await regenerate();
  await window.click("reply-more");
  await window.click("new-chat-from-here");
  await window.pass(1000);
  expect(window.app.conversations.current).not.toBe(home);
  expect(questions()).toHaveLength(1);
  expect(replies()).toHaveLength(1);
  expect(places()).toEqual([]);
  await window.app.open(home ?? 0);
  await window.pass(100);
  expect(replies()).not.toContain(first);
  expect(places()).toEqual(["2 / 2"]);
});
