/** Formats messages in the page's language. */
import { IntlMessageFormat } from "intl-messageformat";
import { de } from "./de";
import { en } from "./en";
import { locale, type Locale } from "./locale.svelte";
import type { Placeholders, Values } from "./placeholders";

type Messages = typeof en;
export type Key = keyof Messages;

/** Whether a message has this key. */
export function isKey(key: string): key is Key {
  return key in en;
}

/** Arguments of a message; none without placeholders. */
type Given<K extends Key> = [Placeholders<Messages[K]>] extends [never]
  ? []
  : [given: Values<Placeholders<Messages[K]>>];

/** Placeholder for an element inside a message, inserted by ui/Around.svelte. */
export const HERE = "\ufffc";

const MESSAGES: Readonly<Record<Locale, Readonly<Record<Key, string>>>> = { en, de };

/** Cache of parsed messages. */
const formats = new Map<string, IntlMessageFormat>();

/**
 * Formats a message with values for its placeholders: a number where it selects a plural, else
 * text. Numbers in texts are formatted before (numbers.ts).
 */
export function t<K extends Key>(key: K, ...[given]: Given<K>): string {
  const [spoken, message] = [locale(), MESSAGES[locale()][key]];
  if (given === undefined) return message;
  return String(formatOf(spoken, message).format(given));
}

function formatOf(spoken: Locale, message: string): IntlMessageFormat {
  const name = `${spoken} ${message}`;
  const known = formats.get(name);
  if (known) return known;
  const format = new IntlMessageFormat(message, spoken, undefined, { ignoreTag: true });
  formats.set(name, format);
  return format;
}
