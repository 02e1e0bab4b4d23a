/**
 * Limits the memory of pdf.js. A PDF's streams are decoded into one growing array for any filter
 * and password, so the length of arrays is limited: 1.5 MB of deflated spaces took 3 GB.
 */

/** Longest array in bytes. Attachments have at most 4 MB of text. */
const LONGEST = 1 << 26;

/** Message of a worker after a refused array. */
export const TOO_LONG = { tooLong: true } as const;

type Scope = Pick<typeof globalThis, "Uint8Array"> & { DecompressionStream?: unknown };

/**
 * Makes longer arrays fail in a worker's `scope`; `report` is called the first time. Returns a
 * function that undoes it.
 */
export function limitArrays(scope: Scope, report: () => void): () => void {
  const { Uint8Array: original, DecompressionStream: stream } = scope;
  let reported = false;
  scope.Uint8Array = new Proxy(original, {
    construct(target, given: unknown[], made) {
      if (typeof given[0] === "number" && given[0] > LONGEST) {
        if (!reported) report();
        reported = true;
        throw new RangeError("An array would be too long");
      }
      return Reflect.construct(target, given, made === scope.Uint8Array ? target : made) as object;
    },
  });
  // The native stream has no limit; without it pdf.js decodes by itself.
  scope.DecompressionStream = undefined;
  return () => {
    scope.Uint8Array = original;
    scope.DecompressionStream = stream;
  };
}
