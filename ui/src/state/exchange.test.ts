import { beforeEach, expect, test, vi } from "vitest";
import type { Imported } from "../bindings/Imported";
import { BackendError, type Backend } from "../backend/backend";
import { App } from "./app.svelte";

const imported = (added: number, known: number, more: Partial<Imported> = {}): Imported => ({
  added,
  known,
  last: null,
  instructed: 0,
  left_out: { conversations: 0, messages: 0, titles: [] },
  ...more,
});

let app: App;
let backend: Backend;
let outcomes: Record<string, Imported | BackendError>;
const paths: string[] = [];
const stopImport = vi.fn(() => Promise.resolve());
const addModel = vi.fn(() => Promise.reject(new BackendError("bad_model", "no model")));

beforeEach(() => {
  paths.length = 0;
  outcomes = {};
  backend = {
    conversations: () => Promise.resolve([]),
    folders: () => Promise.resolve([]),
    chooseConversationFiles: () => Promise.resolve(Object.keys(outcomes)),
    importConversations: async (
      path: string,
      onProgress: (progress: { share: number; conversations: number }) => void,
    ) => {
      paths.push(path);
      onProgress({ share: 0.5, conversations: 1 });
      expect(app.exchange.importing).toEqual({ name: path.split("/").at(-1), share: 0.5 });
      const outcome = outcomes[path] ?? imported(1, 0);
      if (outcome instanceof BackendError) return await Promise.reject(outcome);
      return outcome;
    },
    exportConversations: () => Promise.resolve("/downloads/foretoken-foxes.md"),
    stopImport,
    addModel,
  } as unknown as Backend;
  app = new App(backend);
});

const messages = () => app.toasts.list.map(({ text }) => text);

test("each chosen file is imported, and its result is shown", async () => {
  outcomes = {
    "/a/one.json": imported(1, 0),
    "/a/two.zip": imported(12, 3),
    "/a/three.json": imported(0, 2),
    "/a/four.json": new BackendError("bad_file", "It is torn."),
  };
  await app.exchange.choose();
  expect(messages()).toEqual([
    "1 conversation imported.",
    "12 conversations imported, 3 were here already.",
    "Nothing was imported: all 2 conversations are here already.",
    "“four.json” was not imported: It is torn.",
  ]);
  expect(app.exchange.importing).toBeNull();
});

test("unreadable parts of a file are counted and named, and own instructions are counted", async () => {
  const lost = (conversations: number, messages: number, titles: string[]) => ({
    left_out: { conversations, messages, titles },
  });
  outcomes = {
    "/a/one.json": imported(12, 3, lost(1, 2, ["Foxes", "Foxes", "Hens"])),
    "/a/two.json": imported(0, 1, lost(0, 1, ["Owls"])),
    "/a/three.json": imported(2, 0, { instructed: 1, ...lost(2, 0, []) }),
  };
  await app.exchange.choose();
  expect(messages()).toEqual([
    "12 conversations imported, 3 were here already, 1 conversation could not be read, 2 messages could not be read (Foxes, Hens).",
    "0 conversations imported, 1 was here already, 1 message could not be read (Owls).",
    "2 conversations imported, 1 has its own instructions for the model, 2 conversations could not be read.",
  ]);
});

test("no file is imported after one that was stopped", async () => {
  const importing = app.exchange.import(["/a/one.json", "/a/two.json"]);
  await app.exchange.stop();
  await importing;
  expect(paths).toEqual(["/a/one.json"]);
  expect(stopImport).toHaveBeenCalledOnce();
});

test("files dropped during an import follow it", async () => {
  const importing = app.exchange.import(["/a/one.json"]);
  await app.exchange.import(["/a/two.json", "/a/three.json"]);
  await importing;
  expect(paths).toEqual(["/a/one.json", "/a/two.json", "/a/three.json"]);
  expect(app.exchange.importing).toBeNull();
});

test("a slow attachment does not delay the import of conversations", async () => {
  Object.assign(backend, { droppedFile: () => new Promise(() => undefined) });
  void app.addDropped([
    { path: "/a/notes.md", kind: "attachment" },
    { path: "/a/export.zip", kind: "conversations" },
  ]);
  await vi.waitFor(() => expect(paths).toEqual(["/a/export.zip"]));
});

test("a file attached during a replay or beside an imported trace can be seen and sent", async () => {
  const file = new File(["abc"], "a.md");
  app.playback.message = 3;
  await app.attach([file]);
  expect(app.playback.message).toBeNull();
  app.conversations.show(-1, []);
  await app.attach([file]);
  expect(app.conversations.current).toBeNull();
  app.conversations.show(1, []);
  await app.attach([file]);
  expect(app.conversations.current).toBe(1);
});

test("dropped files of conversations are imported, and others are not", async () => {
  await app.addDropped([
    { path: "/a/Conversations.JSON", kind: "conversations" },
    { path: "/a/notes.json", kind: "attachment" },
    { path: "/a/export.zip", kind: "conversations" },
  ]);
  await vi.waitFor(() => expect(paths).toEqual(["/a/Conversations.JSON", "/a/export.zip"]));
  expect(addModel).not.toHaveBeenCalled();
});

test("an export shows the path of its file", async () => {
  await app.exchange.export(null, "markdown");
  expect(messages()).toEqual(["Saved to /downloads/foretoken-foxes.md"]);
});
