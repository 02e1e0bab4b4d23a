/**
 * A round as a tree: which drafted token follows which, how deep it stands, and in what order the
 * round is read. A chain is a tree with one guess for every place.
 */
import type { Round } from "../bindings/Round";

/** The drafted token that one follows, by its slot; null for one that follows the text. */
export type Parent = number | null;

export function parentsOf(round: Round): Parent[] {
  if (isUnlinkedChain(round)) return round.drafted.map((_, slot) => (slot > 0 ? slot - 1 : null));
  // A parent stands before its children; one that does not cannot be followed.
  return round.drafted.map(({ parent }, slot) =>
    parent !== null && parent < slot ? parent : null,
  );
}

/**
 * Chains from before parents were recorded have none. Guesses that all follow the text have none
 * either, and are told by their outcomes: in a chain the first that was not accepted is rejected for
 * the extra token, or was never judged because the reply had ended, and nothing after it is judged.
 */
function isUnlinkedChain({ drafted, extra }: Round): boolean {
  if (drafted.some(({ parent }) => parent !== null)) return false;
  const end = drafted.findIndex(({ outcome }) => outcome !== "accepted");
  if (end < 0) return true;
  if (drafted.slice(end + 1).some(({ outcome }) => outcome !== "discarded")) return false;
  return drafted[end]?.outcome === "rejected" ? extra?.kind === "recovered" : extra === null;
}

/** Drafted tokens before each one on its path, by slot. */
export function depthsOf(round: Round): number[] {
  const depths: number[] = [];
  for (const parent of parentsOf(round)) {
    depths.push(parent === null ? 0 : (depths[parent] ?? 0) + 1);
  }
  return depths;
}

/** Tokens on the longest path. */
export function longestPath(round: Round): number {
  return depthsOf(round).reduce((longest, depth) => Math.max(longest, depth + 1), 0);
}

/** Rows of the heatmap that the round fills: its longest path, and the extra token on top. */
export function rowsOf(round: Round): number {
  return longestPath(round) + (round.extra ? 1 : 0);
}

/** Slots of the rejected guesses in whose place the token at `slot` stands. */
export function replacedBy(round: Round, slot: number): number[] {
  const parents = parentsOf(round);
  const accepted = round.drafted.findLastIndex(({ outcome }) => outcome === "accepted");
  const parent = parents[slot] ?? (slot === parents.length && accepted >= 0 ? accepted : null);
  return rejectedAfter(round, parents, parent);
}

function rejectedAfter(round: Round, parents: readonly Parent[], parent: Parent): number[] {
  return [...round.drafted.keys()].filter(
    (slot) => parents[slot] === parent && round.drafted[slot]?.outcome === "rejected",
  );
}

/** The slots that follow each one, and those that follow the text, in the order they were drafted. */
function childrenOf(parents: readonly Parent[]): Map<Parent, number[]> {
  const children = new Map<Parent, number[]>();
  parents.forEach((parent, slot) => {
    const beside = children.get(parent);
    if (beside) beside.push(slot);
    else children.set(parent, [slot]);
  });
  return children;
}

/**
 * The slots as they are read: each accepted token behind the rejected guesses for its place, those
 * for the extra token's place, the discarded ones, the extra token.
 */
export function readingOrder(round: Round): number[] {
  const children = childrenOf(parentsOf(round));
  const read = new Set<number>();
  const readRejected = (parent: Parent) => {
    for (const slot of children.get(parent) ?? []) {
      if (round.drafted[slot]?.outcome === "rejected") read.add(slot);
    }
  };
  let last: Parent = null;
  round.drafted.forEach(({ outcome }, slot) => {
    if (outcome !== "accepted") return;
    readRejected(last);
    read.add(slot);
    last = slot;
  });
  readRejected(last);
  for (const slot of round.drafted.keys()) read.add(slot);
  if (round.extra) read.add(round.drafted.length);
  return [...read];
}

/** The text of the likeliest path of the draft behind a token of it, or of the whole draft behind null. */
export function textAfter(round: Round, parent: Parent): string {
  const children = childrenOf(parentsOf(round));
  const chance = (slot: number) => round.drafted[slot]?.draft_probability ?? 0;
  let text = "";
  for (let last = parent; ;) {
    // Equal ones in the order they were drafted.
    const likeliest = children.get(last)?.reduce((a, b) => (chance(b) > chance(a) ? b : a));
    if (likeliest === undefined) return text;
    text += round.drafted[likeliest]?.text ?? "";
    last = likeliest;
  }
}
