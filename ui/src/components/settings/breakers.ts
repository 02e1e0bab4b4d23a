/** DRY's sequence breakers as one line: separated by spaces, with \n, \t and \s for white space. */
const ESCAPES = [
  ["\\", "\\\\"],
  ["\n", "\\n"],
  ["\t", "\\t"],
  [" ", "\\s"],
] as const;

export function formatBreakers(breakers: readonly string[]): string {
  const escaped = (breaker: string) =>
    ESCAPES.reduce((text, [character, escape]) => text.replaceAll(character, escape), breaker);
  return breakers.map(escaped).join(" ");
}

/** The breakers of a line, without duplicates. */
export function parseBreakers(line: string): string[] {
  const characters = new Map<string, string>(
    ESCAPES.map(([character, escape]) => [escape, character]),
  );
  const plain = (word: string) =>
    word.replace(/\\[\\nts]/g, (escape) => characters.get(escape) ?? escape);
  const words = line.split(/\s+/).filter((word) => word !== "");
  return [...new Set(words.map(plain))];
}
