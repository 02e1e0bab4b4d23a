/** Capitalises the shell's messages. */

/**
 * A message with a capital first letter. Paths and repository names stay as they are; CSS's
 * `::first-letter` would skip punctuation and turn `/home` into `/Home`.
 */
export function sentence(message: string): string {
  if (/^\S+\//.test(message)) return message;
  return message.charAt(0).toUpperCase() + message.slice(1);
}
