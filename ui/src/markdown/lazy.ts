/** A library that is fetched when it is first wanted: most replies need neither. */

/** Gives the library, or null until it is here; then `whenHere` is called once. */
export type Lazy<T> = (whenHere: () => void) => T | null;

export function lazy<T>(load: () => Promise<T>): Lazy<T> {
  let here: T | null = null;
  let waiting: Set<() => void> | null = null;
  return (whenHere) => {
    if (here !== null) return here;
    if (!waiting) {
      const callers = new Set<() => void>();
      waiting = callers;
      load().then(
        (loaded) => {
          here = loaded;
          for (const call of callers) call();
        },
        // It came with the page; without it the source is shown, which is correct as well.
        () => undefined,
      );
    }
    waiting.add(whenHere);
    return null;
  };
}
