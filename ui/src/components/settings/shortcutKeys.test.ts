import { expect, test } from "vitest";
import { combination, combinationNames } from "./shortcutKeys";

const pressed = (init: KeyboardEventInit) => new KeyboardEvent("keydown", init);

test("a combination needs a modifier other than Shift", () => {
  const space = { key: " ", code: "Space" };
  expect(combination(pressed(space), false)).toBeNull();
  expect(combination(pressed({ ...space, shiftKey: true }), false)).toBeNull();
  expect(combination(pressed({ ...space, ctrlKey: true }), false)).toBe("control+Space");
  const all = { ...space, ctrlKey: true, altKey: true, shiftKey: true, metaKey: true };
  expect(combination(pressed(all), false)).toBe("control+alt+shift+super+Space");
});

test("a letter is the one on the keyboard, and on a Mac the place", () => {
  const event = pressed({ key: "z", code: "KeyY", altKey: true });
  expect(combination(event, false)).toBe("alt+KeyZ");
  expect(combination(event, true)).toBe("alt+KeyY");
  const sign = pressed({ key: "ß", code: "Minus", altKey: true });
  expect(combination(sign, false)).toBe("alt+Minus");
});

test("a combination is shown with the system's names", () => {
  expect(combinationNames("control+alt+KeyQ", false)).toEqual(["Ctrl", "Alt", "Q"]);
  expect(combinationNames("shift+super+Digit1", false)).toEqual(["Shift", "Super", "1"]);
  expect(combinationNames("control+super+Space", true)).toEqual(["⌃", "⌘", "Space"]);
  expect(combinationNames("control+F1", false)).toEqual(["Ctrl", "F1"]);
});
