/** How fast a model is on this computer, in words. */
import type { ModelSpeed } from "../bindings/ModelSpeed";
import { t } from "../messages/say";
import { count, decimal } from "../messages/numbers";

/** With drafts it has to be so many times as fast to be worth a word. */
const PAYS = 1.02;

/** "6.4", "34": as many digits as matter. */
function written(tokensPerSecond: number): string {
  return tokensPerSecond < 10 ? count(tokensPerSecond, 1) : count(tokensPerSecond);
}

/** "about 34 tokens/s here". */
export function reckoned(tokensPerSecond: number): string {
  return t("speed.about", { speed: written(tokensPerSecond) });
}

/** "34 tokens/s here, 50 with drafts"; null where nothing is known. */
export function speedWords({ plain, drafted, measured }: ModelSpeed): string | null {
  if (!measured) return plain === null ? null : reckoned(plain);
  if (plain !== null && drafted === null) return t("speed.measured", { speed: written(plain) });
  if (drafted === null) return null;
  if (plain === null) return t("speed.drafted", { drafted: written(drafted) });
  return t("speed.both", { speed: written(plain), drafted: written(drafted) });
}

/** Whether drafts made it faster; null where that was not measured. */
export function draftWords({ plain, drafted, measured }: ModelSpeed): string | null {
  if (!measured || plain === null || drafted === null) return null;
  const speedup = decimal(drafted / plain, 1);
  return drafted / plain >= PAYS ? t("speed.pays", { speedup }) : t("speed.doesNotPay");
}
