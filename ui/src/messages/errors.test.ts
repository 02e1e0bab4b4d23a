import { afterEach, expect, test } from "vitest";
import { engineWords, errorWords } from "./errors";
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

test("a problem of the engine is worded by the page, with the error's detail as recorded", () => {
  const detail = "there is no file at /a.gguf.";
  const error = { kind: "error", code: "bad_model", detail } as const;
  expect(engineWords(error)).toBe("There is no file at /a.gguf.");
  showLanguage("de");
  expect(engineWords(error)).toBe(
    "Das Modell lässt sich nicht verwenden: There is no file at /a.gguf.",
  );
  expect(engineWords({ kind: "shorter_context", tokens: 2048 })).toContain("höchstens 2.048 Token");
  const remark = { kind: "failed", role: "draft" } as const;
  expect(engineWords({ kind: "device", remark })).toBe(
    "Das Draft-Modell läuft auf der CPU, weil es auf der GPU fehlgeschlagen ist.",
  );
});
