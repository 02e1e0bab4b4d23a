import { expect, test, vi } from "vitest";

test("a system without a language uses English", async () => {
  vi.stubGlobal("navigator", { language: "C" });
  expect(() => new Intl.NumberFormat(navigator.language)).toThrow(RangeError);
  await import("./language");
  expect(navigator.language).toBe("en");
});
