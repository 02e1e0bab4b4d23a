/** Bytes, speeds and times in words. */

/** "8.8 MB", "4.9 GB": as the shell writes them. */
export function size(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** "about 3 min left"; null while nobody can say. */
export function timeLeft(bytes: number, bytesPerSecond: number): string | null {
  if (bytesPerSecond <= 0 || bytes <= 0) return null;
  const seconds = bytes / bytesPerSecond;
  if (seconds < 60) return `${Math.max(1, Math.ceil(seconds))} s left`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min left`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
  return `${Math.round(minutes / (24 * 60))} days left`;
}
