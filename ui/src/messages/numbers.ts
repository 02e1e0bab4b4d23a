/** Numbers, dates and lists in the page's language. */
import { locale } from "./locale.svelte";

/** Cache of formats: creating one takes longer than a hundred uses. */
const numbers = new Map<string, Intl.NumberFormat>();
const months = new Map<string, Intl.DateTimeFormat>();

/** "1,234", "1.234": at most `digits` decimals. */
export function count(value: number, digits = 0): string {
  return format(value, 0, digits);
}

/** "2.10", "2,10": always `digits` decimals. */
export function decimal(value: number, digits: number): string {
  return format(value, digits, digits);
}

/** "6.4", "34", "8,300": two significant digits. */
export function significant(value: number): string {
  return count(Number(value.toPrecision(2)), value < 10 ? 1 : 0);
}

/** "81%", "81 %"; a no-break space keeps the German sign with its number. */
export function percent(share: number): string {
  return `${count(share * 100)}${locale() === "de" ? "\u00a0" : ""}%`;
}

/** "12 Mar 2026, 14:05", "12.03.2026, 14:05"; `at` in milliseconds since 1970. */
export function date(at: number): string {
  const spoken = locale() === "en" ? "en-GB" : locale();
  return new Intl.DateTimeFormat(spoken, { dateStyle: "medium", timeStyle: "short" }).format(at);
}

/** "14:05:09"; `at` in milliseconds since 1970. */
export function clock(at: number): string {
  const spoken = locale() === "en" ? "en-GB" : locale();
  return new Intl.DateTimeFormat(spoken, { timeStyle: "medium" }).format(at);
}

/** "March 2026", "März 2026"; `at` in milliseconds since 1970. */
export function monthName(at: number): string {
  const known = months.get(locale());
  const format = known ?? new Intl.DateTimeFormat(locale(), { month: "long", year: "numeric" });
  if (!known) months.set(locale(), format);
  return format.format(at);
}

/** "A, B and C", "A, B und C". */
export function list(parts: readonly string[]): string {
  return new Intl.ListFormat(locale() === "en" ? "en-GB" : locale()).format(parts);
}

function format(value: number, least: number, most: number): string {
  const name = `${locale()} ${least} ${most}`;
  let known = numbers.get(name);
  if (!known) {
    known = new Intl.NumberFormat(locale(), {
      minimumFractionDigits: least,
      maximumFractionDigits: most,
    });
    numbers.set(name, known);
  }
  return known.format(value);
}

/** "2.4e-7", "2,4e-7": two significant digits of a very small number. */
export function scientific(value: number): string {
  const [digits = "", exponent = ""] = value.toExponential(1).split("e");
  return `${decimal(Number(digits), 1)}e${exponent}`;
}
