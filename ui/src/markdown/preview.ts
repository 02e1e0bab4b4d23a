/** Previews of code blocks with HTML or SVG: pages without scripts and without network. */
import { leavesOf, type Branch } from "./nodes";
import type { Fill } from "./shapes";
import { t } from "../messages/say";

/** Addresses of open previews, by the offset of their block. */
export type Previews = ReadonlyMap<number, string>;

const LANGUAGES: readonly string[] = ["html", "htm", "xhtml", "svg"];

/** Longest code with a preview, in characters. */
export const LONGEST_PREVIEW = 1_000_000;

/**
 * Whether a block has a preview: with its closing fence only, as a part of a page is another page.
 */
export function isPreviewable(branch: Branch): boolean {
  if (!LANGUAGES.includes(branch.language?.toLowerCase() ?? "")) return false;
  const kinds = [...leavesOf([branch])].map(({ kind }) => kind).filter((kind) => kind !== "gap");
  return kinds.length > 1 && kinds.at(-1) === "syntax" && kinds.includes("text");
}

/** The frame's sandbox allows nothing, and its document has the shell's policy and its own. */
export function previewFrame(address: string): Fill {
  return {
    key: address,
    draw(into) {
      const frame = document.createElement("iframe");
      frame.setAttribute("sandbox", "");
      frame.referrerPolicy = "no-referrer";
      frame.title = t("reply.preview");
      frame.src = address;
      into.append(frame);
    },
  };
}
