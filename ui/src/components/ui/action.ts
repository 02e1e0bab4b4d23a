/** An entry of a menu. */
export interface Action {
  label: string;
  /** Tooltip that explains the label, or why the entry is disabled. */
  title?: string | null;
  testid: string;
  disabled: boolean;
  /** Shortcut of the entry, as formatted by `shortcut`. */
  keys?: string | null;
  /** Whether a line separates the entry from the one before. */
  divided?: boolean;
  /** Whether the action destroys something. */
  dangerous?: boolean;
  run: () => void;
}
