/** The text of a reply: the fold that keeps what each round added. */
import type { Round } from "../bindings/Round";

export function textOf(rounds: readonly Round[]): string {
  let text = "";
  for (const round of rounds) {
    for (const drafted of round.drafted) {
      if (drafted.outcome === "accepted") text += drafted.text;
    }
    text += round.extra?.text ?? "";
  }
  return text;
}
