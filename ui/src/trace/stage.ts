/** A round in slow motion: what was drafted, what the target said to it, what came of it. */
import type { Round } from "../bindings/Round";

/** A round that has emitted its tokens is a round of the trace. */
export type Stage = "drafted" | "judged" | "emitted";

/** The stages a round goes through: one without a draft has nothing to show before its token. */
export function stagesOf(round: Round | undefined): readonly Stage[] {
  return round && round.drafted.length > 0 ? ["drafted", "judged", "emitted"] : ["emitted"];
}

/** The round as it stood then: before it is judged nothing is known of its tokens but themselves. */
export function roundAt(round: Round, stage: Stage): Round {
  if (stage === "emitted") return round;
  if (stage === "judged") return { ...round, extra: null };
  const drafted = round.drafted.map((token) => ({
    ...token,
    target_probability: null,
    acceptance: null,
    outcome: "discarded" as const,
  }));
  return { ...round, drafted, extra: null };
}
