/** Short notes at the edge of the window that go by themselves, some with one thing to do. */

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
    const id = this.#nextId++;
    this.list = [...this.list, { id, text, action }];
    setTimeout(() => this.dismiss(id), SHOWN_MS);
  }

  dismiss(id: number) {
    this.list = this.list.filter((toast) => toast.id !== id);
  }
}
