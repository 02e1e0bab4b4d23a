import { File } from "node:buffer";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { contentsOfPdf } from "./attachments/pdf";
import { BackendError } from "./backend/backend";
import { WindowFixture } from "./windowFixture";

vi.mock("./attachments/pdf", { spy: true });

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

// Replies are played, which takes a while beside other tests.
vi.setConfig({ testTimeout: 30_000 });

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
});

afterEach(() => window.close());

const words = (testid: string) =>
  window.all(testid).map(({ textContent }) => textContent.replace(/\s+/g, " ").trim());

/** Attaches files by the dialog. */
async function attach(...files: [name: string, text: string][]) {
  const field = window.present("attach") as HTMLInputElement;
  const chosen = files.map(([name, text]) => new File([text], name));
  Object.defineProperty(field, "files", { value: chosen, configurable: true });
  field.dispatchEvent(new Event("change", { bubbles: true }));
  await vi.waitFor(async () => {
    await window.pass();
    expect(window.app.attachments.reading).toBe(false);
  });
  await window.pass();
}

async function paste(text: string, types = ["text/plain"]) {
  const items = types.map((type) => ({ type }));
  const clipboardData = { files: [], items, types, getData: () => text };
  const event = Object.assign(new Event("paste", { bubbles: true, cancelable: true }), {
    clipboardData,
  });
  window.present("composer").dispatchEvent(event);
  await window.pass();
  return event.defaultPrevented;
}

async function send() {
  await window.click("send");
  await replied();
}

/** Waits for the first text of the reply. */
async function replied() {
  await window.pass(2000);
  await window.app.reply.stop();
  await window.pass(2000);
  expect(window.app.reply.active).toBe(false);
}

test("a file is a chip with its size, is sent, and stays folded above its question", async () => {
  expect(window.present("send")).toHaveProperty("disabled", true);
  await attach(["fox.py", "print('fox')\n".repeat(250)]);
  expect(words("attachment")).toEqual([
    "fox.py about 813 tokens, 79% of the context, about 8 s to read",
  ]);
  await window.click("attachment-open");
  expect(window.present("attachment-text").textContent).toContain("Show 51 more lines");
  await window.click("attachment-more");
  expect(window.present("attachment-text").textContent.match(/fox/g)).toHaveLength(250);
  await window.type("composer", "What does it do?");
  await send();
  expect(words("attachment")).toEqual(["fox.py 3.3 kB"]);
  const question = window.all("message-user").at(-1);
  expect(question?.textContent).toBe("What does it do?");
  expect(window.find("attachment-text")).toBeNull();
  await window.click("attachment-open");
  expect(window.present("attachment-text").textContent).toContain("print('fox')");
  await window.click("attachment-open");
  expect(window.find("attachment-text")).toBeNull();
});

test("files can be sent without a text, and removed files are not sent", async () => {
  await attach(["a.md", "abc"], ["b.md", "abd"]);
  await window.click("attachment-remove");
  expect(words("attachment")).toEqual(["b.md about 1 token"]);
  await send();
  expect(words("attachment")).toEqual(["b.md 3 B"]);
  expect(window.app.attachments.waiting).toEqual([]);
});

test("after a file is removed the focus moves to the next one, and after the last to the message", async () => {
  await attach(["a.md", "abc"], ["b.md", "abd"], ["c.md", "abe"]);
  const buttons = () => window.all("attachment-remove");
  buttons()[1]?.click();
  await window.pass();
  expect(document.activeElement).toBe(buttons()[1]);
  buttons()[1]?.click();
  await window.pass();
  expect(document.activeElement).toBe(buttons()[0]);
  buttons()[0]?.click();
  await window.pass();
  expect(document.activeElement).toBe(window.present("composer"));
});

