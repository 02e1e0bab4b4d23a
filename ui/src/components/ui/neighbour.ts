/** Next focus after a button removes its list item. */

/** The button like `button` in the next or the previous item; null in the only item. */
export function neighbour(button: Element): HTMLElement | null {
  const item = button.closest("li");
  const at = [...(item?.querySelectorAll("button") ?? [])].findIndex((one) => one === button);
  const beside = item?.nextElementSibling ?? item?.previousElementSibling;
  return beside?.querySelectorAll("button")[at] ?? null;
}
