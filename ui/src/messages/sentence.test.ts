import { expect, test } from "vitest";
import { sentence } from "./sentence";

test("a sentence begins with a capital", () => {
  expect(sentence("the prompt is too long")).toBe("The prompt is too long");
});

test("a path that begins a sentence stays the path it is", () => {
  expect(sentence("/home/me/broken.gguf is not a model")).toBe(
    "/home/me/broken.gguf is not a model",
  );
});

test("so does a repository's name", () => {
  expect(sentence("meta-llama/Llama is gated")).toBe("meta-llama/Llama is gated");
});
