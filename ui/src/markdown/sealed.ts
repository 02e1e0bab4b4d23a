/** Document of a preview: the code behind a policy. */

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; " +
  "base-uri 'none'; form-action 'none'";

/**
 * A document with a policy before any of the code, which can only tighten it. Links go nowhere,
 * since frames may show previews only; without a pointer they do not look as if they did.
 */
export function sealed(code: string): string {
  return (
    '<!doctype html><meta charset="utf-8">' +
    `<meta http-equiv="Content-Security-Policy" content="${POLICY}">` +
    '<meta name="referrer" content="no-referrer">' +
    `<style>:any-link { pointer-events: none }</style>${code}`
  );
}
