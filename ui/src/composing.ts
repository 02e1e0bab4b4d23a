/** Keys that belong to an input method, which makes one character of several. They are never commands. */

/** Stands for whichever key it was. */
const TAKEN = 229;

/** WebKit on a Mac says by the number alone that Enter took a proposal: the input method has ended by then. */
export function isComposed(event: KeyboardEvent): boolean {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- nothing else tells it
  return event.isComposing || event.keyCode === TAKEN;
}
