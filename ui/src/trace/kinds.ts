/** Which outcomes occur in rounds. */
import type { Round } from "../bindings/Round";
import type { ChipKind } from "./chips";

/** Of all that there are, so that reading on would find nothing new. */
const ALL = 6;

export function kindsIn(parts: readonly (readonly Round[])[]): ReadonlySet<ChipKind> {
  const found = new Set<ChipKind>();
  for (const rounds of parts) {
    for (const { drafted, extra } of rounds) {
      for (const { outcome } of drafted) found.add(outcome);
      if (extra) found.add(extra.kind);
      if (found.size === ALL) return found;
    }
  }
  return found;
}
