/**
 * Reads stored rounds, which the shell sends unchanged. Old ones lack newer fields; the defaults
 * here are the engine's.
 */
import type { Decision } from "../bindings/Decision";
import type { Drafted } from "../bindings/Drafted";
import type { Round } from "../bindings/Round";

type Missing<T, K extends keyof T> = Omit<T, K> & Partial<Pick<T, K>>;

type StoredDrafted = Missing<Drafted, "parent" | "target_probability" | "acceptance">;
type StoredDecision = Missing<Decision, "before" | "drafting_ms">;

/** A round of any version. */
export type StoredRound = Missing<
  Omit<Round, "drafted" | "decision">,
  "extra" | "threshold" | "staged"
> & { drafted: StoredDrafted[]; decision?: StoredDecision | null };

/** Fills in the missing fields of a round. */
export function completed(stored: StoredRound): Round {
  const { drafted, decision } = stored;
  return {
    extra: null,
    threshold: null,
    staged: false,
    ...stored,
    drafted: drafted.map(completedDrafted),
    decision: decision ? { before: null, drafting_ms: [], ...decision } : null,
  };
}

function completedDrafted(stored: StoredDrafted): Drafted {
  return { parent: null, target_probability: null, acceptance: null, ...stored };
}
