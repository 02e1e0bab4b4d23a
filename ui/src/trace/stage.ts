/** Stages of a round: its draft, the verification, the outcome. */
import type { Round } from "../bindings/Round";

/** Stage of a round; an emitted one is part of the trace. */
export type Stage = "drafted" | "judged" | "emitted";

/** Stages of a round; without a draft there is nothing to show before its token. */
export function stagesOf(round: Round | undefined): readonly Stage[] {
  return round && round.drafted.length > 0 ? ["drafted", "judged", "emitted"] : ["emitted"];
}

/** The round at a stage: before verification only the draft tokens' own values are known. */
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
