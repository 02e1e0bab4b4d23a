/** Set-up of all tests of the page: frames cost nothing, whatever the computer's load. */
import { vi } from "vitest";
import type * as module from "./frames";

vi.mock("./frames", async (original) => {
  const real = await original<typeof module>();
  return { ...real, frames: new real.Frames(() => () => undefined) };
});

// Width for all columns of the window.
Object.defineProperty(globalThis, "innerWidth", {
  value: 1280,
  writable: true,
  configurable: true,
});
