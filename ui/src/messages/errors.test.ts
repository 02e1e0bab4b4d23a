import { afterEach, expect, test } from "vitest";
import { errorWords } from "./errors";
import { showLanguage } from "./locale.svelte";

afterEach(() => showLanguage("en"));

test("an error is quoted in English and follows its kind in German", () => {
  const error = { code: "bad_model", message: "It is torn." } as const;
  expect(errorWords(error)).toBe("It is torn.");
  showLanguage("de");
  expect(errorWords(error)).toBe("Das Modell lässt sich nicht verwenden: It is torn.");
});

test("a message that is too long is told with its size", () => {
  const error = { code: "message_too_long", message: "", prompt: { tokens: 1200, context: 1024 } };
  expect(errorWords({ ...error, code: "message_too_long" })).toContain("1,200 of 1,024 tokens");
});
