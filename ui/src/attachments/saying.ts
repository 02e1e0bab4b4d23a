/** What is sent where it is words alone. */
import type { Sent } from "../bindings/Sent";

export function saying(text: string): Sent {
  return { text, kept: [], attached: [] };
}
