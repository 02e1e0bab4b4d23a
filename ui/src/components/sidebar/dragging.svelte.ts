/**
 * Dragging of a conversation in the sidebar with the mouse: onto a folder, or out of its folder.
 * Pointer events instead of the browser's drag and drop, which the window uses for files.
 */
import { createContext } from "svelte";
import type { Conversation } from "../../bindings/Conversation";

/** Distance in CSS pixels after which a press becomes a drag. */
const FROM_PX = 5;

/** Height at the scroller's edges in which a drag scrolls it, and by how much for each movement. */
const EDGE_PX = 28;
const SCROLL_PX = 10;

/** Where a conversation is dropped: the id of a folder, or null for none. */
type Destination = number | null;

export class Dragging {
  /** The dragged conversation. */
  conversation = $state.raw<Conversation | null>(null);
  /** The destination under the pointer; undefined if there is none. */
  over = $state<Destination | undefined>(undefined);
  /** Place of the pointer, in CSS pixels. */
  at = $state.raw({ x: 0, y: 0 });

  readonly #drop: (conversation: Conversation, folder: Destination) => void;

  constructor(drop: (conversation: Conversation, folder: Destination) => void) {
    this.#drop = drop;
  }

  /** Begins a press on a conversation, which may become a drag. */
  press({ button, pointerType, clientX, clientY }: PointerEvent, conversation: Conversation) {
    if (button !== 0 || pointerType === "touch") return;
    const over = new AbortController();
    const { signal } = over;
    const end = () => {
      over.abort();
      this.conversation = null;
      this.over = undefined;
    };
    const onmove = (event: PointerEvent) => {
      const far = Math.hypot(event.clientX - clientX, event.clientY - clientY) >= FROM_PX;
      if (!far && !this.conversation) return;
      this.conversation = conversation;
      this.#move(event.clientX, event.clientY);
    };
    const onup = () => {
      const destination = this.conversation ? this.over : undefined;
      if (this.conversation) swallowClick();
      end();
      if (destination !== undefined) this.#drop(conversation, destination);
    };
    const onkeydown = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || !this.conversation) return;
      event.preventDefault();
      event.stopPropagation();
      swallowClick();
      end();
    };
    window.addEventListener("pointermove", onmove, { signal });
    window.addEventListener("pointerup", onup, { signal });
    window.addEventListener("pointercancel", end, { signal });
    window.addEventListener("blur", end, { signal });
    window.addEventListener("keydown", onkeydown, { signal, capture: true });
  }

  #move(x: number, y: number) {
    this.at = { x, y };
    const under = document.elementFromPoint(x, y);
    const folder = under?.closest<HTMLElement>("[data-folder]")?.dataset["folder"];
    const destination = folder === undefined ? undefined : folder === "" ? null : Number(folder);
    const home = this.conversation?.folder ?? null;
    this.over = destination === home ? undefined : destination;
    scrollAt(under?.closest("[data-scroller]") ?? null, y);
  }
}

/** Scrolls at the upper and lower edge. */
function scrollAt(scroller: Element | null, y: number) {
  if (!scroller) return;
  const { top, bottom } = scroller.getBoundingClientRect();
  if (y < top + EDGE_PX) scroller.scrollTop -= SCROLL_PX;
  else if (y > bottom - EDGE_PX) scroller.scrollTop += SCROLL_PX;
}

/** Drops the click that follows the end of a drag. */
function swallowClick() {
  const over = new AbortController();
  const onclick = (event: MouseEvent) => {
    event.preventDefault();
    event.stopPropagation();
  };
  window.addEventListener("click", onclick, { signal: over.signal, capture: true });
  setTimeout(() => over.abort());
}

export const [getDragging, setDragging] = createContext<Dragging>();
