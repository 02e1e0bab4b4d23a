/** The text view of a block: marks hidden, formulas set, code coloured. */
import { frame, joined } from "./frame";
import { formula } from "./formula";
import { highlighted } from "./highlight";
import { isLeaf, leavesOf, type Branch, type Node } from "./nodes";
import { element, type ElementShape, type Shape } from "./shapes";
import { t } from "../messages/say";

export class TextShapes {
  readonly #text: string;
  readonly #whenHere: () => void;
  readonly #wraps: boolean;

  /** `whenHere` is called when a block could be drawn better than before; `wraps`: no line of code scrolls. */
  constructor(text: string, whenHere: () => void, wraps = false) {
    this.#text = text;
    this.#whenHere = whenHere;
    this.#wraps = wraps;
  }

  /** Null for a block that holds nothing to read. */
  of(branch: Branch): ElementShape | null {
    switch (branch.tag) {
      case "marks":
        return null;
      case "hr":
        return element("hr", undefined, []);
      case "a":
        return this.#link(branch);
      case "code":
        return element("code", undefined, this.#inside(branch.children), { dir: "ltr" });
      case "code-block":
        return this.#code(branch);
      case "formula":
        return this.#formula(branch, "span");
      case "display-formula":
        return this.#formula(branch, "div");
      default:
        return frame(branch, this.#inside(branch.children));
    }
  }

  #inside(nodes: readonly Node[]): Shape[] {
    const shapes = nodes.map((node): Shape => {
      if (!isLeaf(node)) return this.of(node) ?? "";
      if (node.kind !== "text") return "";
      return node.shown ?? this.#text.slice(node.from, node.to);
    });
    return joined(shapes);
  }

  #link({ address, children }: Branch): ElementShape {
    const inside = this.#inside(children);
    if (typeof address !== "string") return element("span", undefined, inside);
    return element("a", undefined, inside, { href: address, "data-tooltip": address });
  }

  #code(branch: Branch): ElementShape {
    const language = branch.language ?? "";
    const shown = language === "" ? "text" : language;
    const wrap = { "aria-pressed": String(this.#wraps), "data-tooltip": t("reply.wrapTitle") };
    const head = [
      element("span", undefined, [shown]),
      button(t("reply.wrap"), { ...wrap, "data-wrap": "code" }),
      button(t("common.copy"), { "data-copy": "code" }),
    ];
    const code = highlighted(this.#read(branch), language, this.#whenHere);
    const text = element("code", undefined, joined(code));
    const block = element("pre", undefined, [text], { dir: "ltr", ...this.#scrolling(shown) });
    return element("div", "code", [element("div", "code-head", head), block]);
  }

  /** What scrolls is a stop of the tab key, so that the arrow keys reach its end. */
  #scrolling(language: string): Readonly<Record<string, string>> {
    if (this.#wraps) return {};
    return { tabindex: "0", role: "group", "aria-label": t("reply.codeIn", { language }) };
  }

  #formula(branch: Branch, tag: "span" | "div"): ElementShape {
    const displayed = branch.tag === "display-formula";
    const leaves = [...leavesOf([branch])].filter(({ kind }) => kind !== "gap");
    const [first, last] = [leaves[0], leaves.at(-1)];
    const source = first && last ? this.#text.slice(first.from, last.to) : "";
    const fill = formula(source, this.#read(branch), displayed, this.#whenHere);
    const name = displayed ? "formula display" : "formula";
    return { tag, class: name, attributes: { dir: "ltr" }, children: [], fill };
  }

  /** The text of a block's own, without marks. */
  #read(branch: Branch): string {
    let text = "";
    for (const { kind, from, to } of leavesOf([branch])) {
      if (kind === "text") text += this.#text.slice(from, to);
    }
    return text;
  }
}

function button(label: string, attributes: Readonly<Record<string, string>>): ElementShape {
  return element("button", undefined, [label], { type: "button", ...attributes });
}
