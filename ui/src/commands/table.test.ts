import { expect, test, vi } from "vitest";
import { App } from "../state/app.svelte";
import type { WindowActions } from "./command";
import { entriesFor } from "./entries";
import { keyNames, type Keys } from "./keys";
import { REGION_KEYS, type RegionKey } from "./regionKeys";
import { COMMANDS, commandFor, keysOf, runCommand } from "./table";

const actions: WindowActions = {
  focusComposer: vi.fn(),
  focusSearch: vi.fn(),
  showConversations: vi.fn(),
  chooseTarget: vi.fn(),
  chooseDraft: vi.fn(),
  choosePreset: vi.fn(),
  importTrace: vi.fn(),
  exportTrace: vi.fn(),
  focusFind: vi.fn(),
  copyReply: vi.fn(),
  copy: vi.fn(),
  print: vi.fn(),
};
const REPLY = {
  id: 7,
  conversation: 1,
  role: "assistant",
  text: "words",
  finish: "stop",
  siblings: [7],
  calls: [],
} as never;
const cut = (id: number, siblings: number[]) =>
  ({ ...(REPLY as object), id, siblings, finish: "length" }) as never;
const question = (id: number, siblings: number[]) =>
  ({ id, conversation: 1, role: "user", text: "Why?", siblings, calls: [] }) as never;
const CONVERSATION = {
  id: 1,
  title: "A fox finds a lantern",
  pinned: false,
  updated_at: 0,
} as never;

function makeApp(): App {
  vi.stubGlobal("matchMedia", () => ({ matches: false }));
  return new App({} as never);
}

/** An app whose conversation has a reply. */
function makeAppWithReply(): App {
  const app = makeApp();
  app.conversations.list = [CONVERSATION];
  app.conversations.current = 1;
  app.conversations.messages = [REPLY];
  return app;
}

const named = (app: App, query: string) => entriesFor(app, actions, query).map(({ name }) => name);
const entry = (app: App, id: string) => entriesFor(app, actions, "").find((one) => one.id === id);
const names = (keys: Keys) => keyNames(keys, false).join(" ");
const ESCAPE = new KeyboardEvent("keydown", { key: "Escape" });

test("no two commands have the same name or id", () => {
  for (const key of ["id", "name"] as const) {
    const all = COMMANDS.map((command) => command[key]);
    expect(new Set(all).size).toBe(all.length);
  }
});

test("no two commands share keys, except Esc, which closes something before it stops anything", () => {
  const taken = COMMANDS.flatMap(({ id, keys = [] }) => keys.map((one) => [names(one), id]));
  const others = taken.filter(([name]) => name !== "Esc").map(([name]) => name);
  expect(new Set(others).size).toBe(others.length);
  const escapes = taken.filter(([name]) => name === "Esc").map(([, id]) => id);
  expect(escapes).toEqual(["close-arena", "close-find", "close-replay", "stop"]);
});

test("keys of a place have one meaning, and none of a global command", () => {
  const everywhere = COMMANDS.flatMap(({ keys = [] }) => keys.map(names));
  for (const [place, keys] of Object.entries(REGION_KEYS)) {
    const own = Object.values<RegionKey>(keys).flatMap((one) => one.keys.map(names));
    expect(new Set(own).size, place).toBe(own.length);
    // Dialogs have the keyboard for themselves; there Esc clears a selection first.
    const shared = own.filter((name) => everywhere.includes(name) && name !== "Esc");
    expect(shared, place).toEqual(place === "settings" ? ["Ctrl F"] : []);
  }
});

test("the shortcuts of controls are in the table, and an unknown one is an error", () => {
  expect(names(keysOf("new-chat"))).toBe("Ctrl N");
  expect(() => keysOf("nothing")).toThrow("no keys");
});

test("Esc closes the arena, then the replay, and only then stops the reply", () => {
  const app = makeAppWithReply();
  expect(commandFor(ESCAPE, app)).toBeUndefined();
  app.reply.active = true;
  expect(commandFor(ESCAPE, app)?.id).toBe("stop");
  app.playback.message = 7;
  expect(commandFor(ESCAPE, app)?.id).toBe("close-replay");
  app.view.arenaOpen = true;
  expect(commandFor(ESCAPE, app)?.id).toBe("close-arena");
});

test("unavailable commands are listed last, with the reason", () => {
  const app = makeApp();
  expect(entry(app, "regenerate")?.obstacle).toBe("There is no reply yet: ask something first.");
  const possible = entriesFor(app, actions, "").map(({ obstacle }) => obstacle === null);
  expect(possible.lastIndexOf(true)).toBeLessThan(possible.indexOf(false));
});

test("without a query commands are listed by group, recent ones first", () => {
  const app = makeAppWithReply();
  for (const id of ["export", "new-chat", "settings", "export", "regenerate"]) app.view.used(id);
  app.reply.active = true;
  const all = entriesFor(app, actions, "");
  const headings = all.map(({ heading }) => heading);
  const titles = headings.filter((heading, at) => heading !== headings[at - 1]);
  expect(new Set(titles).size).toBe(titles.length);
  expect([titles[0], titles.at(-1)]).toEqual(["Recent", "Not available now"]);
  expect(all.slice(0, 2).map(({ id }) => id)).toEqual(["export", "settings"]);
  expect(entry(app, "regenerate")?.heading).toBe("Not available now");
  expect(entry(app, "library")?.heading).toBe("Library");
  expect(entriesFor(app, actions, "chat").every(({ heading }) => heading === null)).toBe(true);
});

