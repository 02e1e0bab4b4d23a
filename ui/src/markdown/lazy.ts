/** Loads a library on first use: most replies need none. */

/** Returns the library, or null until it is loaded; then `onReady` is called once. */
export type Lazy<T> = (onReady: () => void) => T | null;

export function lazy<T>(load: () => Promise<T>): Lazy<T> {
  let here: T | null = null;
  let waiting: Set<() => void> | null = null;
  return (onReady) => {
    if (here !== null) return here;
    if (!waiting) {
      const callers = new Set<() => void>();
      waiting = callers;
      load().then(
        (loaded) => {
          here = loaded;
          for (const call of callers) call();
        },
        // A bundled module should never fail; without it the source is shown.
        () => undefined,
      );
    }
    waiting.add(onReady);
    return null;
  };
}
