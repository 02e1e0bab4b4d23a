/** Words for why a round drafted as many tokens as it did. */
import type { LengthReason } from "../bindings/LengthReason";
import { t } from "../messages/say";

interface ReasonWords {
  /** A word or two, to stand beside a count. */
  short: string;
  /** The whole sentence. */
  long: string;
}

export function reasonWords(reason: LengthReason): ReasonWords {
  return { short: t(`reason.${reason}`), long: t(`reason.${reason}.long`) };
}
