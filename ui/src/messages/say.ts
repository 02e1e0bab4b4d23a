/** Says a message in the language of the page. */
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

/** What the message of a key is given; nothing where it has no placeholders. */
type Given<K extends Key> = [Placeholders<Messages[K]>] extends [never]
  ? []
  : [given: Values<Placeholders<Messages[K]>>];

/** Stands for what is no text in a message: ui/Around.svelte puts that there. */
export const HERE = "\ufffc";

const MESSAGES: Readonly<Record<Locale, Readonly<Record<Key, string>>>> = { en, de };

/** Messages are read once, when they are first said. */
const formats = new Map<string, IntlMessageFormat>();

/**
 * The message, with what it is given in its placeholders: a number where it chooses among the forms of
 * a plural, else text, in which numbers are written already (numbers.ts).
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
