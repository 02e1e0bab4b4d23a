/** Ghost text: the draft of a round, shown ahead of the reply before its outcome. */
import type { Round } from "../bindings/Round";
import { picture } from "./chips";
import { textAfter } from "./tree";

/** Text of the draft's likeliest path, on one line; empty without a draft. */
export function ghostOf(round: Round | null | undefined): string {
  return round ? picture(textAfter(round, null)) : "";
}
