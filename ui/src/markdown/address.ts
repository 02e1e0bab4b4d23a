/**
 * Which addresses of a model's links may be copied: pages and mail, nothing that runs or is local.
 */

const ALLOWED = new Set(["http:", "https:", "mailto:"]);

/** The address as the browser understands it, or null where it is refused. */
export function safeAddress(written: string): string | null {
  const address = written.replace(/^<|>$/g, "");
  try {
    const url = new URL(complete(address));
    return ALLOWED.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** GitHub's addresses may lack their scheme: www.example.org and someone@example.org. */
function complete(address: string): string {
  if (/^www\./i.test(address)) return `https://${address}`;
  if (/^[^\s:/@]+@[^\s:/@]+$/.test(address)) return `mailto:${address}`;
  return address;
}
