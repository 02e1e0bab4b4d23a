/** Random changes of a trace file for tests, reproducible by their seed. */

export type Random = () => number;

/** Random numbers from 0 to 1 by a linear congruential generator. */
export function randomFrom(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Markup that would run if it were treated as more than text. */
export const MARKUP =
  '<img src=x onerror="window.harmed = true"><script>window.harmed = true</script>';

const SIGNS = [
  '"',
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  "\n",
  "\\",
  "0",
  "9",
  "-",
  "e",
  "\u0000",
  "\ud83d",
];
const VALUES = [null, true, -1, 0, 0.5, 2, 1e9, 1e308, "", "x", MARKUP, "\ud83d", [], {}, [[]]];

function pick<Item>(items: readonly Item[], random: Random): Item {
  return items[Math.floor(random() * items.length)] as Item;
}

/** Changes some characters, as a failing disk would. */
export function scratch(text: string, random: Random): string {
  const at = Math.floor(random() * text.length);
  const kind = random();
  if (kind < 0.2) return text.slice(0, at);
  const length = kind < 0.4 ? Math.floor(random() * 200) : 1;
  const instead = kind < 0.6 ? "" : pick(SIGNS, random);
  return text.slice(0, at) + instead + text.slice(at + length);
}

/** Replaces a value in one line, or moves lines, as another program might. */
export function rewrite(text: string, random: Random): string {
  const lines = text.split("\n");
  const at = Math.floor(random() * lines.length);
  if (random() < 0.15) return lines.toSpliced(at, 1, ...lines.slice(0, 2)).join("\n");
  const value: unknown = JSON.parse(lines[at] ?? "");
  lines[at] = JSON.stringify(replaced(value, random));
  return lines.join("\n");
}

function replaced(value: unknown, random: Random): unknown {
  const inner = typeof value === "object" && value !== null ? Object.entries(value) : [];
  if (inner.length === 0 || random() < 0.05) return pick(VALUES, random);
  const [key, held] = pick(inner, random) as [string, unknown];
  const changed: unknown = replaced(held, random);
  if (Array.isArray(value)) {
    return value.map((old: unknown, index) => (String(index) === key ? changed : old));
  }
  return random() < 0.1
    ? Object.fromEntries(inner.filter(([name]) => name !== key))
    : { ...(value as object), [key]: changed };
}
