/** A formula set by KaTeX, which builds its elements itself. Its source where that cannot be. */
import type { KatexOptions } from "katex";
import { lazy } from "./lazy";
import type { Fill } from "./shapes";
import { inSlices } from "./slices";

/** Formulas may not make boxes larger than this, or link. */
const OPTIONS: KatexOptions = {
  strict: "ignore",
  trust: false,
  maxExpand: 500,
  maxSize: 20,
  throwOnError: true,
};
const LONGEST = 4000;
/** Commands and single characters of a formula; a cell of a table counts as {@link CELL_PARTS}. */
const MOST_PARTS = 2000;
const CELL_PARTS = 3;

/** Commands and single characters, as KaTeX reads them. */
const PART = /\\(?:[a-zA-Z@]+|[^])|\S/g;

/**
 * Commands that define macros: `maxExpand` counts expansions and not the length of what they expand
 * to, so that a short formula could take minutes. Those that write to the console are refused, too.
 */
const REFUSED: ReadonlySet<string> = new Set([
  ...["\\def", "\\gdef", "\\edef", "\\xdef", "\\let", "\\futurelet", "\\global", "\\long"],
  ...["\\newcommand", "\\renewcommand", "\\providecommand"],
  ...["\\message", "\\errmessage", "\\show"],
]);

type Katex = typeof import("katex").default;

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
  const library = isSettable(tex) ? katex(whenHere) : null;
  return {
    key: `${library ? "set" : "source"} ${source}`,
    draw(into) {
      into.textContent = source;
      into.classList.add("source");
      if (!library) return;
      let waits = false;
      const ran = inSlices(() => {
        // A formula that waited may have left the page meanwhile.
        if (!waits || into.isConnected) set(library, into, source, tex, displayMode);
      });
      waits = !ran;
    },
  };
}

function set(library: Katex, into: HTMLElement, source: string, tex: string, displayMode: boolean) {
  try {
    library.render(tex, into, { ...OPTIONS, displayMode });
    into.classList.remove("source");
  } catch {
    into.textContent = source;
  }
}

/** Whether the time KaTeX takes for a formula is bounded. */
function isSettable(tex: string): boolean {
  if (tex.length > LONGEST) return false;
  let parts = 0;
  for (const [part] of tex.matchAll(PART)) {
    parts += part === "&" || part === "\\\\" ? CELL_PARTS : 1;
    // Names with "@" are KaTeX's own macros, some of which paste an argument many times.
    if (parts > MOST_PARTS || REFUSED.has(part) || /^\\.*@/.test(part)) return false;
  }
  return true;
}
