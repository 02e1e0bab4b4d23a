/** The search in documents that are too long for the context. */
import type { DocumentSearchStatus } from "../bindings/DocumentSearchStatus";
import type { Backend } from "../backend/backend";
import { polled } from "./polled";

const REFRESH_MS = 1000;

export class DocumentSearch {
  status = $state.raw<DocumentSearchStatus>({ passages: 0, embedded: 0, problem: null });

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Keeps the status current until the returned function is called. */
  watch(): () => void {
    return polled(
      () => this.#backend.documentSearchStatus(),
      (status) => (this.status = status),
      REFRESH_MS,
    );
  }
}
