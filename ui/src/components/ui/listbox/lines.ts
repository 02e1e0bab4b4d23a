/**
 * The lines of a list to choose from: its choices, one line that folds those that cannot be chosen,
 * and what else there is to do. Draws nothing.
 */
import type { Choice } from "./choice";

/** Something else there is to do, below the choices. */
export interface More {
  label: string;
  run: () => void;
}

export interface Parts {
  plain: readonly Choice[];
  /** Those that one line stands for until it is unfolded. */
  folded: readonly Choice[];
  more: readonly More[];
}

export type Line =
  { kind: "choice"; choice: Choice } | { kind: "fold" } | { kind: "more"; more: More };

/** What is in sight, from the top. */
export function linesOf({ plain, folded, more }: Parts, unfolded: boolean): Line[] {
  const choiceLine = (choice: Choice): Line => ({ kind: "choice", choice });
  return [
    ...plain.map(choiceLine),
    ...(folded.length > 0 ? [{ kind: "fold" } as const] : []),
    ...(unfolded ? folded.map(choiceLine) : []),
    ...more.map((more): Line => ({ kind: "more", more })),
  ];
}

/** Where the first choice like this is; -1 when none is in sight. */
export function lineOf(lines: readonly Line[], like: (choice: Choice) => boolean): number {
  return lines.findIndex((line) => line.kind === "choice" && like(line.choice));
}
