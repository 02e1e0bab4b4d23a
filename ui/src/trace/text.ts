/** The text of a reply, joined from its rounds. */
import type { Round } from "../bindings/Round";
import { addedBy } from "./offsets";

export function textOf(rounds: readonly Round[]): string {
  let text = "";
  for (const round of rounds) text += addedBy(round);
  return text;
}
