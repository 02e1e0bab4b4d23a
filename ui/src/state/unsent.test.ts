import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Unsent } from "./unsent.svelte";

/** A database that outlives the page. */
class Kept {
  readonly texts = new Map<number | null, string>();
  saves = 0;
  unsent = () =>
    Promise.resolve([...this.texts].map(([conversation, text]) => ({ conversation, text })));
  saveUnsent = ({ conversation, text }: { conversation: number | null; text: string }) => {
    this.texts.set(conversation, text);
    this.saves += 1;
    return Promise.resolve();
  };
}

let kept: Kept;

beforeEach(() => {
  vi.useFakeTimers();
  kept = new Kept();
});
afterEach(() => vi.useRealTimers());

test("each conversation has its own text, which is saved once it rests and is there after a restart", async () => {
  const unsent = new Unsent(kept);
  for (const text of ["H", "He", "Hello"]) unsent.set(1, text);
  unsent.set(null, "New");
  expect([unsent.of(1), unsent.of(2), unsent.of(null)]).toEqual(["Hello", "", "New"]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(kept.saves).toBe(2);
  const again = new Unsent(kept);
  again.set(1, "typed before it was read");
  await again.load();
  expect([again.of(1), again.of(null)]).toEqual(["typed before it was read", "New"]);
});

test("what was opened from a file keeps its text on the page alone", async () => {
  const unsent = new Unsent(kept);
  unsent.set(-1, "Hm");
  await vi.advanceTimersByTimeAsync(1000);
  expect([unsent.of(-1), kept.saves]).toEqual(["Hm", 0]);
});
