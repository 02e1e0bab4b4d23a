/** The shell's messages as sentences of their own. */

/**
 * With a capital at the start. A path or a repository's name stays as it is, which CSS's
 * `::first-letter` would not see to: it passes over punctuation and makes `/home` into `/Home`.
 */
export function sentence(message: string): string {
  if (/^\S+\//.test(message)) return message;
  return message.charAt(0).toUpperCase() + message.slice(1);
}
