/** An entry of a menu. */
export interface Action {
  label: string;
  /** Explains the label, or says why the entry is disabled, in a tooltip. */
  title?: string | null;
  testid: string;
  disabled: boolean;
  /** Its shortcut, as `shortcut` writes it. */
  keys?: string | null;
  /** Whether a line separates it from the entry before. */
  divided?: boolean;
  /** Whether it destroys something. */
  dangerous?: boolean;
  run: () => void;
}
