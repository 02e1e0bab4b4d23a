/**
 * What floats over the page beside what it belongs to: where it stands, and what sends it away.
 * Attached to what floats, and asked for what it belongs to when that floats; how it looks is
 * `.floating` in app.css.
 */

/** A box on the screen, in CSS pixels from the window's corner. */
export interface Anchor {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Standing {
  /** Where it stands unless there is room on the other side alone. */
  side: "above" | "below";
  align: "start" | "middle" | "end";
  /** Kept free to the anchor, and to the window's edge above or below. */
  gap: number;
}

/** Kept free at the window's left and right. */
const MARGIN_PX = 8;

/** A list goes above its opener where there is less than this below. */
const MIN_HEIGHT_PX = 200;
const MAX_HEIGHT_ABOVE_PX = 400;
const LIST_GAP_PX = 6;
const LIST_MARGIN_PX = 16;

/** Stands beside an anchor: something as large as what is in it. */
export function beside(of: () => Anchor, { side, align, gap }: Standing) {
  return (floating: HTMLElement) => {
    const anchor = of();
    const { width, height } = floating.getBoundingClientRect();
    const above = anchor.top - gap - height;
    const below = anchor.top + anchor.height + gap;
    const fits = side === "above" ? above >= gap : below + height + gap <= window.innerHeight;
    const free = anchor.width - width;
    const shift = { start: 0, middle: free / 2, end: free }[align];
    const left = within(anchor.left + shift, width);
    const top = fits === (side === "above") ? above : below;
    Object.assign(floating.style, { left: `${left}px`, top: `${top}px` });
  };
}

/** Hangs from its opener: a list at least as wide, that may be as high as there is room. */
export function hanging(opener: () => Element, leastWidth: number) {
  return (floating: HTMLElement) => {
    const box = opener().getBoundingClientRect();
    const width = Math.min(window.innerWidth - 2 * MARGIN_PX, Math.max(box.width, leastWidth));
    const below = window.innerHeight - box.bottom - LIST_MARGIN_PX;
    const above = Math.min(box.top - LIST_MARGIN_PX, MAX_HEIGHT_ABOVE_PX);
    Object.assign(floating.style, {
      left: `${within(box.left, width)}px`,
      width: `${width}px`,
      ...(below < MIN_HEIGHT_PX
        ? {
            bottom: `${window.innerHeight - box.top + LIST_GAP_PX}px`,
            maxHeight: `${above}px`,
          }
        : { top: `${box.bottom + LIST_GAP_PX}px`, maxHeight: `${below}px` }),
    });
  };
}

/** The nearest place to the wanted one that is in the window, from left to right. */
function within(left: number, width: number): number {
  return Math.max(MARGIN_PX, Math.min(left, window.innerWidth - width - MARGIN_PX));
}

/** Goes when something is pressed outside of it and of its opener, and when one of these happens. */
export function dismissing(
  opener: () => Element,
  close: () => void,
  events: readonly ("resize" | "scroll")[] = [],
): (floating: Element) => () => void {
  return (floating) => {
    const over = new AbortController();
    const { signal } = over;
    const onpointerdown = ({ target }: PointerEvent) => {
      const inner = [opener(), floating];
      if (!inner.some((of) => target instanceof Node && of.contains(target))) close();
    };
    window.addEventListener("pointerdown", onpointerdown, { signal });
    // What scrolls tells nobody above it, except on the way down.
    for (const event of events) window.addEventListener(event, close, { signal, capture: true });
    return () => over.abort();
  };
}
