/**
 * Position and dismissal of elements that float beside an anchor. Used as attachments of the
 * floating element, which compute the anchor when it opens; the style is `.floating` in app.css.
 */

/** A box on the screen, in CSS pixels from the window's corner. */
export interface Anchor {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Placement {
  /** Preferred side; the other one is used if only that has room. */
  side: "above" | "below";
  align: "start" | "middle" | "end";
  /** Distance to the anchor, and to the window's edge above or below. */
  gap: number;
}

/** Distance to the window's left and right edge. */
const MARGIN_PX = 8;

/** Smallest height below the opener; with less, a list opens above it. */
const MIN_HEIGHT_PX = 200;
const MAX_HEIGHT_ABOVE_PX = 400;
const LIST_GAP_PX = 6;
const LIST_MARGIN_PX = 16;

/** Positions an element beside an anchor, at its own size. */
export function beside(of: () => Anchor, { side, align, gap }: Placement) {
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

/** Positions a list below its opener, at least as wide, and limited in height by the window. */
export function dropdown(opener: () => Element, minWidth: number) {
  return (floating: HTMLElement) => {
    const box = opener().getBoundingClientRect();
    const width = Math.min(window.innerWidth - 2 * MARGIN_PX, Math.max(box.width, minWidth));
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

/** The position nearest to `left` that keeps an element horizontally in the window. */
function within(left: number, width: number): number {
  return Math.max(MARGIN_PX, Math.min(left, window.innerWidth - width - MARGIN_PX));
}

/** Closes a floating element on a press outside of it and its opener, and on `events`. */
export function closeOnOutsidePress(
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
    // Scroll events do not bubble, so they are captured.
    // The floating element may scroll itself.
    const onmove = ({ target }: Event) => {
      if (!(target instanceof Node && floating.contains(target))) close();
    };
    for (const event of events) window.addEventListener(event, onmove, { signal, capture: true });
    return () => over.abort();
  };
}
