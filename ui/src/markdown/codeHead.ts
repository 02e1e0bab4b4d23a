/** Head of a code block in both views of a reply: its language and buttons. */
import { element, type ElementShape } from "./shapes";
import { leavesOf, type Branch } from "./nodes";
import { t } from "../messages/say";

/**
 * Attributes `data-preview`, `data-wrap` and `data-copy` mark the buttons; the first and the last
 * are the code's offset in the text. `previewed` is null for a block without a preview.
 */
export function codeHead(
  branch: Branch,
  wraps: boolean,
  previewed: boolean | null = null,
): ElementShape {
  const at = String(beginOf(branch));
  const wrap = { "aria-pressed": String(wraps), "data-tooltip": t("reply.wrapTitle") };
  const preview = { "aria-pressed": String(previewed), "data-tooltip": t("reply.previewTitle") };
  return element("div", "code-head", [
    element("span", undefined, [languageOf(branch)]),
    ...(previewed === null ? [] : [button(t("reply.preview"), { ...preview, "data-preview": at })]),
    button(t("reply.wrap"), { ...wrap, "data-wrap": "code" }),
    button(t("common.copy"), { "data-copy": at }),
  ]);
}

/** Language of a code block; "text" if it has none. */
export function languageOf({ language = "" }: Branch): string {
  return language === "" ? "text" : language;
}

/** The text of a branch without Markdown's marks. */
export function readIn(branch: Branch, text: string): string {
  let read = "";
  for (const { kind, from, to } of leavesOf([branch])) {
    if (kind === "text") read += text.slice(from, to);
  }
  return read;
}

/** The block of code that begins at an offset of the text. */
export function codeAt(branches: readonly Branch[], from: number): Branch | null {
  for (const branch of branches) {
    if (branch.tag === "code-block" && beginOf(branch) === from) return branch;
    const inside = branch.children.filter((node): node is Branch => "tag" in node);
    const found = codeAt(inside, from);
    if (found) return found;
  }
  return null;
}

/** Offset at which a branch begins in the text. */
export function beginOf(branch: Branch): number | undefined {
  for (const { from } of leavesOf([branch])) return from;
  return undefined;
}

function button(label: string, attributes: Readonly<Record<string, string>>): ElementShape {
  return element("button", undefined, [label], { type: "button", ...attributes });
}
