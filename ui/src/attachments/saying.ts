/** A message without attachments. */
import type { Sent } from "../bindings/Sent";

export function saying(text: string): Sent {
  return { text, kept: [], attached: [] };
}
