/** The draft of a round as text that runs ahead of the reply, before it is known what comes of it. */
import type { Round } from "../bindings/Round";
import { picture } from "./chips";
import { textAfter } from "./tree";

/** The text of the likeliest path of the draft, on one line; empty for a round without a draft. */
export function ghostOf(round: Round | null | undefined): string {
  return round ? picture(textAfter(round, null)) : "";
}
