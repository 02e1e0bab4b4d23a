/** Keys of an input method, which composes characters from several keys. Never used as commands. */

/** Key code of any key that the input method has handled. */
const TAKEN = 229;

/**
 * Whether an input method handled a key. For Enter on a proposal, WebKit on a Mac has only the
 * code.
 */
export function isComposed(event: KeyboardEvent): boolean {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- has no replacement here
  return event.isComposing || event.keyCode === TAKEN;
}
