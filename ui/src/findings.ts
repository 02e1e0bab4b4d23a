/** Findings of axe on a page, and its texts that were not translated, for tests. */
import axe from "axe-core";
import { vi } from "vitest";
import { de } from "./messages/de";
import { en } from "./messages/en";
import type { Key } from "./messages/say";

/** Rules that need layout; theme.test.ts and the test of the real window cover them. */
const NEED_LAYOUT = ["color-contrast", "scrollable-region-focusable", "target-size"];
const GRAVE = ["serious", "critical"];

/** Findings of axe, a line per element. */
export async function findings(): Promise<string[]> {
  // axe needs a running clock.
  vi.useRealTimers();
  const rules = Object.fromEntries(NEED_LAYOUT.map((rule) => [rule, { enabled: false }]));
  const { violations } = await axe.run(document, { rules, resultTypes: ["violations"] });
  return violations
    .filter(({ impact }) => GRAVE.includes(impact ?? ""))
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** Messages that also occur in recorded conversations: a sample prompt and search terms. */
const IN_CONVERSATIONS = /^welcome\.storyPrompt$|\.more$/;
/** English messages that differ in German: one of them on a German page was not updated. */
const ENGLISH = new Set(
  (Object.keys(en) as Key[])
    .filter((key) => !IN_CONVERSATIONS.test(key) && !Object.values<string>(de).includes(en[key]))
    .map((key): string => en[key]),
);

/** Texts on the page, visible or read aloud, that are English messages; tokens are the model's. */
export function englishTexts(): string[] {
  const texts: string[] = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement, textContent } = walker.currentNode;
    if (!parentElement?.closest(".reply .chip")) texts.push(textContent?.trim() ?? "");
  }
  for (const element of document.body.querySelectorAll("*")) {
    for (const name of ["data-tooltip", "aria-label", "placeholder", "aria-valuetext"]) {
      texts.push(element.getAttribute(name) ?? "");
    }
  }
  return texts.filter((text) => ENGLISH.has(text));
}
