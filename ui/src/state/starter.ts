/** Hides the starter pair in pickers beside SmolLM2, unless it is in use; the Library lists it. */
import type { EngineStatus } from "../bindings/EngineStatus";

const STARTER = ["starter", "starter-draft"];
const SMOLLM2 = "smollm2";

/** The choices of a picker, targets or drafts. */
export function withoutStarter<Choice extends { id: string }>(
  choices: readonly Choice[],
  { target, targets }: Pick<EngineStatus, "target" | "targets">,
): Choice[] {
  const isNeeded = STARTER.includes(target?.id ?? "") || !targets.some(({ id }) => id === SMOLLM2);
  return choices.filter(({ id }) => isNeeded || !STARTER.includes(id));
}
