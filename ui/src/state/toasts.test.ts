import { expect, test, vi } from "vitest";
import type { Backend } from "../backend/backend";
import { App } from "./app.svelte";
import { Toasts } from "./toasts.svelte";

test("a toast disappears by itself, and a notice stays until it is dismissed", () => {
  vi.useFakeTimers();
  const toasts = new Toasts();
  toasts.show("Saved");
  toasts.notify("The old one was kept.");
  expect(toasts.list.map(({ text }) => text)).toEqual(["Saved", "The old one was kept."]);
  vi.advanceTimersByTime(60 * 60 * 1000);
  expect(toasts.list.map(({ text }) => text)).toEqual(["The old one was kept."]);
  toasts.dismiss(toasts.list[0]?.id ?? 0);
  expect(toasts.list).toEqual([]);
  vi.useRealTimers();
});

test("a step can be undone in its toast for 15 s, and by the shortcut after that, the last one first", () => {
  vi.useFakeTimers();
  const toasts = new Toasts();
  const undone: string[] = [];
  toasts.showUndoable("first", () => undone.push("first"));
  vi.advanceTimersByTime(14_999);
  toasts.showUndoable("second", () => undone.push("second"));
  expect(toasts.list.map(({ text }) => text)).toEqual(["first", "second"]);
  vi.advanceTimersByTime(1);
  expect(toasts.list.map(({ text }) => text)).toEqual(["second"]);
  expect(toasts.offersUndo).toBe(true);
  toasts.list[0]?.action?.run();
  expect([undone, toasts.list, toasts.offersUndo]).toEqual([["second"], [], false]);
  toasts.undoLast();
  toasts.undoLast();
  expect([undone, toasts.canUndo]).toEqual([["second", "first"], false]);
  vi.useRealTimers();
});

test("notices of the start are shown once the page is ready", async () => {
  const nothing = () => Promise.resolve([]);
  const backend = {
    takeNotices: () => Promise.resolve(["The old one was kept."]),
    appInfo: () => Promise.resolve({ version: "1", data_folder: "/", models_folder: "/" }),
    desktop: () => Promise.resolve({ tray: false, shortcut: null, screenshots: false }),
    watchEngine: nothing,
    watchDownloads: nothing,
    watchFileDrags: nothing,
    catalogue: nothing,
    hubToken: () => Promise.resolve("none"),
    conversations: nothing,
    folders: nothing,
    unsent: nothing,
    unsentEdits: nothing,
    importedTraces: nothing,
    unsentFiles: nothing,
    traceToOpen: () => Promise.resolve(null),
  };
  const app = new App(backend as unknown as Backend);
  await app.start();
  expect(app.toasts.list.map(({ text }) => text)).toEqual(["The old one was kept."]);
});
