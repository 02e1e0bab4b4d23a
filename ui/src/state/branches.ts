/** The position of a message in its conversation's tree. */
import type { Message } from "../bindings/Message";
import { t } from "../messages/say";
import { count } from "../messages/numbers";

/** Whether a message has siblings. */
export function hasBranches({ siblings }: Message): boolean {
  return siblings.length > 1;
}

/** First message of the branch before (-1) or after (1) this message's; null at the ends. */
export function besideOf({ id, siblings }: Message, step: -1 | 1): number | null {
  return siblings[siblings.indexOf(id) + step] ?? null;
}

/** "2 / 3": the index of a message among its siblings. */
export function placeOfBranch({ id, siblings }: Message): string {
  const number = count(siblings.indexOf(id) + 1);
  return t("branch.place", { number, of: count(siblings.length) });
}

/** The index among siblings, worded for screen readers. */
export function placeWords({ id, siblings }: Message): string {
  const number = count(siblings.indexOf(id) + 1);
  return t("branch.placeWords", { number, of: count(siblings.length) });
}

/** Whether a reply ended before its model ended it. */
export function wasCut({ role, text, finish }: Message): boolean {
  const cut = finish !== "stop" && finish !== "context_full";
  return role === "assistant" && text !== "" && cut;
}

/** Whether `after` continues the reply `before`. */
function goesOn(before: Message | undefined, after: Message): boolean {
  const both = before?.role === "assistant" && after.role === "assistant";
  return both && after.parent === before.id;
}

/** A message and the parts that it continues: a reply that was cut and continued is one whole. */
export interface Whole {
  message: Message;
  /** Earlier parts, oldest first; usually none. */
  before: readonly Message[];
}

const NONE: readonly Message[] = [];

/** Merges continued replies of a branch. Unchanged entries of `known` are reused as they are. */
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

/** All parts of the reply that includes a message, oldest first. */
export function partsOf(messages: readonly Message[], { id }: Message): readonly Message[] {
  const parts = wholesOf(messages).map(({ message, before }) => [...before, message]);
  return parts.find((all) => all.some((part) => part.id === id)) ?? NONE;
}

export function textOfParts(parts: readonly Message[]): string {
  return parts.map(({ text }) => text).join("");
}
