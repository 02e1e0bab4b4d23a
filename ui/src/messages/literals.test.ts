import { parse } from "svelte/compiler";
import { expect, test } from "vitest";
import { en } from "./en";

/**
 * All sources except tests and fixtures, recordings, the markup of previews, prompts for small
 * models in English, and details of faulty trace files, which are for developers and follow a
 * translated sentence.
 */
const sources = import.meta.glob<string>(
  [
    "../**/*.{ts,svelte}",
    "!../**/*.test.ts",
    "!../**/*{F,f}ixture{s,}.ts",
    "!../{bindings,messages,backend}/**",
    "!../markdown/{samples,sealed}.ts",
    "!../components/conversation/suggestions.ts",
    "!../trace/{synthetic,file/mutate}.ts",
    "!../trace/file/{problem,read,schema}.ts",
  ],
  { query: "?raw", import: "default", eager: true },
);

const EXCEPTIONS = new Set([
  // Names, and words that are equal in all languages.
  ...["Foretoken", "English", "Deutsch", "ms", "hf_…", "Alt", "foretoken --quick"],
  ...["/home/me/models/model.gguf", "http://192.168.1.5:8000/v1", "http://localhost:8080"],
  "https://huggingface.co",
  // Texts for the browser.
  ...["(prefers-reduced-motion: reduce)", "(prefers-color-scheme: dark)", "formula display"],
  ...["input, textarea, select", "input, textarea, button", "button, a, label, summary"],
  "input, textarea, select, [contenteditable], canvas",
  "input, textarea, [contenteditable]",
  '"Inter Variable", system-ui, sans-serif',
  '"JetBrains Mono Variable", ui-monospace, monospace',
]);

/** Attributes and properties whose texts are shown. */
const READ = new Set(
  `data-tooltip alt aria-label aria-roledescription aria-valuetext caption description explanation heading label
  none note placeholder question title words yes no`.split(/\s+/),
);

const WORDS = /\p{L}{2,}[.,:;…]? \(?\p{L}/u;
const LETTERS = /\p{L}{2}/u;

type Node = Record<string, unknown> & { type: string };

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

/** All texts of a file that may be shown. */
function textsOf(path: string, source: string): string[] {
  const page = path.endsWith(".svelte") ? source : `<script lang="ts">${source}</script>`;
  const found: string[] = [];
  const walk = (node: unknown, read: boolean) => {
    if (Array.isArray(node)) {
      for (const one of node) walk(one, read);
      return;
    }
    if (!isNode(node)) return;
    if (
      /^TS(?!As|Satisfies|NonNull)|^(Import|ExportAll|Comment|Svelte|StyleDirective)/.test(
        node.type,
      )
    )
      return;
    // Errors of the page itself are for developers.
    if (node.type === "ThrowStatement" || node.type === "Comment") return;
    if (node.type === "Text" && LETTERS.test(String(node["data"])) && read) {
      found.push(String(node["data"]).trim());
    }
    if (node.type === "Literal" && typeof node["value"] === "string") {
      const { value } = node;
      if (WORDS.test(value) || (read && LETTERS.test(value))) found.push(value);
    }
    if (node.type === "TemplateElement") {
      const { cooked } = node["value"] as { cooked: string };
      if (WORDS.test(cooked) || (read && LETTERS.test(cooked))) found.push(cooked);
    }
    const name = node.type === "Attribute" ? String(node["name"]) : nameOf(node["key"]);
    const inside = node.type === "Attribute" || node.type === "Property" ? READ.has(name) : read;
    for (const [key, value] of Object.entries(node)) {
      if (key === "key" || key === "metadata" || key === "css") continue;
      const isCall = node.type === "CallExpression" || node.type === "BinaryExpression";
      walk(value, key === "fragment" ? true : isCall ? false : inside);
    }
  };
  walk(parse(page, { modern: true }), false);
  return found;
}

function nameOf(key: unknown): string {
  return isNode(key) ? String(key["name"] ?? key["value"]) : "";
}

test("all texts of the page are in the messages", () => {
  const outside = Object.entries(sources).flatMap(([path, source]) =>
    textsOf(path, source)
      .filter((text) => !EXCEPTIONS.has(text) && !(text in en))
      .map((text) => `${path}: ${text}`),
  );
  expect(outside).toEqual([]);
});

test("texts outside of the messages are found", () => {
  const found = textsOf(
    "Some.svelte",
    `<script lang="ts">import x from "a b c"; const words = "Two words"; const y = { label: "One" };</script>
    <p title="Rest" class="big box">Plain {z ? "a" : "b"}</p>{#if x}<b aria-label="Heard {x}"></b>{/if}`,
  );
  expect(found).toEqual(["Rest", "Plain", "Heard", "Two words", "One"]);
});
