/** Fits a text field's height to its text; older webviews lack `field-sizing`. */
export function fitHeight(field: HTMLTextAreaElement, tallestPx: number) {
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, tallestPx)}px`;
}
