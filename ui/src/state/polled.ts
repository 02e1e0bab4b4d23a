/** Values that are asked for again and again while they are shown. */
import { frames } from "../frames";

/**
 * Shows what `ask` answers, in a frame, and asks again `pause` milliseconds later, until the
 * returned function is called. An error shows nothing new.
 */
export function polled<T>(
  ask: () => Promise<T>,
  show: (answer: T) => void,
  pause: number,
): () => void {
  let latest: { answer: T } | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let watching = true;
  const showLatest = () => {
    if (latest) show(latest.answer);
  };
  const refresh = async () => {
    latest = await ask().then(
      (answer) => ({ answer }),
      () => latest,
    );
    if (!watching) return;
    frames.request(showLatest);
    timer = setTimeout(() => void refresh(), pause);
  };
  void refresh();
  return () => {
    watching = false;
    clearTimeout(timer);
    frames.cancel(showLatest);
  };
}
