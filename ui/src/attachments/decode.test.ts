import { expect, test } from "vitest";
import { decoded } from "./decode";

const bytes = (...values: number[]) => new Uint8Array(values);
const utf8 = (text: string) => new TextEncoder().encode(text);

test("text is read in UTF-8 with or without a mark, in UTF-16 by its mark, else as windows-1252", () => {
  expect(decoded(utf8("Füchse 🦊\tund\r\nHühner"))).toBe("Füchse 🦊\tund\r\nHühner");
  expect(decoded(bytes(0xef, 0xbb, 0xbf, 0x61))).toBe("a");
  expect(decoded(bytes(0xff, 0xfe, 0x61, 0, 0xe4, 0))).toBe("aä");
  expect(decoded(bytes(0xfe, 0xff, 0, 0x61, 0x04, 0x16))).toBe("aЖ");
  expect(decoded(bytes(0x46, 0xfc, 0x63, 0x68, 0x73, 0x65))).toBe("Füchse");
  expect(decoded(utf8("\u001b[31mred\u001b[0m\f"))).toBe("\u001b[31mred\u001b[0m\f");
  expect(decoded(bytes())).toBe("");
});

test("what is no text is told by zeros, control characters, and marks that promise other bytes", () => {
  const png = bytes(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d);
  expect(decoded(png)).toBeNull();
  expect(decoded(utf8("a\0b"))).toBeNull();
  expect(decoded(bytes(0x61, 0x01, 0x02, 0xff, 0x10))).toBeNull();
  expect(decoded(bytes(0xff, 0xfe, 0x00, 0xd8))).toBeNull();
  expect(decoded(bytes(0xff, 0xfe, 0x61, 0, 0, 0))).toBeNull();
  expect(decoded(bytes(0xef, 0xbb, 0xbf, 0xff))).toBeNull();
  // Every byte equally often, as in what is packed or encrypted, but for zeros.
  const noise = Uint8Array.from({ length: 5000 }, (_, at) => 1 + ((at * 7919) % 255));
  expect(decoded(noise)).toBeNull();
  expect(decoded(utf8(`${"a line of a log\n".repeat(100)}\u0007`))).not.toBeNull();
});
