import { expect, test } from "vitest";
import { defaults } from "../../bindings/defaults";
import { formatBreakers, parseBreakers } from "./breakers";

test("sequence breakers are written in one line and read back", () => {
  expect(formatBreakers(defaults.sampling.dry_sequence_breakers)).toBe('\\n : " *');
  for (const breakers of [["\n", ":", '"', "*"], ["a b", "\t"], ["\\n", "\\"], ["\\\n"], []])
    expect(parseBreakers(formatBreakers(breakers))).toEqual(breakers);
});

test("spaces between breakers and duplicates are ignored", () => {
  expect(parseBreakers("  :   \\n : ")).toEqual([":", "\n"]);
});
