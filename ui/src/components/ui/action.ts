/** Something a menu offers to do. */
export interface Action {
  label: string;
  /** Says more than the label while the pointer rests on it. */
  title: string;
  testid: string;
  disabled: boolean;
  run: () => void;
}
