/** A formula set by KaTeX, which builds its elements itself. Its source where that cannot be. */
import type { KatexOptions } from "katex";
import { lazy } from "./lazy";
import type { Fill } from "./shapes";

/** What a model writes may not define endless macros, make boxes larger than this, or link. */
const OPTIONS: KatexOptions = {
  strict: "ignore",
  trust: false,
  maxExpand: 500,
  maxSize: 20,
  throwOnError: true,
};
const LONGEST = 4000;

const katex = lazy(async () => {
  const [{ default: library }] = await Promise.all([
    import("katex"),
    import("katex/dist/katex.min.css"),
  ]);
  return library;
});

/** `source` is the formula with its marks, `tex` without. */
export function formula(
  source: string,
  tex: string,
  displayMode: boolean,
  whenHere: () => void,
): Fill {
  const library = tex.length > LONGEST ? null : katex(whenHere);
  return {
    key: `${library ? "set" : "source"} ${source}`,
    draw(into) {
      try {
        library?.render(tex, into, { ...OPTIONS, displayMode });
      } catch {
        into.replaceChildren();
      }
      if (into.firstChild) return;
      into.textContent = source;
      into.classList.add("source");
    },
  };
}
