/** The position of a message in its conversation's tree. */
import type { Message } from "../bindings/Message";
import { t } from "../messages/say";
import { count } from "../messages/numbers";

/** Whether a message has siblings. */
export function hasBranches({ siblings }: Message): boolean {
  return siblings.length > 1;
}

/** First message of the branch before (-1) or after (1) this message's; null at the ends. */
export function siblingOf({ id, siblings }: Message, step: -1 | 1): number | null {
  return siblings[siblings.indexOf(id) + step] ?? null;
}

/** "2 / 3": the index of a message among its siblings. */
export function branchNumber({ id, siblings }: Message): string {
  const number = count(siblings.indexOf(id) + 1);
  return t("branch.number", { number, of: count(siblings.length) });
}

/** The index among siblings, worded for screen readers. */
export function branchNumberWords({ id, siblings }: Message): string {
  const number = count(siblings.indexOf(id) + 1);
  return t("branch.numberWords", { number, of: count(siblings.length) });
}

/** Whether a reply ended before its model ended it, or with calls that it can go on from. */
export function wasCut({ role, text, finish, calls }: Message): boolean {
  const cut = finish !== "stop" && finish !== "context_full";
  return role === "assistant" && text !== "" && (cut || calls.length > 0);
}

/** Whether `after` continues the reply `before`. */
function isContinuation(before: Message | undefined, after: Message): boolean {
  const both = before?.role === "assistant" && after.role === "assistant";
  // What follows a call is a text of its own, below the call's card.
  return both && before.calls.length === 0 && after.parent === before.id;
}

/** A message and the parts that it continues: a reply that was cut and continued is one turn. */
export interface Turn {
  message: Message;
  /** Earlier parts, oldest first; usually none. */
  before: readonly Message[];
}

const NONE: readonly Message[] = [];

/** Merges continued replies of a branch. Unchanged entries of `known` are reused as they are. */
export function turnsOf(messages: readonly Message[], known: readonly Turn[] = []): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (last && isContinuation(last.message, message)) {
      turns.splice(-1, 1, { message, before: [...last.before, last.message] });
    } else turns.push({ message, before: NONE });
  }
  return turns.map((turn, at) => {
    const old = known[at];
    return old && isSame(old, turn) ? old : turn;
  });
}

function isSame(a: Turn, b: Turn): boolean {
  const same = a.message === b.message && a.before.length === b.before.length;
  return same && a.before.every((part, at) => part === b.before[at]);
}

/** All parts of the reply that includes a message, oldest first. */
export function replyParts(messages: readonly Message[], { id }: Message): readonly Message[] {
  const parts = turnsOf(messages).map(({ message, before }) => [...before, message]);
  return parts.find((all) => all.some((part) => part.id === id)) ?? NONE;
}

export function textOfParts(parts: readonly Message[]): string {
  return parts.map(({ text }) => text).join("");
}
