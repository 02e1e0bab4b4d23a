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
  const cut = finish !== "stop" && finish !== "context_full";
  return role === "assistant" && text !== "" && cut;
}

/** Whether `after` goes on with the reply `before`. */
function goesOn(before: Message | undefined, after: Message): boolean {
  const both = before?.role === "assistant" && after.role === "assistant";
  return both && after.parent === before.id;
}

/** A message with the parts of it that it goes on with: a reply that was cut and continued is one. */
export interface Whole {
  message: Message;
  /** Oldest first; mostly none. */
  before: readonly Message[];
}

const NONE: readonly Message[] = [];

/** Messages of a branch, continued replies as one each. Those of `known` that are still the same stay what they are. */
export function wholesOf(messages: readonly Message[], known: readonly Whole[] = []): Whole[] {
  const wholes: Whole[] = [];
  for (const message of messages) {
    const last = wholes.at(-1);
    if (last && goesOn(last.message, message)) {
      wholes.splice(-1, 1, { message, before: [...last.before, last.message] });
    } else wholes.push({ message, before: NONE });
  }
  return wholes.map((whole, at) => {
    const old = known[at];
    return old && isSame(old, whole) ? old : whole;
  });
}

function isSame(a: Whole, b: Whole): boolean {
  const same = a.message === b.message && a.before.length === b.before.length;
  return same && a.before.every((part, at) => part === b.before[at]);
}

/** All parts of the reply that a message is one of, oldest first. */
export function partsOf(messages: readonly Message[], { id }: Message): readonly Message[] {
  const parts = wholesOf(messages).map(({ message, before }) => [...before, message]);
  return parts.find((all) => all.some((part) => part.id === id)) ?? NONE;
}

export function textOfParts(parts: readonly Message[]): string {
  return parts.map(({ text }) => text).join("");
}
