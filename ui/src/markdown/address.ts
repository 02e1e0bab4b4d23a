/**
 * Checks addresses of a model's links: web pages and mail can be copied, scripts and local
 * addresses cannot.
 */

const ALLOWED = new Set(["http:", "https:", "mailto:"]);

/** The address as parsed by the browser, or null if it is refused. */
export function safeAddress(written: string): string | null {
  const address = written.replace(/^<|>$/g, "");
  try {
    const url = new URL(complete(address));
    return ALLOWED.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** Adds the scheme that GitHub's autolinks omit: www.example.org and someone@example.org. */
function complete(address: string): string {
  if (/^www\./i.test(address)) return `https://${address}`;
  if (/^[^\s:/@]+@[^\s:/@]+$/.test(address)) return `mailto:${address}`;
  return address;
}
