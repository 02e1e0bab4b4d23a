import { flushSync, mount, unmount } from "svelte";
import { afterEach, expect, test } from "vitest";
import type { Round } from "../bindings/Round";
import { extra, round, threeRounds } from "../trace/fixtures";
import { textOf } from "../trace/text";
import TokenBlock from "./TokenBlock.svelte";

let shown: ReturnType<typeof mount> | undefined;
afterEach(async () => {
  if (shown) await unmount(shown);
});

function show(rounds: readonly Round[]): HTMLElement[] {
  shown = mount(TokenBlock, { target: document.body, props: { rounds, first: 0 } });
  flushSync();
  return [...document.querySelectorAll<HTMLElement>("[data-testid=token-chip]")];
}

test("every token is a chip with its outcome", () => {
  expect(show(threeRounds).map(({ dataset }) => dataset["outcome"])).toEqual([
    "accepted",
    "accepted",
    "bonus",
    "rejected",
    "discarded",
    "recovered",
    "plain",
  ]);
});

test("what a screen reader reads is the text of the reply: no spaces added, no rejected token", () => {
  const rounds = [...threeRounds, round(3, { extra: extra("\n\nnext", "plain") })];
  show(rounds);
  for (const hidden of document.querySelectorAll("[aria-hidden=true]")) hidden.remove();
  expect(document.body.textContent).toBe(textOf(rounds));
});
