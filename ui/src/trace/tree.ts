/**
 * A round as a tree: parents, depths, and the reading order of its tokens. A chain is a tree with
 * one token at each depth.
 */
import type { Round } from "../bindings/Round";

/** Slot of the draft token before another; null if it follows the text. */
export type Parent = number | null;

export function parentsOf(round: Round): Parent[] {
  if (isUnlinkedChain(round)) return round.drafted.map((_, slot) => (slot > 0 ? slot - 1 : null));
  // A parent has a lower slot than its children; other values are ignored.
  return round.drafted.map(({ parent }, slot) =>
    parent !== null && parent < slot ? parent : null,
  );
}

/**
 * Whether a round is a chain recorded before parents were. A tree whose tokens all follow the text
 * has no parents either, so outcomes decide. In a chain, the first token not accepted is either
 * rejected for the extra token, or unverified because the reply ended; all tokens after it are
 * unverified.
 */
function isUnlinkedChain({ drafted, extra }: Round): boolean {
  if (drafted.some(({ parent }) => parent !== null)) return false;
  const end = drafted.findIndex(({ outcome }) => outcome !== "accepted");
  if (end < 0) return true;
  if (drafted.slice(end + 1).some(({ outcome }) => outcome !== "discarded")) return false;
  return drafted[end]?.outcome === "rejected" ? extra?.kind === "recovered" : extra === null;
}

/** Depth of each draft token, by slot: the number of tokens before it on its path. */
export function depthsOf(round: Round): number[] {
  const depths: number[] = [];
  for (const parent of parentsOf(round)) {
    depths.push(parent === null ? 0 : (depths[parent] ?? 0) + 1);
  }
  return depths;
}

/** Number of tokens on the longest path. */
export function longestPath(round: Round): number {
  return depthsOf(round).reduce((longest, depth) => Math.max(longest, depth + 1), 0);
}

/** Rows of the heatmap for a round: its longest path, and the extra token on top. */
export function rowsOf(round: Round): number {
  return longestPath(round) + (round.extra ? 1 : 0);
}

/** Slots of the rejected tokens that the token at `slot` replaces. */
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

/** Child slots by parent, and those that follow the text, in draft order. */
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
 * Slots in reading order: each accepted token after its rejected siblings, then those rejected for
 * the extra token, the discarded ones, and the extra token.
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

/** Text of the likeliest path behind a draft token; of the whole draft for null. */
export function textAfter(round: Round, parent: Parent): string {
  const children = childrenOf(parentsOf(round));
  const chance = (slot: number) => round.drafted[slot]?.draft_probability ?? 0;
  let text = "";
  for (let last = parent; ;) {
    // Among equal ones the first drafted.
    const likeliest = children.get(last)?.reduce((a, b) => (chance(b) > chance(a) ? b : a));
    if (likeliest === undefined) return text;
    text += round.drafted[likeliest]?.text ?? "";
    last = likeliest;
  }
}
