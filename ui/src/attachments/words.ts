/** How large files are, in words. */
import type { TokenCount } from "../bindings/TokenCount";
import { count, decimal, percent } from "../messages/numbers";
import { t } from "../messages/say";

/** What takes less of the context, and less time, is not worth a word. */
const SHARE = 0.1;
const SECONDS = 3;

/** "1,234 tokens, 15 % of the context, about 12 s to read". `context` in tokens, 0 where it is not known. */
export function tokenWords(
  { tokens, exact }: TokenCount,
  context: number,
  rate: number | null,
): string {
  const size = t(exact ? "attach.tokens" : "attach.aboutTokens", { count: tokens });
  const share = context > 0 ? tokens / context : 0;
  const seconds = rate === null ? 0 : tokens / rate;
  const parts = [size];
  if (share >= SHARE) parts.push(t("attach.share", { share: percent(share) }));
  if (seconds >= SECONDS) parts.push(timeWords(seconds));
  return parts.join(", ");
}

function timeWords(seconds: number): string {
  if (seconds < 90) return t("attach.seconds", { time: count(Math.round(seconds)) });
  return t("attach.minutes", { time: count(Math.round(seconds / 60)) });
}

/** "12.3 kB" of text. */
export function byteWords(bytes: number): string {
  if (bytes < 1000) return `${count(bytes)} B`;
  if (bytes < 1e6) return `${decimal(bytes / 1e3, 1)} kB`;
  return `${decimal(bytes / 1e6, 1)} MB`;
}
