/** Formulas typeset by KaTeX, which builds the elements; source text if that is not possible. */
import type { KatexOptions } from "katex";
import { lazy } from "./lazy";
import type { Fill } from "./shapes";
import { inSlices } from "./slices";

/** KaTeX's options: a size limit for boxes, and no links. */
const OPTIONS: KatexOptions = {
  strict: "ignore",
  trust: false,
  maxExpand: 500,
  maxSize: 20,
  throwOnError: true,
};
const LONGEST = 4000;
/** Limit on commands and characters of a formula; a table cell counts as {@link CELL_PARTS}. */
const MAX_PARTS = 2000;
const CELL_PARTS = 3;

/** Commands and single characters in KaTeX's syntax. */
const PART = /\\(?:[a-zA-Z@]+|[^])|\S/g;

/**
 * Refused commands: those that define macros, and those that write to the console. `maxExpand`
 * limits the number of expansions but not their length, so a short formula could take minutes.
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

/** Shape of a formula; `source` includes its delimiters, `tex` does not. */
export function formula(
  source: string,
  tex: string,
  displayMode: boolean,
  onReady: () => void,
): Fill {
  const library = isSettable(tex) ? katex(onReady) : null;
  return {
    key: `${library ? "set" : "source"} ${source}`,
    draw(into) {
      into.textContent = source;
      into.classList.add("source");
      if (!library) return;
      let waits = false;
      const ran = inSlices(() => {
        // The formula may have been removed from the page meanwhile.
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

/** Whether KaTeX's time for a formula is bounded. */
function isSettable(tex: string): boolean {
  if (tex.length > LONGEST) return false;
  let parts = 0;
  for (const [part] of tex.matchAll(PART)) {
    parts += part === "&" || part === "\\\\" ? CELL_PARTS : 1;
    // Names with "@" are KaTeX's internal macros, some of which repeat an argument many times.
    if (parts > MAX_PARTS || REFUSED.has(part) || /^\\.*@/.test(part)) return false;
  }
  return true;
}
