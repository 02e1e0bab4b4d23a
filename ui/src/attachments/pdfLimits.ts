/**
 * A limit on what pdf.js decodes at once. A stream of a PDF is decoded into one array that grows,
 * by whatever filters and behind whatever password, so the length of an array is what is bounded:
 * 1.5 MB of deflated spaces took 3 GB.
 */

/** The longest array that may be made, in bytes. Text of 4 MB is attached at most. */
const LONGEST = 1 << 26;

/** The message of a worker in which an array would have been longer. */
export const TOO_LONG = { tooLong: true } as const;

type Scope = Pick<typeof globalThis, "Uint8Array"> & { DecompressionStream?: unknown };

/**
 * Has longer arrays refused in `scope`, a worker's; `report` is called at the first. Returns the
 * undoing.
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
  // It collects what it decodes without a limit; without it pdf.js decodes by itself.
  scope.DecompressionStream = undefined;
  return () => {
    scope.Uint8Array = original;
    scope.DecompressionStream = stream;
  };
}
