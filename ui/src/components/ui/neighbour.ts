/** Where the keyboard goes when an item of a list goes, by a button on it. */

/** The same button on the item after it, or before it; null where it is the only one. */
export function neighbour(button: Element): HTMLElement | null {
  const item = button.closest("li");
  const at = [...(item?.querySelectorAll("button") ?? [])].findIndex((one) => one === button);
  const beside = item?.nextElementSibling ?? item?.previousElementSibling;
  return beside?.querySelectorAll("button")[at] ?? null;
}
