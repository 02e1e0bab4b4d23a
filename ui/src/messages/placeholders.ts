/**
 * Types of a message's placeholders, parsed by the type checker from ICU MessageFormat: "Deleted
 * “{title}”" needs a text, "{count, plural, one {# reply} other {# replies}}" a number.
 */

/** Values by placeholder: a number if it selects a plural, else a text. */
export type Values<Placeholder extends string> = {
  [P in Placeholder as NameOf<P>]: P extends `${string}, plural` ? number : string;
};

type NameOf<Placeholder extends string> = Placeholder extends `${infer Name}, ${string}`
  ? Name
  : Placeholder;

/** Placeholders in a message, including those in plural forms: "title", "count, plural". */
export type Placeholders<Message extends string> = InText<Message, []>;

/** Stack of open plural forms, one element each. */
type Open = readonly unknown[];

/** Parses text: a brace begins a placeholder or ends a plural form. */
type InText<
  Rest extends string,
  Around extends Open,
> = Rest extends `${infer Before}{${infer After}`
  ? Before extends `${string}}${string}`
    ? FormEnd<Rest, Around>
    : Begun<After, Around>
  : FormEnd<Rest, Around>;

type Begun<Rest extends string, Around extends Open> = Rest extends `${infer Inside}}${infer After}`
  ? Inside extends `${infer Name}, plural, ${string}{${string}`
    ? | `${Name}, plural`
      | (Rest extends `${Name}, plural, ${infer Forms}` ? InPlural<Forms, Around> : never)
    : Inside | InText<After, Around>
  : never;

type FormEnd<Rest extends string, Around extends Open> = Rest extends `${string}}${infer After}`
  ? Around extends readonly [unknown, ...infer Outer]
    ? InPlural<After, Outer>
    : never
  : never;

/** Parses a plural between its forms: a brace begins the next form or ends the plural. */
type InPlural<
  Rest extends string,
  Around extends Open,
> = Rest extends `${infer Before}{${infer After}`
  ? Before extends `${string}}${string}`
    ? PluralEnd<Rest, Around>
    : InText<After, [...Around, unknown]>
  : PluralEnd<Rest, Around>;

type PluralEnd<Rest extends string, Around extends Open> = Rest extends `${string}}${infer After}`
  ? InText<After, Around>
  : never;
