/** Short notes at the edge of the window, some with one thing to do. They go by themselves, notices when dismissed. */

const SHOWN_MS = 7000;

export interface Toast {
  id: number;
  text: string;
  action: { label: string; run: () => void } | null;
}

export class Toasts {
  list = $state.raw<Toast[]>([]);
  #nextId = 1;

  show(text: string, action: Toast["action"] = null) {
    const id = this.#add(text, action);
    setTimeout(() => this.dismiss(id), SHOWN_MS);
  }

  /** Shows what is told once: it stays until it was read. */
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
