import { IntlMessageFormat } from "intl-messageformat";
import { describe, expect, test } from "vitest";
import { de } from "./de";
import { en } from "./en";
import { LOCALES, type Locale } from "./locale.svelte";

const MESSAGES: Record<Locale, Record<string, string>> = { en, de };
const OTHERS = LOCALES.filter((locale) => locale !== "en");

const sources = Object.values(
  import.meta.glob<string>(["../**/*.{ts,svelte}", "!../**/*.test.ts", "!./{en,de}/**"], {
    query: "?raw",
    import: "default",
    eager: true,
  }),
).join("\n");

type Element = ReturnType<IntlMessageFormat["getAst"]>[number];

function elementsOf(message: string, locale: Locale): Element[] {
  return new IntlMessageFormat(message, locale, undefined, { ignoreTag: true }).getAst();
}

/** All plural forms of a message, one after the other. */
function within(elements: readonly Element[]): Element[] {
  return elements.flatMap((element) => [
    element,
    ...("options" in element
      ? Object.values(element.options).flatMap(({ value }) => within(value))
      : []),
  ]);
}

/** Whether an element is a placeholder other than a plural; plain text has type 0. */
function isArgument(element: Element): element is Element & { value: string } {
  return Number(element.type.toString()) === 1;
}

function placeholders(message: string, locale: Locale): string[] {
  const named = within(elementsOf(message, locale)).flatMap((element): string[] => {
    if ("options" in element) return [`${element.value}, plural`];
    return isArgument(element) ? [element.value] : [];
  });
  return [...new Set(named)].sort();
}

describe.each(OTHERS)("the messages in %s", (locale) => {
  const messages = MESSAGES[locale];

  test("are those in English, in the same order", () => {
    expect(Object.keys(messages)).toEqual(Object.keys(en));
  });

  test("have the same placeholders as those in English", () => {
    for (const [key, message] of Object.entries(en)) {
      const translated = placeholders(messages[key] ?? "", locale);
      expect(translated, key).toEqual(placeholders(message, "en"));
    }
  });

  test("are translated: no sentence is the English one", () => {
    const sentences = Object.entries(en).filter(([, message]) => /\w+ \w+ \w+/.test(message));
    const same = sentences.filter(([key, message]) => messages[key] === message);
    expect(same).toEqual([]);
  });
});

test.each(LOCALES)("every plural in %s has all forms of the language, and no others", (locale) => {
  const forms = [...new Intl.PluralRules(locale).resolvedOptions().pluralCategories].sort();
  for (const [key, message] of Object.entries(MESSAGES[locale])) {
    for (const element of within(elementsOf(message, locale))) {
      if ("options" in element) expect(Object.keys(element.options).sort(), key).toEqual(forms);
    }
  }
});

test.each(LOCALES)("no message in %s is empty or has white space at its ends", (locale) => {
  const odd = Object.entries(MESSAGES[locale]).filter(([, message]) => message.trim() !== message);
  expect(odd).toEqual([]);
  expect(Object.values(MESSAGES[locale])).not.toContain("");
});

test("every message is used", () => {
  const patterns = [...sources.matchAll(/`([\w.-]+\.(?:[\w.-]|\$\{[^}]*\})*)`/g)].map(
    ([, written = ""]) =>
      new RegExp(`^${written.replaceAll(".", "\\.").replace(/\$\{[^}]*\}/g, "[\\w-]+")}$`),
  );
  const unsaid = Object.keys(en).filter(
    (key) =>
      !sources.includes(`"${key}"`) &&
      !sources.includes(`'${key}'`) &&
      !patterns.some((pattern) => pattern.test(key)),
  );
  expect(unsaid).toEqual([]);
});
