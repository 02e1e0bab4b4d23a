import { expect, test } from "vitest";
import { groupsOf, untilMidnight } from "./groups";

const at = (updated: Date, pinned = false) => ({
  id: updated.getTime(),
  title: "",
  pinned,
  updated_at: updated.getTime(),
  seen_from: null,
  folder: null,
});

test("conversations are grouped by calendar day, pinned ones apart", () => {
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
    "Previous 7 days",
    "Previous 30 days",
    "February 2026",
  ]);
});

test("conversations of one day share a heading, in the order of the list", () => {
  const noon = new Date(2026, 10, 20, 12);
  const [group] = groupsOf([at(noon), at(new Date(2026, 10, 20, 8))], noon.getTime());
  expect(group?.conversations).toHaveLength(2);
  expect(group?.conversations[0]?.updated_at).toBe(noon.getTime());
});

test("older ones are grouped by month, and future dates count as today", () => {
  const now = new Date(2026, 10, 20, 12).getTime();
  const groups = groupsOf(
    [
      at(new Date(2031, 0, 1)),
      at(new Date(2026, 8, 30)),
      at(new Date(2026, 8, 1)),
      at(new Date(2025, 8, 1)),
    ],
    now,
  );
  expect(groups.map(({ heading }) => heading)).toEqual([
    "Today",
    "September 2026",
    "September 2025",
  ]);
});

test("the next day begins at midnight", () => {
  expect(untilMidnight(new Date(2026, 10, 20, 23, 59, 59).getTime())).toBe(1000);
  expect(untilMidnight(new Date(2026, 10, 20).getTime())).toBe(24 * 3_600_000);
});
