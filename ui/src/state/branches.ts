/** Where a message stands in its conversation's tree, and what follows from that. */
import type { Message } from "../bindings/Message";
import { t } from "../messages/say";
import { count } from "../messages/numbers";

/** Whether other branches begin beside it. */
export function hasBranches({ siblings }: Message): boolean {
  return siblings.length > 1;
}

/** The message that begins the branch before (-1) or after (1) this one's; null at the ends. */
export function besideOf({ id, siblings }: Message, step: -1 | 1): number | null {
  return siblings[siblings.indexOf(id) + step] ?? null;
}

/** "2 / 3": which of its siblings it is. */
export function placeOfBranch({ id, siblings }: Message): string {
  const number = count(siblings.indexOf(id) + 1);
  return t("branch.place", { number, of: count(siblings.length) });
}

/** The same as it is read aloud. */
export function placeWords({ id, siblings }: Message): string {
  const number = count(siblings.indexOf(id) + 1);
  return t("branch.placeWords", { number, of: count(siblings.length) });
}

/** Whether a reply has a text that does not end where its writer would have ended it. */
export function wasCut({ role, text, finish }: Message): boolean {
  const cut = finish === null || finish === "length" || finish === "cancelled";
  return role === "assistant" && text !== "" && cut;
}

/** Whether `after` goes on with the reply `before`. */
export function goesOn(before: Message | undefined, after: Message | undefined): boolean {
  const both = before?.role === "assistant" && after?.role === "assistant";
  return both && after.parent === before.id;
}
