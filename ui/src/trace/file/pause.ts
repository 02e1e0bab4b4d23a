/** A break in long work: lets the page paint and hear the person. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
