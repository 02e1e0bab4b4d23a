/** Marks parts of the page's text without changing the DOM. */

/** Marks ranges until the returned function is called. Browsers without highlights show nothing. */
export function markText(ranges: readonly Range[]): () => void {
  if (typeof Highlight === "undefined" || ranges.length === 0) return () => undefined;
  const highlight = CSS.highlights.get("mark") ?? new Highlight();
  CSS.highlights.set("mark", highlight);
  for (const range of ranges) highlight.add(range);
  return () => {
    for (const range of ranges) highlight.delete(range);
  };
}
