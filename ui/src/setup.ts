/** For all tests of the page: its frames cost nothing, whatever the computer does meanwhile. */
import { vi } from "vitest";

vi.mock("./frames", async (original) => {
  const { Frames } = await original<typeof import("./frames")>();
  return { ...(await original<object>()), frames: new Frames(() => () => undefined) };
});
