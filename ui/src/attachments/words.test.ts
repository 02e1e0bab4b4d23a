import { expect, test } from "vitest";
import { encodingWords } from "./words";

test("encodings have their usual spelling", () => {
  const words = encodingWords().map(({ words }) => words);
  for (const name of ["Windows-1252", "ISO 8859-2", "KOI8-R", "GB18030", "Big5", "Shift JIS"])
    expect(words.some((shown) => shown.endsWith(` (${name})`))).toBe(true);
  expect(words).toContain("Japanese (EUC-JP)");
});
