/** The draft of a round as text that runs ahead of the reply, before it is known what comes of it. */
import type { Round } from "../bindings/Round";
import { picture } from "./chips";
import { parentsOf, type Parent } from "./tree";

/** The text of the likeliest path of the draft, on one line; empty for a round without a draft. */
export function ghostOf(round: Round | null | undefined): string {
  if (!round) return "";
  const parents = parentsOf(round);
  const chance = (slot: number) => round.drafted[slot]?.draft_probability ?? 0;
  let text = "";
  let last: Parent = null;
  for (;;) {
    const next = [...parents.keys()].filter((slot) => parents[slot] === last);
    const [first, ...others] = next;
    if (first === undefined) return picture(text);
    // Equal ones in the order they were drafted.
    last = others.reduce((best, slot) => (chance(slot) > chance(best) ? slot : best), first);
    text += round.drafted[last]?.text ?? "";
  }
}
