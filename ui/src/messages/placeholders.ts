/**
 * What a message has to be given, read by the type checker from its text in ICU MessageFormat:
 * "Deleted “{title}”" needs a text, "{count, plural, one {# reply} other {# replies}}" a number.
 */

/** The placeholders with what belongs into them: a number where a plural is chosen by it, else a text. */
export type Values<Placeholder extends string> = {
  [P in Placeholder as NameOf<P>]: P extends `${string}, plural` ? number : string;
};

type NameOf<Placeholder extends string> = Placeholder extends `${infer Name}, ${string}`
  ? Name
  : Placeholder;

/** What is in braces, but for the forms of a plural: "title", "count, plural". */
export type Placeholders<Message extends string> = InText<Message, []>;

/** One more for every form of a plural that is open. */
type Open = readonly unknown[];

/** In words a brace begins a placeholder or ends the form of a plural. */
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

/** Between the forms of a plural a brace begins the next one, or ends the plural. */
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
