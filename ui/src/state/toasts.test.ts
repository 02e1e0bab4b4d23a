import { expect, test, vi } from "vitest";
import type { Backend } from "../backend/backend";
import { App } from "./app.svelte";
import { Toasts } from "./toasts.svelte";

test("a note goes by itself, and a notice stays until it is dismissed", () => {
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

test("what happened at the start is told when the page is there", async () => {
  const nothing = () => Promise.resolve([]);
  const backend = {
    takeNotices: () => Promise.resolve(["The old one was kept."]),
    appInfo: () => Promise.resolve({ version: "1", data_folder: "/" }),
    watchEngine: nothing,
    watchDownloads: nothing,
    watchFileDrags: nothing,
    catalogue: nothing,
    hubToken: () => Promise.resolve("none"),
    conversations: nothing,
    traceToOpen: () => Promise.resolve(null),
  };
  const app = new App(backend as unknown as Backend);
  await app.start();
  expect(app.toasts.list.map(({ text }) => text)).toEqual(["The old one was kept."]);
});
