import { beforeEach, expect, test } from "vitest";
import { Panels } from "./panels.svelte";
import { Settings } from "./settings.svelte";

let settings: Settings;
let panels: Panels;

beforeEach(() => {
  settings = new Settings({} as never, () => undefined);
  panels = new Panels(settings);
  panels.resize(1280);
});

const open = () => settings.values.appearance;

test("in a wide window a panel is a column, and the settings remember whether it is open", () => {
  expect(panels.isOpen("inspector")).toBe(true);
  panels.toggle("inspector");
  expect(open().inspector_open).toBe(false);
  expect(panels.isOpen("inspector")).toBe(false);
  panels.show("inspector");
  expect(open().inspector_open).toBe(true);
});

test("in a narrow window a panel is closed at first and lies over the conversation, settings untouched", () => {
  panels.resize(1099);
  expect(panels.isOpen("inspector")).toBe(false);
  expect(panels.isOpen("sidebar")).toBe(true);
  panels.show("inspector");
  expect(panels.over).toBe("inspector");
  panels.hide("inspector");
  expect(panels.isOpen("inspector")).toBe(false);
  expect(open().inspector_open).toBe(true);
});

test("below 800 px both lie over the conversation, one at a time", () => {
  panels.resize(799);
  panels.show("inspector");
  panels.show("sidebar");
  expect(panels.isOpen("inspector")).toBe(false);
  expect(panels.isOpen("sidebar")).toBe(true);
});

test("a window that becomes wide enough has columns again, and no panel over the conversation", () => {
  panels.resize(700);
  panels.show("sidebar");
  panels.resize(900);
  expect(panels.over).toBeNull();
  panels.resize(700);
  expect(panels.isOpen("sidebar")).toBe(false);
});
