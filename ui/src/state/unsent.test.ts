import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { UnsentEdit } from "../bindings/UnsentEdit";
import { Unsent } from "./unsent.svelte";

/** A database that outlives the page. */
class FakeBackend {
  readonly texts = new Map<number | null, string>();
  saves = 0;
  unsent = () =>
    Promise.resolve([...this.texts].map(([conversation, text]) => ({ conversation, text })));
  saveUnsent = ({ conversation, text }: { conversation: number | null; text: string }) => {
    this.texts.set(conversation, text);
    this.saves += 1;
    return Promise.resolve();
  };
  readonly edits = new Map<number, UnsentEdit>();
  unsentEdits = () => Promise.resolve([...this.edits.values()]);
  saveUnsentEdit = (edit: UnsentEdit) => {
    this.edits.set(edit.message, edit);
    return Promise.resolve();
  };
  removeUnsentEdit = (message: number) => {
    this.edits.delete(message);
    return Promise.resolve();
  };
}

let kept: FakeBackend;

beforeEach(() => {
  vi.useFakeTimers();
  kept = new FakeBackend();
});
afterEach(() => vi.useRealTimers());

test("each conversation has its own text, which is saved after a pause and survives a restart", async () => {
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

test("text typed without a pause is saved at intervals, since the page may close at any moment", async () => {
  const unsent = new Unsent(kept);
  for (let typed = 1; typed <= 10; typed += 1) {
    unsent.set(1, "a".repeat(typed));
    await vi.advanceTimersByTimeAsync(200);
  }
  expect(kept.texts.get(1)?.length).toBeGreaterThan(6);
  expect(kept.saves).toBeLessThan(6);
});

test("text of an imported conversation stays on the page only", async () => {
  const unsent = new Unsent(kept);
  unsent.set(-1, "Hm");
  await vi.advanceTimersByTimeAsync(1000);
  expect([unsent.of(-1), kept.saves]).toEqual(["Hm", 0]);
});

test("an edit of a question survives a restart, and is removed once it is sent or cancelled", async () => {
  const unsent = new Unsent(kept);
  unsent.edit(7, { text: "Why n", kept: [] });
  unsent.edit(7, { text: "Why not?", kept: [3] });
  unsent.edit(8, { text: "When", kept: [] });
  unsent.edit(9, null);
  await vi.advanceTimersByTimeAsync(1000);
  unsent.edit(8, null);
  // Saves without waiting for timers, as a closing window does.
  await unsent.save();
  const again = new Unsent(kept);
  await again.load();
  expect(again.editOf(7)).toEqual({ text: "Why not?", kept: [3] });
  expect([again.editOf(8), kept.edits.size]).toEqual([null, 1]);
});
