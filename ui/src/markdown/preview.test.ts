import { expect, test } from "vitest";
import { beginOf, codeAt, readIn } from "./codeHead";
import { ReplyDocument } from "./document";
import { isLeaf, type Branch } from "./nodes";
import { isPreviewable } from "./preview";
import { sealed } from "./sealed";

function blocksOf(text: string, whole = true) {
  const reply = new ReplyDocument();
  reply.update(text, whole);
  return reply.answer.map(({ branch }) => branch);
}
const previewable = (text: string, whole = true) => blocksOf(text, whole).filter(isPreviewable);
/** The code blocks in a branch. */
function codeIn(branch: Branch): Branch[] {
  if (branch.tag === "code-block") return [branch];
  return branch.children.flatMap((node) => (isLeaf(node) ? [] : codeIn(node)));
}

test("closed blocks of HTML and SVG have a preview, others have none", () => {
  for (const language of ["html", "HTML", "htm", "svg"]) {
    expect(previewable(`\`\`\`${language}\n<b>\n\`\`\``), language).toHaveLength(1);
  }
  for (const language of ["", "xml", "js", "htmlx", "text"]) {
    expect(previewable(`\`\`\`${language}\n<b>\n\`\`\``), language).toHaveLength(0);
  }
  expect(previewable("    <b>indented</b>")).toHaveLength(0);
  expect(previewable("~~~html\n<b>\n~~~\n\nafter")).toHaveLength(1);
});

test("no block has a preview before its closing fence, nor one that was cut or is empty", () => {
  const text = "```html\n<b>bold</b>\n<i>\n```\n\nafter";
  const closed = text.indexOf("```\n\nafter") + 3;
  for (let end = 0; end < closed; end += 1) {
    expect(previewable(text.slice(0, end), false), text.slice(0, end)).toHaveLength(0);
    expect(previewable(text.slice(0, end)), text.slice(0, end)).toHaveLength(0);
  }
  expect(previewable(text, false)).toHaveLength(1);
  expect(previewable("```html\n```")).toHaveLength(0);
});

test("a long block, and one in a list, have one preview of all of their code", () => {
  const code = "<p>a line of a long page</p>\n".repeat(3000);
  const text = `1. See:\n\n   \`\`\`svg\n   <svg/>\n   \`\`\`\n\nwords\n\n\`\`\`html\n${code}\`\`\`\n`;
  const found = blocksOf(text).flatMap(codeIn).filter(isPreviewable);
  expect(found.map((block) => readIn(block, text).trim())).toEqual(["<svg/>", code.trim()]);
  for (const block of found) {
    expect(codeAt(blocksOf(text), beginOf(block) ?? -1)?.language).toBe(block.language);
  }
});

const HOSTILE = [
  "<!doctype html><html><head></head><body>x",
  '<meta http-equiv="Content-Security-Policy" content="default-src *">',
  "</head></html><!-- ",
  "<!--",
  "<plaintext>",
  "<title>",
  "<script>",
  '<base href="https://evil.example/">',
  '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
  '"></iframe><script>alert(1)</script>',
  "\0<",
  "<frameset>",
];

test.each(HOSTILE)("the policy comes first and whole, whatever the code is: %j", (code) => {
  const page = new DOMParser().parseFromString(sealed(code), "text/html");
  const [charset, policy] = page.head.querySelectorAll("meta");
  expect(charset?.getAttribute("charset")).toBe("utf-8");
  expect(policy?.httpEquiv).toBe("Content-Security-Policy");
  expect(policy?.content).toMatch(/^default-src 'none'; .*base-uri 'none'; form-action 'none'$/);
  expect(policy?.content).not.toMatch(/script-src|connect-src|https?:|\*|'self'/);
  expect(page.querySelector("meta, base, script, frameset")).toBe(charset);
});
