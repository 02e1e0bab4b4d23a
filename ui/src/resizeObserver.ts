/** A ResizeObserver for tests without layout, which never reports a change. */
import { vi } from "vitest";

export function stubResizeObserver() {
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      unobserve() {}
      disconnect() {}
    },
  );
}
