/** What is known of every installed draft: from the engine's lists at once, from a probe later. */
import type { Advice } from "../bindings/Advice";
import type { DraftOption } from "../bindings/DraftOption";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { Problem } from "../bindings/Problem";
import { facts } from "../bindings/facts";
import { sizeHint } from "./pairs";
import { t } from "../messages/say";

/** A draft, what its size lets expect, and what a trial has come to. */
export interface DraftAdvice extends Advice {
  label: string;
  /** Why it cannot draft for the target; null when it can. */
  problem: Problem | null;
  /** Whether it fits in memory beside the target. */
  fits: boolean;
  /** Its size against the target's. */
  size_hint: string;
}

/** Every draft there is for the loaded target, not yet probed. */
export function unprobed(status: EngineStatus): DraftAdvice[] {
  return status.drafts
    .filter(({ id }) => id !== facts.draftNone)
    .map((draft) => before(draft, status));
}

function before({ id, label, problem }: DraftOption, status: EngineStatus): DraftAdvice {
  const model = status.targets.find((target) => target.id === id);
  const hint = model && status.target ? sizeHint(status.target, model) : t("shell.needsNoModel");
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

/** The best first: what was measured by its speed, then what may yet be, then what cannot be used. */
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