test("keys of an unavailable command show the reason and do nothing", () => {
  const app = makeAppWithReply();
  app.reply.active = true;
  const regenerate = vi.fn();
  Object.assign(app.reply, { regenerate });
  runCommand(COMMANDS.find(({ id }) => id === "regenerate") ?? expect.fail(), app, actions);
  expect(regenerate).not.toHaveBeenCalled();
  expect(app.toasts.list.map(({ text }) => text)).toEqual([entry(app, "regenerate")?.obstacle]);
});

test("with a reply all of its commands are available, for the newest one", () => {
  const app = makeAppWithReply();
  const about = ["regenerate", "check", "tokens", "replay", "copy", "export"];
  expect(about.map((id) => entry(app, id)?.obstacle)).toEqual(about.map(() => null));
  const regenerate = vi.fn();
  Object.assign(app.reply, { regenerate });
  app.view.arenaOpen = true;
  entry(app, "regenerate")?.run();
  expect(regenerate).toHaveBeenCalledExactlyOnceWith(7);
  expect(app.view.arenaOpen).toBe(false);
  entry(app, "export")?.run();
  expect(actions.exportTrace).toHaveBeenCalledExactlyOnceWith(REPLY);
});

test("Ctrl+Shift+R answers the newest question if it has no reply", () => {
  const app = makeAppWithReply();
  const regenerate = vi.fn();
  Object.assign(app.reply, { regenerate });
  const keys = { key: "R", code: "KeyR", ctrlKey: true, shiftKey: true };
  const press = () => {
    const command = commandFor(new KeyboardEvent("keydown", keys), app) ?? expect.fail();
    runCommand(command, app, actions);
  };
  app.conversations.messages = [question(5, [5]), REPLY, question(8, [8])];
  press();
  app.conversations.messages = [question(5, [5])];
  press();
  expect(regenerate.mock.calls).toEqual([[8], [5]]);
});

test("while a reply is written it can be stopped, but not checked", () => {
  const app = makeAppWithReply();
  app.reply.active = true;
  expect(entry(app, "check")?.obstacle).toContain("A reply is being written");
  expect(entry(app, "stop")?.obstacle).toBeNull();
  app.reply.active = false;
  expect(entry(app, "stop")).toBeUndefined();
});

test("the last reply can be continued if it was cut and no message follows", () => {
  const app = makeAppWithReply();
  const proceed = vi.fn();
  Object.assign(app.reply, { continue: proceed });
  expect(entry(app, "continue")?.obstacle).toContain("was not cut");
  app.conversations.messages = [cut(7, [7]), question(8, [8])];
  expect(entry(app, "continue")?.obstacle).toContain("was not cut");
  app.conversations.messages = [question(6, [6]), cut(7, [7])];
  expect(entry(app, "continue")?.obstacle).toBeNull();
  entry(app, "continue")?.run();
  expect(proceed).toHaveBeenCalledExactlyOnceWith(7);
});

test("the last question can be edited, unless there is none or a reply is written", () => {
  const app = makeAppWithReply();
  expect(entry(app, "edit")?.obstacle).toContain("You have not sent");
  app.conversations.messages = [question(5, [5]), REPLY, question(8, [8]), REPLY];
  app.view.arenaOpen = true;
  entry(app, "edit")?.run();
  expect(app.view).toMatchObject({ editing: 8, arenaOpen: false });
  app.reply.active = true;
  expect(entry(app, "edit")?.obstacle).toContain("A reply is being written");
});

test("the branch commands act on the last message with siblings", () => {
  const app = makeAppWithReply();
  const choose = vi.fn();
  Object.assign(app.conversations, { choose });
  expect(entry(app, "next-branch")?.obstacle).toContain("No message here has several branches");
  app.conversations.messages = [question(1, [1, 2]), cut(7, [3, 7]), question(8, [8])];
  expect(entry(app, "next-branch")?.obstacle).toBe("This is the last branch.");
  entry(app, "previous-branch")?.run();
  expect(choose).toHaveBeenCalledExactlyOnceWith(3);
  app.conversations.messages = [question(1, [1, 2])];
  expect(entry(app, "previous-branch")?.obstacle).toBe("This is the first branch.");
  entry(app, "next-branch")?.run();
  expect(choose).toHaveBeenLastCalledWith(2);
  app.reply.active = true;
  expect(entry(app, "next-branch")?.obstacle).toContain("A reply is being written");
});

test("the current theme is not offered", () => {
  const app = makeApp();
  expect(named(app, "theme").filter((name) => name.startsWith("Theme:"))).toEqual([
    "Theme: light",
    "Theme: dark",
  ]);
  entry(app, "theme-dark")?.run();
  expect(app.settings.values.appearance.theme).toBe("dark");
  expect(named(app, "theme")).not.toContain("Theme: dark");
});

test("conversations and settings are found by name once something is typed", () => {
  const app = makeAppWithReply();
  expect(named(app, "")).not.toContain("A fox finds a lantern");
  expect(named(app, "lantern fox")[0]).toBe("A fox finds a lantern");
  const temperature = entriesFor(app, actions, "temper")[0];
  expect(temperature).toMatchObject({ name: "Temperature", kind: "Settings: Sampling" });
  temperature?.run();
  expect(app.view).toMatchObject({ settingsOpen: true, settingsSection: "sampling" });
  expect(app.settingSearch.wanted).toBe("temperature");
});

test("a command ranks before one with the word only among others", () => {
  const app = makeAppWithReply();
  expect(named(app, "arena")[0]).toBe("Open or close the arena");
  expect(named(app, "draft model")[0]).toBe("Draft model");
  expect(named(app, "choose draft")[0]).toBe("Choose the draft model");
  expect(named(app, "shortcuts")[0]).toBe("Keyboard shortcuts");
});
