/** What both views of a reply draw alike: blocks, lists, tables, emphasis. */
import type { Branch } from "./nodes";
import { element, type ElementShape, type Shape } from "./shapes";

/** A list and the like stands on the side where its text begins; lines of text see to themselves. */
const EITHER_WAY = { dir: "auto" };

export function frame(branch: Branch, children: readonly Shape[]): ElementShape {
  const { tag } = branch;
  switch (tag) {
    case "table":
      return element("div", "table", [element("table", undefined, children)], EITHER_WAY);
    case "ul":
      return element(tag, branch.loose ? "loose" : undefined, children, EITHER_WAY);
    case "ol": {
      const start = { start: String(branch.start ?? 1) };
      const attributes = { ...EITHER_WAY, ...start };
      return element(tag, branch.loose ? "loose" : undefined, children, attributes);
    }
    case "blockquote":
      return element(tag, undefined, children, EITHER_WAY);
    case "th":
    case "td":
      return element(tag, undefined, children, branch.align && { "data-align": branch.align });
    default:
      return element(tag, branch.task ? "task" : undefined, children);
  }
}

/** Strings that follow each other become one. */
export function joined(shapes: readonly Shape[]): Shape[] {
  const out: Shape[] = [];
  for (const shape of shapes) {
    const last = out.at(-1);
    if (typeof shape === "string" && typeof last === "string") out[out.length - 1] = last + shape;
    else if (shape !== "") out.push(shape);
  }
  return out;
}
