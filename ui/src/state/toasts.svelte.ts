/**
 * Toasts, some with one action. They disappear by themselves; notices stay until dismissed. Steps
 * can be undone for longer than their toast is shown.
 */
import { t } from "../messages/say";

const SHOWN_MS = 7000;
const UNDO_SHOWN_MS = 15_000;

export interface Toast {
  id: number;
  text: string;
  action: { label: string; run: () => void } | null;
}

interface Step {
  /** Id of the step's toast. */
  toast: number;
  undo: () => void;
}

export class Toasts {
  list = $state.raw<Toast[]>([]);
  /** Steps that can be undone, the newest last. */
  #steps = $state.raw<Step[]>([]);
  #nextId = 1;

  show(text: string, action: Toast["action"] = null) {
    const id = this.#add(text, action);
    setTimeout(() => this.dismiss(id), SHOWN_MS);
  }

  /**
   * Shows a toast that offers to undo a step; `undoLast` can undo it for as long as the page lives.
   */
  showUndoable(text: string, undo: () => void) {
    const toast = this.#nextId;
    const step = { toast, undo };
    this.#steps = [...this.#steps, step];
    this.#add(text, { label: t("common.undo"), run: () => this.#undo(step) });
    setTimeout(() => this.dismiss(toast), UNDO_SHOWN_MS);
  }

  get canUndo(): boolean {
    return this.#steps.length > 0;
  }

  /** Whether the toast of the last step is still shown. */
  get offersUndo(): boolean {
    const last = this.#steps.at(-1);
    return last !== undefined && this.list.some(({ id }) => id === last.toast);
  }

  undoLast() {
    const last = this.#steps.at(-1);
    if (last) this.#undo(last);
  }

  #undo(step: Step) {
    this.#steps = this.#steps.filter((one) => one !== step);
    this.dismiss(step.toast);
    step.undo();
  }

  /** Shows a notice until it is dismissed. */
  notify(text: string) {
    this.#add(text, null);
  }

  dismiss(id: number) {
    this.list = this.list.filter((toast) => toast.id !== id);
  }

  #add(text: string, action: Toast["action"]): number {
    const id = this.#nextId++;
    this.list = [...this.list, { id, text, action }];
    return id;
  }
}
