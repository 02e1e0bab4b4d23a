/** Makes a text field as tall as its text. Older webviews have no `field-sizing`. */
export function fitHeight(field: HTMLTextAreaElement, tallestPx: number) {
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, tallestPx)}px`;
}
