/** The colours the heatmap is painted with, read from the theme once, not in each frame. */
export interface Colours {
  accepted: string;
  rejected: string;
  discarded: string;
  bonus: string;
  recovered: string;
  plain: string;
  /** Around marks on top of a cell, so that they are seen on any strength of its colour. */
  casing: string;
  branch: string;
  label: string;
  text: string;
}

/** Those that hold at an element. */
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
