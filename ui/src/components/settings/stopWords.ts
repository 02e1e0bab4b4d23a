/** Stop words as lines of a field: \n and \t stand for white space, \\ for a backslash. */
const PLAIN: Readonly<Record<string, string>> = { "\\n": "\n", "\\t": "\t", "\\\\": "\\" };
const ESCAPED: Readonly<Record<string, string>> = { "\n": "\\n", "\t": "\\t", "\\": "\\\\" };

export function formatStopWords(words: readonly string[]): string {
  return words
    .map((word) => word.replace(/[\n\t\\]/g, (letter) => ESCAPED[letter] ?? letter))
    .join("\n");
}

/** The words of the lines that are not empty, without duplicates. */
export function parseStopWords(lines: string): string[] {
  const plain = (line: string) => line.replace(/\\[nt\\]/g, (escape) => PLAIN[escape] ?? escape);
  return [
    ...new Set(
      lines
        .split("\n")
        .filter((line) => line !== "")
        .map(plain),
    ),
  ];
}
