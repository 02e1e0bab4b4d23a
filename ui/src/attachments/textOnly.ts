/** A message without attachments. */
import type { Sent } from "../bindings/Sent";

export function textOnly(text: string): Sent {
  return { text, kept: [], attached: [] };
}
