/** Which sections of the inspector are folded, remembered from one start to the next. */

const REMEMBERED = "foretoken.inspector-folded";

export class Folds {
  #folded = $state.raw<ReadonlySet<string>>(remembered());

  has(section: string): boolean {
    return this.#folded.has(section);
  }

  toggle(section: string) {
    const folded = new Set(this.#folded);
    if (!folded.delete(section)) folded.add(section);
    this.#folded = folded;
    localStorage.setItem(REMEMBERED, JSON.stringify([...folded]));
  }
}

/** Nothing is folded where nothing readable was kept. */
function remembered(): Set<string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(REMEMBERED) ?? "[]");
    if (!Array.isArray(kept)) return new Set();
    return new Set(kept.filter((name): name is string => typeof name === "string"));
  } catch {
    return new Set();
  }
}
