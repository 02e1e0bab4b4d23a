/** Reasons for the draft length of a round, in words. */
import type { LengthReason } from "../bindings/LengthReason";
import { t } from "../messages/say";

interface ReasonWords {
  /** A word or two, shown beside a count. */
  short: string;
  /** A whole sentence. */
  long: string;
}

export function reasonWords(reason: LengthReason): ReasonWords {
  return { short: t(`reason.${reason}`), long: t(`reason.${reason}.long`) };
}
