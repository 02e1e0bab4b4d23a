/** For tests in a page that has no layout: nothing has a size that could change. */
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
