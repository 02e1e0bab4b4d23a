/** Which sections of the inspector are collapsed, remembered from one start to the next. */

const REMEMBERED = "foretoken.inspector-folded";

export class Collapsed {
  #names = $state.raw<ReadonlySet<string>>(remembered());

  has(section: string): boolean {
    return this.#names.has(section);
  }

  toggle(section: string) {
    const names = new Set(this.#names);
    if (!names.delete(section)) names.add(section);
    this.#names = names;
    localStorage.setItem(REMEMBERED, JSON.stringify([...names]));
  }
}

/** Nothing is collapsed where nothing readable was kept. */
function remembered(): Set<string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(REMEMBERED) ?? "[]");
    if (!Array.isArray(kept)) return new Set();
    return new Set(kept.filter((name): name is string => typeof name === "string"));
  } catch {
    return new Set();
  }
}
