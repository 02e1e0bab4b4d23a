/** Groups conversations under headings: pinned ones first, then days, then months. */
import type { Conversation } from "../bindings/Conversation";
import { monthName } from "../messages/numbers";
import { t } from "../messages/say";

export interface Group {
  heading: string;
  conversations: Conversation[];
}

/** Groups in the order of the list; `now` in milliseconds since 1970, days in local time. */
export function groupsOf(conversations: readonly Conversation[], now: number): Group[] {
  const groups: Group[] = [];
  for (const conversation of conversations) {
    const heading = conversation.pinned
      ? t("sidebar.pinned")
      : headingOf(conversation.updated_at, now);
    const group = groups.find((known) => known.heading === heading);
    if (group) group.conversations.push(conversation);
    else groups.push({ heading, conversations: [conversation] });
  }
  return groups;
}

function headingOf(updatedAt: number, now: number): string {
  const today = new Date(now);
  const daysAgo = (days: number) =>
    new Date(today.getFullYear(), today.getMonth(), today.getDate() - days).getTime();
  if (updatedAt >= daysAgo(0)) return t("sidebar.today");
  if (updatedAt >= daysAgo(1)) return t("sidebar.yesterday");
  if (updatedAt >= daysAgo(7)) return t("sidebar.lastWeek");
  if (updatedAt >= daysAgo(30)) return t("sidebar.lastMonth");
  return monthName(updatedAt);
}

/** Milliseconds until the next day of the calendar; at least one. */
export function untilMidnight(now: number): number {
  const today = new Date(now);
  const next = new Date(today.getFullYear(), today.getMonth(), today.getDate() + 1);
  return Math.max(1, next.getTime() - now);
}
