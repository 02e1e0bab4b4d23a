/** The speed of a model on this computer, in words. */
import type { ModelSpeed } from "../bindings/ModelSpeed";
import type { PairSpeedup } from "../bindings/PairSpeedup";
import { t } from "../messages/say";
import { significant } from "../messages/numbers";
import { drafterName } from "../trace/names";
import { factorWords, verdictOf } from "../trace/speedup";

/** "about 34 tokens/s here". */
export function estimatedSpeed(tokensPerSecond: number): string {
  return t("speed.about", { speed: significant(tokensPerSecond) });
}

/**
 * "34 tokens/s here, 50 with drafts"; null if nothing is measured. Beside the speed-up over all
 * replies (`compared`), the speed of the last drafted reply would contradict it.
 */
export function speedWords(
  { plain, drafted: last, measured }: ModelSpeed,
  compared = false,
): string | null {
  const drafted = compared && plain !== null ? null : last;
  if (!measured) return plain === null ? null : estimatedSpeed(plain);
  if (plain !== null && drafted === null) return t("speed.measured", { speed: significant(plain) });
  if (drafted === null) return null;
  if (plain === null) return t("speed.drafted", { drafted: significant(drafted) });
  return t("speed.both", { speed: significant(plain), drafted: significant(drafted) });
}

/** "1.6× faster with Starter draft, 12 replies", "no faster with Starter draft, 3 replies". */
export function pairWords({ draft, speedup }: PairSpeedup): string {
  const given = { draft: drafterName(draft.split(" · ")[0] ?? draft), replies: speedup.replies };
  return verdictOf(speedup) === "faster"
    ? t("speed.pairFaster", { ...given, factor: factorWords(speedup.factor) })
    : t("speed.pairNoFaster", given);
}
