import { expect, test } from "vitest";
import { keyNames, pressed, type Keys } from "./keys";

const event = (key: string, more: KeyboardEventInit = {}) =>
  new KeyboardEvent("keydown", { key, ...more });
const NEW: Keys = { key: "N", command: true };

test("the command key is Ctrl, and Cmd on a Mac", () => {
  expect(pressed(event("n", { ctrlKey: true }), [NEW], false)).toBe(true);
  expect(pressed(event("n", { metaKey: true }), [NEW], false)).toBe(false);
  expect(pressed(event("n", { metaKey: true }), [NEW], true)).toBe(true);
  expect(pressed(event("n", { ctrlKey: true }), [NEW], true)).toBe(false);
});

test("a letter with other modifiers is another shortcut", () => {
  const ctrl = { ctrlKey: true };
  expect(pressed(event("n"), [NEW], false)).toBe(false);
  expect(pressed(event("N", { ...ctrl, shiftKey: true }), [NEW], false)).toBe(false);
  expect(pressed(event("n", { ...ctrl, altKey: true }), [NEW], false)).toBe(false);
  const shifted = [{ ...NEW, shift: true }];
  expect(pressed(event("N", { ...ctrl, shiftKey: true }), shifted, false)).toBe(true);
  expect(pressed(event("n", ctrl), shifted, false)).toBe(false);
});

test("a sign is recognised at any place of the keyboard, with Shift or without", () => {
  for (const shiftKey of [true, false]) {
    expect(pressed(event("?", { shiftKey }), [{ key: "?" }], false)).toBe(true);
    const slash = event("/", { shiftKey, ctrlKey: true });
    expect(pressed(slash, [{ key: "/", command: true }], false)).toBe(true);
  }
});

test.each([
  ["Russian", "т", "KeyN", "N"],
  ["Greek", "ν", "KeyN", "N"],
  ["Hebrew", "מ", "KeyN", "N"],
  ["Arabic", "ى", "KeyN", "N"],
  ["Russian", "б", "Comma", ","],
])("on a %s keyboard %s is the shortcut at that place", (_, key, code, latin) => {
  const keys = [{ key: latin, command: true }];
  expect(pressed(event(key, { code, ctrlKey: true }), keys, false)).toBe(true);
  expect(pressed(event(key, { code: "KeyX", ctrlKey: true }), keys, false)).toBe(false);
});

test("on Latin keyboards of another layout the letter counts and not its place", () => {
  const dvorak = { code: "KeyL", ctrlKey: true };
  expect(pressed(event("n", dvorak), [NEW], false)).toBe(true);
  expect(pressed(event("n", dvorak), [{ key: "L", command: true }], false)).toBe(false);
  expect(pressed(event("é", { code: "KeyN", ctrlKey: true }), [NEW], false)).toBe(false);
});

test("Shift with Enter or Space is not Enter or Space", () => {
  expect(pressed(event("Enter", { shiftKey: true }), [{ key: "Enter" }], false)).toBe(false);
  expect(pressed(event(" ", { shiftKey: true }), [{ key: " " }], false)).toBe(false);
  expect(pressed(event("Enter"), [{ key: "Enter" }], false)).toBe(true);
});

test("keys have this system's names and order", () => {
  const keys = { key: "T", command: true, shift: true };
  expect(keyNames(keys, false)).toEqual(["Ctrl", "Shift", "T"]);
  expect(keyNames(keys, true)).toEqual(["⇧", "⌘", "T"]);
  expect(keyNames({ key: "ArrowLeft" }, false)).toEqual(["←"]);
  expect(keyNames({ key: "Escape" }, true)).toEqual(["Esc"]);
});
