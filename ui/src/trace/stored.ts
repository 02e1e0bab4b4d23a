/**
 * Rounds as they are stored: those of older versions lack fields that were added later, which the shell
 * hands on as they are. What is filled in here is what the engine itself reads them as.
 */
import type { Decision } from "../bindings/Decision";
import type { Drafted } from "../bindings/Drafted";
import type { Round } from "../bindings/Round";

type Missing<Whole, Field extends keyof Whole> = Omit<Whole, Field> & Partial<Pick<Whole, Field>>;

type StoredDrafted = Missing<Drafted, "parent" | "target_probability" | "acceptance">;
type StoredDecision = Missing<Decision, "before" | "drafting_ms">;

/** A round of any version. */
export type StoredRound = Missing<
  Omit<Round, "drafted" | "decision">,
  "extra" | "threshold" | "staged"
> & { drafted: StoredDrafted[]; decision?: StoredDecision | null };

/** Every field of a round, with the default where it was not stored. */
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
