/** A break in long work, in which the page handles input and paints. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
