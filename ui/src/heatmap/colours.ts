/** Colours of the heatmap, read from the theme once instead of in each frame. */
export interface Colours {
  accepted: string;
  rejected: string;
  discarded: string;
  bonus: string;
  recovered: string;
  plain: string;
  /** Outline of marks on cells, visible on any strength of their colour. */
  casing: string;
  branch: string;
  label: string;
  text: string;
}

/** Reads the colours in effect at an element. */
export function coloursAt(element: Element): Colours {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    accepted: read("accepted"),
    rejected: read("rejected"),
    discarded: read("discarded"),
    bonus: read("bonus"),
    recovered: read("recovered"),
    plain: read("soft"),
    casing: read("bg"),
    branch: read("line-strong"),
    label: read("faint"),
    text: read("text"),
  };
}
