/**
 * Reports when an element is near the visible part of its scroller, so that the rest can stay
 * undrawn.
 */

/** Distance beyond the edges that counts as near: a turn of the mouse wheel. */
const MARGIN_PX = 400;

/** Selector of scrollers; without one, the window is used. */
const SCROLLER = "[data-scroller]";

const observers = new WeakMap<Element | Document, IntersectionObserver>();
const watchers = new WeakMap<Element, (near: boolean) => void>();

/**
 * Calls `onChange` soon, and then whenever the element comes near or leaves; returns a function
 * that stops it.
 */
export function watchNear(element: Element, onChange: (near: boolean) => void): () => void {
  const observer = observerOf(element.closest(SCROLLER));
  watchers.set(element, onChange);
  observer.observe(element);
  return () => {
    observer.unobserve(element);
    watchers.delete(element);
  };
}

function observerOf(root: Element | null): IntersectionObserver {
  const known = observers.get(root ?? document);
  if (known) return known;
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) watchers.get(target)?.(isIntersecting);
    },
    { root, rootMargin: `${MARGIN_PX}px 0px` },
  );
  observers.set(root ?? document, observer);
  return observer;
}
