import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ViewState } from "../bindings/ViewState";
import { viewDefaults } from "../bindings/defaults";
import { View } from "./view.svelte";

/** A database that outlives the page. */
class FakeBackend {
  state: ViewState | null = null;
  saves = 0;
  viewState = () => Promise.resolve(this.state);
  saveViewState = (state: ViewState) => {
    this.state = state;
    this.saves += 1;
    return Promise.resolve();
  };
}

let kept: FakeBackend;

beforeEach(() => {
  vi.useFakeTimers();
  localStorage.clear();
  kept = new FakeBackend();
});
afterEach(() => vi.useRealTimers());

async function start(): Promise<View> {
  const view = new View(kept);
  await view.load();
  return view;
}

test("the view survives a restart, and several changes are saved once", async () => {
  const view = await start();
  const before = kept.saves;
  view.showAllAs("text");
  view.unfoldDrafts(true);
  view.dismissKey();
  view.wrapCode(true);
  view.dockHeatmap(true);
  view.folds.toggle("governor");
  await vi.advanceTimersByTimeAsync(1000);
  expect(kept.saves - before).toBe(1);
  expect((await start()).state).toEqual({
    reply_view: "text",
    show_drafts: true,
    key_dismissed: true,
    wraps_code: true,
    heatmap_docked: true,
    unfolded: ["governor"],
    folded_folders: [],
    side_by_side: null,
    split_percent: 0,
  });
  expect(localStorage.length).toBe(0);
});

test("a section toggled twice is folded", async () => {
  const view = await start();
  view.folds.toggle("governor");
  view.folds.toggle("memory");
  view.folds.toggle("governor");
  expect([view.folds.isOpen("governor"), view.folds.isOpen("memory")]).toEqual([false, true]);
});

test("the view in the webview's storage of earlier versions is migrated once", async () => {
  localStorage.setItem("foretoken.reply-view", "text");
  localStorage.setItem("foretoken.wraps-code", "true");
  localStorage.setItem("foretoken.theme", "dark");
  localStorage.setItem("another", "stays");
  const moved = { ...viewDefaults, reply_view: "text", wraps_code: true };
  expect((await start()).state).toEqual(moved);
  expect(kept.state).toEqual(moved);
  expect(Object.keys(localStorage)).toEqual(["another"]);
  localStorage.setItem("foretoken.reply-view", "tokens");
  expect((await start()).replyView, "the database is asked first").toBe("text");
});

test("if migration fails, the webview's storage is kept", async () => {
  localStorage.setItem("foretoken.reply-view", "text");
  kept.saveViewState = () => Promise.reject(new Error("the disk is full"));
  expect((await start()).replyView).toBe("text");
  expect(localStorage.getItem("foretoken.reply-view")).toBe("text");
});
