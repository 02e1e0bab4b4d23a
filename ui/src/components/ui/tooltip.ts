/**
 * Tooltips: the text of `data-tooltip` in a card near the element. While the element has the focus
 * or the pointer, the text is also its description for screen readers. Text that is visible uncut
 * gets no tooltip.
 */
import { beside } from "./popover";

const DELAY_MS = 400;
/** Time after a tooltip within which the next one opens without delay. */
const WARM_MS = 300;

/** Enables tooltips until the returned function is called. */
export function showTooltips(): () => void {
  const over = new AbortController();
  const { signal } = over;
  const card = document.createElement("div");
  card.classList.add("tooltip", "floating");
  card.role = "tooltip";
  let at: HTMLElement | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hiddenAt = -Infinity;

  function hide() {
    clearTimeout(timer);
    if (card.isConnected) hiddenAt = performance.now();
    at?.removeAttribute("aria-description");
    card.remove();
    at = null;
  }

  function show(element: HTMLElement, text: string) {
    card.textContent = text;
    // A modal dialog hides everything outside of it.
    (element.closest("dialog") ?? document.body).append(card);
    beside(() => element.getBoundingClientRect(), { side: "above", align: "middle", gap: 6 })(card);
  }

  function point(target: EventTarget | null) {
    const element =
      target instanceof Element ? target.closest<HTMLElement>("[data-tooltip]") : null;
    if (element === at) return;
    hide();
    const text = element?.dataset["tooltip"] ?? "";
    if (!element || text === "" || isRead(element, text)) return;
    at = element;
    const delay = performance.now() - hiddenAt < WARM_MS ? 0 : DELAY_MS;
    if (text !== element.getAttribute("aria-label")) element.setAttribute("aria-description", text);
    timer = setTimeout(() => {
      if (element.isConnected) show(element, text);
    }, delay);
  }

  const listen = <Type extends keyof DocumentEventMap>(
    type: Type,
    act: (event: DocumentEventMap[Type]) => void,
  ) => document.addEventListener(type, act, { signal, capture: true });
  listen("pointerover", ({ target, pointerType }) => {
    if (pointerType !== "touch") point(target);
  });
  listen("focusin", ({ target }) => {
    if (target instanceof Element && target.matches(":focus-visible")) point(target);
  });
  listen("focusout", hide);
  listen("pointerdown", hide);
  listen("keydown", hide);
  listen("scroll", hide);
  document.documentElement.addEventListener("pointerleave", hide, { signal });
  return () => {
    hide();
    over.abort();
  };
}

/** Whether the text is visible in the element and uncut. */
function isRead(element: HTMLElement, text: string): boolean {
  if (element.textContent.trim() !== text) return false;
  const all = [element, ...element.querySelectorAll<HTMLElement>("*")];
  return all.every(
    ({ scrollWidth, clientWidth }) => clientWidth === 0 || scrollWidth <= clientWidth,
  );
}
