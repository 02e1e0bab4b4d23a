/** Combinations of keys for a global shortcut, such as "control+shift+Space". */
import { nameOf } from "../../commands/keys";
import { t } from "../../messages/say";

/** Modifiers in the order in which they are shown. */
const MODIFIERS = ["control", "alt", "shift", "super"] as const;
type Modifier = (typeof MODIFIERS)[number];

const APPLE_SIGNS: Readonly<Record<Modifier, string>> = {
  control: "⌃",
  alt: "⌥",
  shift: "⇧",
  super: "⌘",
};

/** Whether a key is a modifier alone, which begins a combination. */
export function isModifier({ key }: KeyboardEvent): boolean {
  return ["Control", "Alt", "AltGraph", "Shift", "Meta", "OS", "Super", "Hyper"].includes(key);
}

/**
 * The combination that an event holds; null without a modifier other than Shift, since it would
 * take a letter from every other program.
 */
export function combination(event: KeyboardEvent, apple: boolean): string | null {
  const held = {
    control: event.ctrlKey,
    alt: event.altKey,
    shift: event.shiftKey,
    super: event.metaKey,
  };
  if (!held.control && !held.alt && !held.super) return null;
  return [...MODIFIERS.filter((name) => held[name]), codeOf(event, apple)].join("+");
}

/** Code of the key; except on a Mac, codes of letters mean letters and not places. */
function codeOf({ key, code }: KeyboardEvent, apple: boolean): string {
  return !apple && /^[a-z]$/i.test(key) ? `Key${key.toUpperCase()}` : code;
}

/** Names of a combination's keys, in the system's order. */
export function combinationNames(combination: string, apple: boolean): string[] {
  const held = combination.split("+");
  const code = held.pop() ?? "";
  const key = /^(?:Key|Digit)(.)$/.exec(code)?.[1] ?? nameOf(code === "Space" ? " " : code);
  const names: Record<Modifier, string> = apple
    ? APPLE_SIGNS
    : { control: t("keys.control"), alt: "Alt", shift: t("keys.shift"), super: "Super" };
  return [...MODIFIERS.filter((name) => held.includes(name)).map((name) => names[name]), key];
}
