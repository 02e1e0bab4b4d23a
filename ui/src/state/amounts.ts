/** Bytes, speeds and times in words. */
import { t } from "../messages/say";
import { count, decimal } from "../messages/numbers";

/** "8.8 MB", "4.9 GB": the shell's format, but never broken between lines. */
export function size(bytes: number): string {
  return bytes >= 1e9 ? `${decimal(bytes / 1e9, 1)}\u00a0GB` : `${decimal(bytes / 1e6, 1)}\u00a0MB`;
}

/** "about 3 min left"; null while the speed is unknown. */
export function timeLeft(bytes: number, bytesPerSecond: number): string | null {
  if (bytesPerSecond <= 0 || bytes <= 0) return null;
  const seconds = bytes / bytesPerSecond;
  if (seconds < 60)
    return t("amount.secondsLeft", { time: count(Math.max(1, Math.ceil(seconds))) });
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return t("amount.minutesLeft", { time: count(minutes) });
  if (minutes < 48 * 60)
    return t("amount.hoursLeft", {
      hours: count(Math.floor(minutes / 60)),
      minutes: count(minutes % 60),
    });
  return t("amount.daysLeft", { count: Math.round(minutes / (24 * 60)) });
}
