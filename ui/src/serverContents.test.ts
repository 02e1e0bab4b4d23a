/** Picking prompts and resources of tool servers, in the whole window. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ServerContents } from "./bindings/ServerContents";
import { BackendError } from "./backend/backend";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

const argument = (name: string, required: boolean) => ({
  name,
  title: name === "who" ? "Who" : name,
  description: "",
  is_required: required,
});
const resource = (name: string, variables: string[] = []) => ({
  server: "notes",
  uri: `note://${name}`,
  name,
  title: name,
  description: "",
  mime_type: null,
  size: null,
  variables,
});
const CONTENTS: ServerContents = {
  prompts: [
    {
      server: "notes",
      name: "greet",
      title: "Greet someone",
      description: "A greeting.",
      arguments: [argument("who", true), argument("tone", false)],
    },
    { server: "notes", name: "plain", title: "Plain", description: "", arguments: [] },
  ],
  resources: [resource("fox.txt"), resource("{animal}", ["animal"])],
  is_starting: false,
  problems: ["bad: The server ended."],
};

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
  window.app.settings.change({ tool_servers: { notes: "digest" } });
  vi.spyOn(window.backend, "serverContents").mockResolvedValue(CONTENTS);
  await window.pass();
});
afterEach(() => window.close());

const composer = () => window.present("composer") as HTMLTextAreaElement;
const options = () => window.all("contents-option").map(({ textContent }) => textContent.trim());
const problems = () => window.all("contents-problem").map(({ textContent }) => textContent.trim());

async function open() {
  await window.click("contents-open");
  await window.pass();
}

async function choose(name: string) {
  await window.type("contents-field", name);
  await window.press("Enter", window.present("contents-field"));
}

async function fill(value: string) {
  const field = window.all("argument-field")[0] as HTMLInputElement;
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await window.pass();
}

test("without a server that is switched on there is no button and no command", async () => {
  const entry = async () => {
    await window.press("Ctrl k");
    await window.type("palette-field", "resources of servers");
    const found = window.all("palette-option").length;
    await window.press("Ctrl k");
    return found;
  };
  expect(await entry()).toBe(1);
  window.app.settings.change({ tool_servers: {} });
  await window.pass();
  expect(window.find("contents-open")).toBeNull();
  expect(await entry()).toBe(0);
});

test("a resource becomes an attachment", async () => {
  const fetch = vi
    .spyOn(window.backend, "fetchResource")
    .mockResolvedValue({ name: "fox.txt", kind: "text", text: "A fox." });
  await open();
  expect(options()).toHaveLength(4);
  expect(problems()).toEqual(["bad: The server ended."]);
  await choose("fox");
  expect(fetch).toHaveBeenCalledExactlyOnceWith("notes", "note://fox.txt", []);
  expect(window.app.attachments.files).toMatchObject([{ name: "fox.txt", text: "A fox." }]);
  expect(window.find("server-contents")).toBeNull();
  expect(document.activeElement).toBe(composer());
});

test("a prompt asks for its arguments and goes into the message, unsent", async () => {
  const send = vi.spyOn(window.backend, "send");
  const fetch = vi.spyOn(window.backend, "fetchPrompt").mockResolvedValue("Greet the fox.");
  await window.type("composer", "Please:");
  await open();
  await choose("greet");
  const [who, tone] = window.all("argument-form")[0]?.querySelectorAll("label") ?? [];
  expect([who?.textContent.trim(), tone?.textContent.trim()]).toEqual(["Who", "tone (optional)"]);
  expect(document.activeElement).toBe(window.all("argument-field")[0]);
  const add = window.present("argument-fill") as HTMLButtonElement;
  expect(add.disabled).toBe(true);
  await fill("the fox");
  await window.click("argument-fill");
  const filled = [{ name: "who", value: "the fox" }];
  expect(fetch).toHaveBeenCalledExactlyOnceWith("notes", "greet", filled);
  expect(composer().value).toBe("Please:\n\nGreet the fox.");
  expect(send).not.toHaveBeenCalled();
});

test("a template asks for the variables of its address", async () => {
  const fetch = vi
    .spyOn(window.backend, "fetchResource")
    .mockResolvedValue({ name: "hen", kind: "text", text: "A hen." });
  await open();
  await choose("animal");
  await window.click("argument-back");
  await choose("animal");
  await fill("hen");
  await window.click("argument-fill");
  const filled = [{ name: "animal", value: "hen" }];
  expect(fetch).toHaveBeenCalledExactlyOnceWith("notes", "note://{animal}", filled);
  expect(window.app.attachments.files).toHaveLength(1);
});

test("an entry that cannot be fetched says why, and another one can be chosen", async () => {
  const error = new BackendError("bad_attachment", "plain cannot be used as text: it is empty.");
  vi.spyOn(window.backend, "fetchPrompt").mockRejectedValue(error);
  await open();
  await choose("plain");
  expect(problems()[0]).toBe("plain cannot be used as text: it is empty.");
  expect(composer().value).toBe("");
  await choose("greet");
  expect(problems()).toEqual([]);
});

test("closing the list stops fetching", async () => {
  const stop = vi.spyOn(window.backend, "stopFetching").mockResolvedValue();
  vi.spyOn(window.backend, "fetchPrompt").mockReturnValue(new Promise(() => undefined));
  await open();
  await choose("plain");
  expect(window.present("server-contents").textContent).toContain("Fetching…");
  expect(stop).not.toHaveBeenCalled();
  (window.present("server-contents") as HTMLDialogElement).close();
  await window.pass();
  expect(stop).toHaveBeenCalledOnce();
});

test("entries and arguments that a server lists twice are shown", async () => {
  const [greet] = CONTENTS.prompts;
  if (!greet) throw new Error("no prompt");
  const twice = { ...greet, arguments: [argument("who", true), argument("who", true)] };
  vi.spyOn(window.backend, "serverContents").mockResolvedValue({
    ...CONTENTS,
    prompts: [twice, twice],
    resources: [],
  });
  await open();
  expect(options()).toHaveLength(1);
  await choose("greet");
  expect(window.all("argument-field")).toHaveLength(2);
});

test("a list that cannot be read says why", async () => {
  const error = new BackendError("bad_setting", "mcp.json cannot be read: no JSON.");
  vi.spyOn(window.backend, "serverContents").mockRejectedValue(error);
  await open();
  expect(problems()).toEqual(["mcp.json cannot be read: no JSON."]);
  expect(window.present("server-contents").textContent).not.toContain("starting");
});

test("what comes after the list was closed is not put into the message", async () => {
  let answer: (text: string) => void = () => undefined;
  const late = new Promise<string>((resolve) => (answer = resolve));
  vi.spyOn(window.backend, "fetchPrompt").mockReturnValue(late);
  vi.spyOn(window.backend, "stopFetching").mockResolvedValue();
  await open();
  await choose("plain");
  (window.present("server-contents") as HTMLDialogElement).close();
  answer("Too late.");
  await window.pass();
  expect(composer().value).toBe("");
});

test("servers are started once and listed until they are ready", async () => {
  const none = { prompts: [], resources: [], is_starting: true, problems: [] };
  const list = vi.spyOn(window.backend, "serverContents").mockResolvedValueOnce(none);
  await open();
  expect(window.present("server-contents").textContent).toContain("Servers are starting…");
  await window.pass(600);
  expect(options()).toHaveLength(4);
  await window.pass(2000);
  expect(list.mock.calls.map(([start]) => start)).toEqual([true, false]);
});
