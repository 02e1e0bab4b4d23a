/** Text view of a block: hidden marks, typeset formulas, highlighted code. */
import { beginOf, codeHead, languageOf, readIn } from "./codeHead";
import { frame, joined } from "./frame";
import { formula } from "./formula";
import { highlighted } from "./highlight";
import { isLeaf, leavesOf, type Branch, type Node } from "./nodes";
import { isPreviewable, previewFrame, type Previews } from "./preview";
import { plainBlocks } from "./section";
import { element, type ElementShape, type Shape } from "./shapes";
import { t } from "../messages/say";

export class TextShapes {
  readonly #text: string;
  readonly #onReady: () => void;
  readonly #wraps: boolean;
  readonly #previews: Previews | null;
  #formulas = 0;

  /**
   * `onReady` is called when highlighting or formulas become available; `wraps` wraps lines of
   * code. Without `previews`, no block has one.
   */
  constructor(text: string, onReady: () => void, wraps = false, previews: Previews | null = null) {
    this.#text = text;
    this.#onReady = onReady;
    this.#wraps = wraps;
    this.#previews = previews;
  }

  /** Shape of a block; null if it has no visible text. */
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
    const code = highlighted(readIn(branch, this.#text), branch.language ?? "", this.#onReady);
    const text = element("code", undefined, joined(code).flatMap(inStretches));
    const scrolling = this.#scrolling(languageOf(branch));
    const block = element("pre", undefined, [text], { dir: "ltr", ...scrolling });
    if (!this.#previews || !isPreviewable(branch)) {
      return element("div", "code", [codeHead(branch, this.#wraps), block]);
    }
    const address = this.#previews.get(beginOf(branch) ?? -1);
    const head = codeHead(branch, this.#wraps, address !== undefined);
    if (address === undefined) return element("div", "code", [head, block]);
    const preview = { ...element("div", "preview", []), fill: previewFrame(address) };
    return element("div", "code", [head, block, preview]);
  }

  /** Attributes that make a scrolling block focusable, so that arrow keys scroll it. */
  #scrolling(language: string): Readonly<Record<string, string>> {
    if (this.#wraps) return {};
    return { tabindex: "0", role: "group", "aria-label": t("reply.codeIn", { language }) };
  }

  #formula(branch: Branch, tag: "span" | "div"): ElementShape {
    const displayed = branch.tag === "display-formula";
    const leaves = [...leavesOf([branch])].filter(({ kind }) => kind !== "gap");
    const [first, last] = [leaves[0], leaves.at(-1)];
    const source = first && last ? this.#text.slice(first.from, last.to) : "";
    const name = displayed ? "formula display" : "formula";
    this.#formulas += 1;
    if (this.#formulas > MAX_FORMULAS) {
      return element(tag, `${name} source`, [source], { dir: "ltr" });
    }
    if (source.length > LONGEST_STRETCH) {
      return element(tag, `${name} source`, inStretches(source), { dir: "ltr" });
    }
    const fill = formula(source, readIn(branch, this.#text), displayed, this.#onReady);
    return { tag, class: name, attributes: { dir: "ltr" }, children: [], fill };
  }
}

/**
 * Most typeset formulas in a block; the rest stays LaTeX. A model in a loop writes thousands, which
 * would all be laid out together.
 */
const MAX_FORMULAS = 300;

const LONGEST_STRETCH = 16_384;

/**
 * Divides a long text into groups of lines, of which only visible ones are laid out (reply.css).
 */
function inStretches(shape: Shape): Shape[] {
  if (typeof shape !== "string" || shape.length <= LONGEST_STRETCH) return [shape];
  return plainBlocks(shape, 0, shape.length).map(({ from, to }) =>
    element("span", "stretch", [shape.slice(from, to)]),
  );
}
