import { expect, test } from "vitest";
import { groupsOf } from "./groups";

const at = (updated: Date, pinned = false) => ({
  id: updated.getTime(),
  title: "",
  pinned,
  updated_at: updated.getTime(),
  seen_from: null,
});

test("conversations stand under the day the calendar gives them, pinned ones apart", () => {
  const now = new Date(2026, 10, 20, 0, 30);
  const groups = groupsOf(
    [
      at(new Date(2025, 0, 1), true),
      at(new Date(2026, 10, 20, 0, 10)),
      at(new Date(2026, 10, 19, 23, 50)),
      at(new Date(2026, 10, 15)),
      at(new Date(2026, 10, 1)),
      at(new Date(2026, 1, 1)),
    ],
    now.getTime(),
  );
  expect(groups.map(({ heading }) => heading)).toEqual([
    "Pinned",
    "Today",
    "Yesterday",
    "Last week",
    "Last month",
    "Older",
  ]);
});

test("conversations of one day share a heading, in the order of the list", () => {
  const noon = new Date(2026, 10, 20, 12);
  const [group] = groupsOf([at(noon), at(new Date(2026, 10, 20, 8))], noon.getTime());
  expect(group?.conversations).toHaveLength(2);
  expect(group?.conversations[0]?.updated_at).toBe(noon.getTime());
});