test("an edited question keeps its files, except removed ones", async () => {
  await attach(["a.md", "abc"], ["b.md", "abd"]);
  await window.type("composer", "Hm?");
  await send();
  const edit = async () => {
    window.all("edit-question").at(-1)?.click();
    await window.pass();
  };
  await edit();
  expect(window.present("send-edit")).toHaveProperty("disabled", true);
  await window.click("attachment-remove");
  await window.click("send-edit");
  await replied();
  expect(words("attachment")).toEqual(["b.md 3 B"]);
  await edit();
  await window.type("question-editor", "Well?");
  await window.click("send-edit");
  await replied();
  expect(words("attachment")).toEqual(["b.md 3 B"]);
  expect(window.all("message-user").at(-1)?.textContent).toBe("Well?");
});

test("a long pasted text becomes an attachment, which can be undone", async () => {
  expect(await paste("short")).toBe(false);
  const long = "word ".repeat(1000);
  expect(await paste(long)).toBe(true);
  expect(words("attachment")[0]).toContain("Pasted text.txt about 1,250 tokens");
  const [toast] = window.app.toasts.list;
  toast?.action?.run();
  await window.pass();
  expect(words("attachment")).toEqual([]);
  expect(window.present("composer")).toHaveProperty("value", long);
});

test("a picture that the web view withholds is read from the clipboard", async () => {
  const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47]).buffer;
  window.backend.clipboardPicture = () => Promise.resolve(png);
  // That of the test's page cannot be read.
  vi.stubGlobal("File", File);
  expect(await paste("", ["image/png"])).toBe(true);
  await vi.waitFor(() => {
    expect(words("attachment").join()).toContain("Pasted picture.png");
  });
  vi.unstubAllGlobals();
});

test("a screenshot is attached unless it is cancelled, and a desktop without any is named", async () => {
  const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47]).buffer;
  const replies = [
    () => Promise.resolve(new ArrayBuffer(0)),
    () => Promise.reject(new BackendError("not_found", "no portal")),
    () => Promise.resolve(png),
  ];
  window.backend.takeScreenshot = () => (replies.shift() ?? expect.fail("it was asked again"))();
  expect(window.all("attach-screenshot")).toEqual([]);
  window.app.desktop = { tray: false, shortcut: null, screenshots: true };
  window.app.engine.status = { ...window.app.engine.status, sees: true };
  await window.pass();
  await window.click("attach-screenshot");
  expect([words("attachment"), words("attachment-problem")]).toEqual([[], []]);
  await window.click("attach-screenshot");
  expect(words("attachment-problem").join()).toContain("offers no screenshots to programs");
  vi.stubGlobal("File", File);
  await window.click("attach-screenshot");
  await vi.waitFor(() => {
    expect(words("attachment").join()).toContain("Screenshot.png");
  });
  vi.unstubAllGlobals();
  expect(words("attachment-problem")).toEqual([]);
});

test("a pasted image is refused with a message, even without a file", async () => {
  expect(await paste("", ["image/png"])).toBe(true);
  expect(words("attachment-problem")).toEqual([
    "This picture cannot be pasted. Save it and attach the file.",
  ]);
  expect(await paste("", ["text/html"])).toBe(false);
});

test("a picture copied from a web page, with its markup, is a pasted picture", async () => {
  expect(await paste("", ["text/html", "image/png"])).toBe(true);
  expect(words("attachment-problem")).toHaveLength(1);
});

test("a pasted text that was sent is not inserted into the next message", async () => {
  await paste("word ".repeat(1000));
  const [toast] = window.app.toasts.list;
  window.app.attachments.sent(window.app.attachments.files);
  toast?.action?.run();
  await window.pass();
  expect(window.present("composer")).toHaveProperty("value", "");
});

test("a file of one long line is shown from its beginning, and more on demand", async () => {
  await attach(["long.json", "ab ".repeat(30_000)]);
  await window.click("attachment-open");
  const shown = () => window.present("attachment-text").querySelector("code")?.textContent.length;
  expect(shown()).toBe(40_000);
  expect(words("attachment-more")).toEqual(["Show more"]);
  await window.click("attachment-more");
  expect(shown()).toBe(90_000);
  expect(window.find("attachment-more")).toBeNull();
});

