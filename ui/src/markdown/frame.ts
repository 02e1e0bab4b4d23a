/** Shapes shared by both views of a reply: blocks, lists, tables, emphasis. */
import type { Branch } from "./nodes";
import { element, type ElementShape, type Shape } from "./shapes";

/** Direction of lists and tables by their first text; lines have their own direction in CSS. */
const EITHER_WAY = { dir: "auto" };

export function frame(branch: Branch, children: readonly Shape[]): ElementShape {
  const { tag } = branch;
  const continued = branch.continued && "continued";
  switch (tag) {
    case "table":
      return element(
        "div",
        names("table", continued),
        [element("table", undefined, children)],
        EITHER_WAY,
      );
    case "ul":
      return element(tag, names(branch.loose && "loose", continued), children, EITHER_WAY);
    case "ol": {
      const start = { start: String(branch.start ?? 1) };
      const attributes = { ...EITHER_WAY, ...start };
      return element(tag, names(branch.loose && "loose", continued), children, attributes);
    }
    case "blockquote":
      return element(tag, names(continued), children, EITHER_WAY);
    case "th":
    case "td":
      return element(tag, undefined, children, branch.align && { "data-align": branch.align });
    default:
      return element(tag, names(branch.task && "task", continued), children);
  }
}

function names(...all: (string | false | undefined)[]): string | undefined {
  return all.filter(Boolean).join(" ") || undefined;
}

/** Merges consecutive strings. */
export function joined(shapes: readonly Shape[]): Shape[] {
  const out: Shape[] = [];
  for (const shape of shapes) {
    const last = out.at(-1);
    if (typeof shape === "string" && typeof last === "string") out[out.length - 1] = last + shape;
    else if (shape !== "") out.push(shape);
  }
  return out;
}
