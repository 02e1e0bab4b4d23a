/**
 * Visibility of the side panels. In a wide window they are columns, and a setting stores which are
 * open. In a narrow one they lie over the conversation, one at a time.
 */
import type { Settings } from "./settings.svelte";

export type Panel = "sidebar" | "inspector";

/** Window widths below which a panel has no column of its own, in CSS pixels. */
export const COLUMN_FROM: Readonly<Record<Panel, number>> = { sidebar: 800, inspector: 1100 };

const SETTING = { sidebar: "sidebar_open", inspector: "inspector_open" } as const;

export class Panels {
  /** Width of the window, in CSS pixels. */
  #width = $state(window.innerWidth);
  /** The panel that lies over the conversation. */
  #over = $state<Panel | null>(null);
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  resize(width: number) {
    this.#width = width;
    if (this.#over && !this.floats(this.#over)) this.#over = null;
  }

  /** Whether a panel lies over the conversation when it is open. */
  floats(panel: Panel): boolean {
    return this.#width < COLUMN_FROM[panel];
  }

  /** The panel that lies over the conversation now; null for none. */
  get over(): Panel | null {
    return this.#over;
  }

  isOpen(panel: Panel): boolean {
    if (this.floats(panel)) return this.#over === panel;
    return this.#settings.values.appearance[SETTING[panel]];
  }

  show(panel: Panel) {
    if (this.isOpen(panel)) return;
    if (this.floats(panel)) this.#over = panel;
    else this.#settings.changeAppearance({ [SETTING[panel]]: true });
  }

  hide(panel: Panel) {
    if (!this.isOpen(panel)) return;
    if (this.floats(panel)) this.#over = null;
    else this.#settings.changeAppearance({ [SETTING[panel]]: false });
  }

  toggle(panel: Panel) {
    if (this.isOpen(panel)) this.hide(panel);
    else this.show(panel);
  }
}
