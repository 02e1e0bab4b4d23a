/**
 * Context menus of the window, opened by the secondary mouse button, the menu key or Shift+F10. The
 * browser's own menu can reload the page, so it opens in text fields only.
 */
import { flushSync, mount, unmount } from "svelte";
import MenuList from "./MenuList.svelte";
import type { Action } from "./action";
import type { Anchor } from "./popover";
import { copyText } from "./clipboard";
import { t } from "../../messages/say";

type Source = (target: Element) => readonly Action[];

const sources = new WeakMap<Element, Source>();

/** Attachment with the entries for an element, computed each time the menu opens. */
export function contextMenu(source: Source): (element: Element) => () => void {
  return (element) => {
    sources.set(element, source);
    return () => void sources.delete(element);
  };
}

/** Entries at an element, innermost first: of the selected text, and of all its ancestors. */
export function actionsAt(target: Element): Action[] {
  const groups: (readonly Action[])[] = [selectionActions(target)];
  for (let at: Element | null = target; at; at = at.parentElement) {
    groups.push(sources.get(at)?.(target) ?? []);
  }
  return groups.flatMap(([first, ...others]) =>
    first ? [{ ...first, divided: true }, ...others] : [],
  );
}

/** Enables context menus until the returned function is called. */
export function openContextMenus(): () => void {
  const over = new AbortController();
  const { signal } = over;
  let open: { restore: (focus: boolean) => void } | null = null;

  function show(target: Element, anchor: Anchor, focus: "first" | "list") {
    open?.restore(false);
    const actions = actionsAt(target);
    if (actions.length === 0) return;
    const focused = document.activeElement;
    const list = mount(MenuList, {
      // A modal dialog hides and disables everything outside of it.
      target: target.closest("dialog") ?? document.body,
      props: {
        label: t("menu.label"),
        actions,
        focus,
        anchor: () => anchor,
        placement: { side: "below", align: "start", gap: 2 },
        onclose: (back: boolean) => open?.restore(back),
      },
    });
    flushSync();
    open = {
      restore: (back) => {
        open = null;
        void unmount(list);
        if (back && focused instanceof HTMLElement) focused.focus({ preventScroll: true });
      },
    };
  }

  function oncontextmenu(event: MouseEvent) {
    const { target } = event;
    if (!(target instanceof Element) || isField(target)) return;
    event.preventDefault();
    // Some systems send this event after the key press handled in `onkeydown`.
    if (open && event.button !== 2) return;
    show(target, { left: event.clientX, top: event.clientY, width: 0, height: 0 }, "list");
  }

  function onkeydown(event: KeyboardEvent) {
    const isMenuKey = event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey);
    const target = document.activeElement;
    if (!isMenuKey || !target || isField(target)) return;
    event.preventDefault();
    event.stopPropagation();
    const { left, top, width, height } = target.getBoundingClientRect();
    show(target, { left, top, width, height }, "first");
  }

  document.addEventListener("contextmenu", oncontextmenu, { signal });
  document.addEventListener("keydown", onkeydown, { signal });
  return () => {
    open?.restore(false);
    over.abort();
  };
}

function isField(target: Element): boolean {
  return target.closest("input, textarea, [contenteditable]") !== null;
}

/** Entry to copy the selected text, if the menu opens on it. */
function selectionActions(target: Element): Action[] {
  const selection = getSelection();
  const text = selection?.toString() ?? "";
  if (text.trim() === "" || !selection?.containsNode(target, true)) return [];
  return [
    {
      label: t("menu.copySelection"),
      testid: "menu-copy-selection",
      disabled: false,
      run: () => void copyText(text),
    },
  ];
}
