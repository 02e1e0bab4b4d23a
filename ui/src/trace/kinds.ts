/** Outcomes that occur in rounds. */
import type { Round } from "../bindings/Round";
import type { ChipKind } from "./chips";

/** Number of all outcomes; the search stops once all are found. */
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
