import { expect, test, vi } from "vitest";
import { BackendError, type Backend } from "../backend/backend";
import { Storage } from "./storage.svelte";

const deleteTraces = vi.fn<Backend["deleteTraces"]>();
const storage = (traceStorage: Backend["traceStorage"]) =>
  new Storage({ traceStorage, deleteTraces } as unknown as Backend);

test("the size of traces is known once it is fetched, and after each deletion", async () => {
  const held = storage(() => Promise.resolve({ bytes: 12.4e6, replies: 310 }));
  expect(held.used).toBeNull();
  await held.load();
  expect(held.used).toEqual({ bytes: 12.4e6, replies: 310 });
  deleteTraces.mockResolvedValueOnce({ bytes: 0, replies: 0 });
  await held.delete(30);
  expect(deleteTraces).toHaveBeenCalledExactlyOnceWith(30);
  expect(held.used?.replies).toBe(0);
});

test("a failed deletion keeps the numbers, with the reason", async () => {
  const held = storage(() => Promise.resolve({ bytes: 5, replies: 1 }));
  await held.load();
  deleteTraces.mockRejectedValueOnce(new BackendError("busy", "a reply is being written"));
  await held.delete(null);
  expect(held.problem).toBe("a reply is being written");
  expect(held.used?.replies).toBe(1);
  expect(held.busy).toBe(false);
});
