/** Advice on every installed draft: from the engine's lists at first, from a probe later. */
import type { Advice } from "../bindings/Advice";
import type { DraftOption } from "../bindings/DraftOption";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { Problem } from "../bindings/Problem";
import { facts } from "../bindings/facts";
import { sizeHint } from "./pairs";
import { t } from "../messages/say";

/** A draft, the expectation from its size, and the result of its probe. */
export interface DraftAdvice extends Advice {
  label: string;
  /** Why the draft cannot be used with the target; null if it can. */
  problem: Problem | null;
  /** Whether the draft fits in memory beside the target. */
  fits: boolean;
  /** Comparison of the draft's size with the target's, in words. */
  size_hint: string;
}

/** All drafts listed for the loaded target, not yet probed. */
export function unprobed(status: EngineStatus): DraftAdvice[] {
  return status.drafts
    .filter(({ id }) => id !== facts.draftNone)
    .map((draft) => before(draft, status));
}

function before({ id, label, problem }: DraftOption, status: EngineStatus): DraftAdvice {
  const model = status.targets.find((target) => target.id === id);
  const hint = model && status.target ? sizeHint(status.target, model) : t("merit.needs_no_model");
  return {
    id,
    label,
    problem,
    fits: model?.fits ?? true,
    size_hint: hint,
    probe: null,
    state: "waiting",
    reason: null,
  };
}

/** Sorts advice: probed drafts by speed-up, then untested ones, then those that cannot be used. */
export function sorted(advice: readonly DraftAdvice[]): DraftAdvice[] {
  const rank = ({ problem, fits, state, probe }: DraftAdvice) => {
    if (problem !== null) return 4;
    if (probe) return 0;
    if (state === "failed") return 3;
    return fits ? 1 : 2;
  };
  const speedup = ({ probe }: DraftAdvice) => probe?.speedup ?? 0;
  return advice.toSorted((a, b) => rank(a) - rank(b) || speedup(b) - speedup(a));
}
