/**
 * Lines of a list of choices: choices, one line that folds unusable ones, and further actions. Pure
 * functions without drawing.
 */
import type { Choice } from "./choice";

/** A further action below the choices. */
export interface More {
  label: string;
  run: () => void;
}

export interface Parts {
  plain: readonly Choice[];
  /** Choices hidden in one line until it is unfolded. */
  folded: readonly Choice[];
  more: readonly More[];
}

export type Line =
  { kind: "choice"; choice: Choice } | { kind: "fold" } | { kind: "more"; more: More };

/** Visible lines, from the top. */
export function linesOf({ plain, folded, more }: Parts, unfolded: boolean): Line[] {
  const choiceLine = (choice: Choice): Line => ({ kind: "choice", choice });
  return [
    ...plain.map(choiceLine),
    ...(folded.length > 0 ? [{ kind: "fold" } as const] : []),
    ...(unfolded ? folded.map(choiceLine) : []),
    ...more.map((more): Line => ({ kind: "more", more })),
  ];
}

/** Index of the first visible choice that matches; -1 without one. */
export function lineOf(lines: readonly Line[], like: (choice: Choice) => boolean): number {
  return lines.findIndex((line) => line.kind === "choice" && like(line.choice));
}
