import { expect, test } from "vitest";
import { sentence } from "./sentence";

test("a sentence begins with a capital", () => {
  expect(sentence("the prompt is too long")).toBe("The prompt is too long");
});

test("a path at the beginning of a sentence is not capitalised", () => {
  expect(sentence("/home/me/broken.gguf is not a model")).toBe(
    "/home/me/broken.gguf is not a model",
  );
});

test("a repository's name at the beginning of a sentence is not capitalised", () => {
  expect(sentence("meta-llama/Llama is gated")).toBe("meta-llama/Llama is gated");
});
