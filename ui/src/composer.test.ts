/** Writing and sending a question, in the whole window. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

const field = () => window.present("composer") as HTMLTextAreaElement;

async function write(text: string) {
  await window.type("composer", text);
}

test("text typed between sending and the start of the reply stays", async () => {
  await write("Hello");
  const accepted = vi.fn();
  const send = window.backend.send.bind(window.backend);
  vi.spyOn(window.backend, "send").mockImplementation((conversation, sent, onEvent) =>
    send(conversation, sent, (event) => {
      if (event.type === "started") {
        field().value = "And more";
        field().dispatchEvent(new Event("input", { bubbles: true }));
        accepted(sent.text);
      }
      onEvent(event);
    }),
  );
  await window.press("Enter", field());
  await window.pass(200);
  expect(accepted).toHaveBeenCalledExactlyOnceWith("Hello");
  expect(field().value).toBe("And more");
});

test("a letter typed with the focus nowhere goes to the composer, a shortcut and a space do not", async () => {
  const focusAfter = async (key: object) => {
    field().blur();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { ...key, bubbles: true }));
    await window.pass(20);
    return document.activeElement;
  };
  expect(await focusAfter({ key: "a" })).toBe(field());
  expect(await focusAfter({ key: " " })).toBe(document.body);
  expect(await focusAfter({ key: "x", altKey: true })).toBe(document.body);
  const button = window.present("new-chat");
  button.focus();
  button.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
  expect(document.activeElement).toBe(button);
});

test("sending clears the field", async () => {
  await write("Hello");
  await window.press("Enter", field());
  await window.pass(200);
  expect(field().value).toBe("");
});

test("if Ctrl+Enter sends, Enter starts a new line, also in an edited question", async () => {
  window.app.settings.changeAppearance({ send_key: "command_enter" });
  await write("Hello");
  const isTaken = (key: object, at: Element) =>
    !at.dispatchEvent(new KeyboardEvent("keydown", { ...key, bubbles: true, cancelable: true }));
  expect(isTaken({ key: "Enter" }, field())).toBe(false);
  expect(isTaken({ key: "Enter", shiftKey: true }, field())).toBe(false);
  await window.pass(200);
  expect(field().value).toBe("Hello");
  expect(window.present("send").textContent).toContain("Ctrl Enter");
  expect(isTaken({ key: "Enter", ctrlKey: true }, field())).toBe(true);
  await window.pass(20_000);
  expect(field().value).toBe("");

  const question = window.app.conversations.messages.findLast(({ role }) => role === "user");
  window.app.view.editing = question?.id ?? expect.fail("no question");
  await window.pass();
  const editor = window.present("question-editor");
  expect(isTaken({ key: "Enter" }, editor)).toBe(false);
  expect(isTaken({ key: "Enter", ctrlKey: true }, editor)).toBe(true);
});

test("a switch changed just before sending is saved first", async () => {
  const order: string[] = [];
  const { backend, app } = window;
  const save = backend.saveSettings.bind(backend);
  vi.spyOn(backend, "saveSettings").mockImplementation((settings) => {
    order.push(`thinking ${String(settings.thinking)}`);
    return save(settings);
  });
  vi.spyOn(backend, "send").mockImplementation((_, { text }) => {
    order.push(text);
    return Promise.reject(new Error("enough"));
  });
  await write("Hello");
  app.settings.change({ thinking: true });
  await window.press("Enter", field());
  expect(order).toEqual(["thinking true", "Hello"]);
});

test("a message is sent to the conversation that it was written in, or stays unsent", async () => {
  const send = vi.spyOn(window.backend, "send");
  await write("Hello");
  field().dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  const { current } = window.app.conversations;
  window.app.startNew();
  await window.pass();
  expect(send).not.toHaveBeenCalled();
  expect(field().value, "another conversation has its own").toBe("");
  await window.app.open(current ?? 0);
  await window.pass();
  expect(field().value).toBe("Hello");
});

test("a chat that no longer fits shows the gauge's numbers and all remedies", async () => {
  const { app } = window;
  app.settings.change({ context_overflow: "stop" });
  const gauge = () => window.present("context-gauge").textContent.trim();
  const before = Number(/\d+/.exec(gauge())?.[0]);
  expect(before).toBeGreaterThan(0);
  await write("word ".repeat(800));
  await window.press("Enter", field());
  await window.pass(200);
  const note = window.present("error-note");
  const size = `${(before + 1000).toLocaleString("en")} of 1,024 tokens`;
  expect(note.textContent).toContain(`This conversation no longer fits: ${size}.`);
  expect(gauge()).toBe(size);
  const ways = [...note.querySelectorAll(".ways button")].map((way) => way.textContent.trim());
  expect(ways).toEqual([
    "Drop oldest and continue",
    "Forget earlier messages",
    "New chat",
    "Model with more context",
  ]);
  await window.click("too-long-model");
  expect(app.view.libraryOpen).toBe(true);
  await window.click("too-long-start");
  await window.pass(200);
  expect(window.find("error-note")).toBeNull();
  expect(document.querySelectorAll(".unseen > [data-message]").length).toBeGreaterThan(1);
  expect(field().value).toBe("");
});

test("by default a chat that no longer fits continues, and a line shows where its context begins", async () => {
  await write("word ".repeat(800));
  await window.press("Enter", field());
  await window.pass(200);
  expect(window.find("error-note")).toBeNull();
  expect(window.all("unseen-line")).toHaveLength(1);
  await write("word ".repeat(900));
  await window.click("stop");
  await window.press("Enter", field());
  await window.pass(200);
  const note = window.present("error-note");
  expect(note.textContent).toContain("This message is too long: 1,125 of 1,024 tokens.");
  expect(note.querySelector("[data-testid=leave-out-oldest]")).toBeNull();
  window.present("too-long-model");
});

test("a refusal is shown only in its own conversation", async () => {
  const { app, backend } = window;
  vi.spyOn(backend, "send").mockRejectedValue(new Error("the server is off"));
  const { current } = app.conversations;
  await write("Hello");
  await window.press("Enter", field());
  expect(window.present("error-note").textContent).toContain("The server is off");
  app.startNew();
  await window.pass();
  expect(window.find("error-note")).toBeNull();
  await app.open(current ?? 0);
  await window.pass();
  expect(window.present("error-note").textContent).toContain("The server is off");
});

test("two files refused for the same reason are both listed", async () => {
  const binary = () => new File(["\0"], "a.bin");
  await window.app.attachments.add([binary(), binary()]);
  await window.pass();
  expect(window.all("attachment-problem")).toHaveLength(2);
});

test("of a text with a picture the text is pasted, and a picture alone is refused", () => {
  const attach = vi.spyOn(window.app, "attach").mockResolvedValue();
  const paste = (text: string) => {
    const clipboardData = { files: [new File(["\0"], "image.png")], getData: () => text };
    const event = new Event("paste", { bubbles: true, cancelable: true });
    field().dispatchEvent(Object.assign(event, { clipboardData }));
    return event.defaultPrevented;
  };
  expect(paste("Budget 2026")).toBe(false);
  expect(attach).not.toHaveBeenCalled();
  expect(paste("")).toBe(true);
  expect(attach).toHaveBeenCalledOnce();
});

test("only with a local model a note says that everything stays on this computer", async () => {
  const { app } = window;
  app.startNew();
  const target = app.engine.status.target ?? expect.fail("no target");
  const welcome = async (kind: typeof target.kind) => {
    app.engine.status = {
      ...app.engine.status,
      target: { ...target, id: "other", label: "Big", kind },
    };
    await window.pass();
    return document.querySelector(".welcome .lead")?.textContent.trim();
  };
  expect(await welcome("remote")).toBe("Big is ready. What you send leaves this computer.");
  expect(await welcome("added")).toBe("Big is ready. Everything stays on this computer.");
});

test("the Enter that accepts a proposal of an input method does nothing else", async () => {
  const { app, backend } = window;
  const [conversation] = app.conversations.list;
  const send = vi.spyOn(backend, "send");
  const open = vi.spyOn(app, "open");
  const rename = vi.spyOn(backend, "rename");
  /** Sends the events of WebKit on a Mac after the input method has ended. */
  const take = async (field: Element) => {
    const event = new KeyboardEvent("keydown", { key: "Enter", keyCode: 229, bubbles: true });
    field.dispatchEvent(event);
    await window.pass();
  };
  await write("にほん");
  await take(field());
  expect(send).not.toHaveBeenCalled();

  await window.press("Ctrl f", document.body);
  await window.type("find-field", "the");
  await window.pass(500);
  const count = window.present("find-count").textContent;
  await take(window.present("find-field"));
  expect(window.present("find-count").textContent).toBe(count);

  await window.type("search", "the");
  await window.pass(500);
  await take(window.present("search"));
  expect(open).not.toHaveBeenCalled();
  await window.type("search", "");

  app.view.renaming = conversation?.id ?? 0;
  await window.pass();
  await take(document.activeElement ?? document.body);
  expect(rename).not.toHaveBeenCalled();
  expect(app.view.renaming).toBe(conversation?.id);
});

test("a click elsewhere saves a name being edited, and the focus stays there", async () => {
  const { app } = window;
  app.view.renaming = app.conversations.list[0]?.id ?? 0;
  await window.pass();
  (document.activeElement as HTMLInputElement).value = "Foxes";
  document.activeElement?.dispatchEvent(new Event("input", { bubbles: true }));
  field().focus();
  await window.pass();
  expect(app.conversations.list[0]?.title).toBe("Foxes");
  expect(document.activeElement).toBe(field());
});

test("after a conversation is deleted the focus moves to the next", async () => {
  const rows = () => window.all("conversation-item");
  const [, second, third] = rows();
  second?.focus();
  await window.press("Delete", second);
  expect(rows()).not.toContain(second);
  expect(document.activeElement).toBe(third ?? rows()[0]);
});