test("pages of a scan that were left out are a note, and not an error", async () => {
  const drawn = [new Uint8Array([1]), new Uint8Array([2])];
  vi.mocked(contentsOfPdf).mockResolvedValueOnce({ drawn, pages: 12 });
  await attach(["scan.pdf", "%PDF-1.7"]);
  expect(words("attachment-problem")).toEqual([]);
  expect(words("attachment-note")).toEqual([
    "scan.pdf is scanned: 2 of its 12 pages are attached as pictures.",
  ]);
  const note = window.present("attachment-note");
  expect([note.role, note.classList.contains("note")]).toEqual(["status", true]);
  note.querySelector("button")?.click();
  await window.pass();
  expect(words("attachment-note")).toEqual([]);
});

test("refused files are explained in place, and excessive length before sending", async () => {
  await attach(["photo.png", "\0"]);
  expect(words("attachment-problem")).toEqual([
    "photo.png is a picture of a kind that cannot be read. PNG, JPEG, WebP, GIF and BMP can be attached.",
  ]);
  await attach(["long.txt", "word ".repeat(3000)]);
  expect(words("attachment-problem")).toEqual([]);
  const limit = window.app.engine.status.target?.context ?? 0;
  expect(words("attachments-too-long")[0]).toContain(
    `The files are too long: about 3,750 of ${limit.toLocaleString("en")} tokens.`,
  );
  await window.click("attachment-remove");
  expect(words("attachments-too-long")).toEqual([]);
});

test("the gauge shows the use of the context by parts", async () => {
  window.app.settings.change({ system_prompt: "Be brief. ".repeat(4) });
  await attach(["a.md", "word ".repeat(80)]);
  await window.pass(1000);
  window.present("context-open").focus();
  await window.pass();
  const parts = window.present("context-parts").textContent.replace(/\s+/g, " ");
  expect(parts).toMatch(
    /System prompt 10 ?Conversation \d+ ?To be sent 100 ?Room for the reply \d+/,
  );
});

test("the gauge's card closes on a press elsewhere, a key or another conversation, and offers actions", async () => {
  const { app } = window;
  const open = async () => {
    await window.click("context-open");
    window.present("context-parts");
  };
  await open();
  document.body.dispatchEvent(new Event("pointerdown", { bubbles: true }));
  await window.pass();
  expect(window.find("context-parts")).toBeNull();
  await open();
  await window.press("a", window.present("composer"));
  expect(window.find("context-parts")).toBeNull();
  await open();
  await app.open(app.conversations.list[1]?.id ?? expect.fail());
  await window.pass();
  expect(window.find("context-parts")).toBeNull();
  await open();
  await window.click("context-start");
  const last = app.conversations.messages.findLast(({ role }) => role === "user");
  expect(app.conversations.contextStart).toBe(last?.id);
});

test("the gauge counts a system prompt once it is saved, and a conversation's own one", async () => {
  const { app, backend } = window;
  const counted = vi.spyOn(backend, "contextUse");
  app.settings.change({ system_prompt: "Be" });
  await window.pass(100);
  app.settings.change({ system_prompt: "Be brief." });
  await window.pass(100);
  expect(counted).not.toHaveBeenCalled();
  await window.pass(1000);
  expect(counted).toHaveBeenCalled();
  counted.mockClear();
  await app.setup.choose(null);
  await window.pass();
  expect(counted).toHaveBeenCalled();
});

test("the model's context can start at a chosen question", async () => {
  await window.type("composer", "And then?");
  await send();
  window.all("see-from").at(-1)?.click();
  await window.pass();
  expect(document.querySelectorAll(".unseen > [data-message]")).toHaveLength(2);
  await window.click("see-all");
  expect(document.querySelectorAll(".unseen > [data-message]")).toHaveLength(0);
});
