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

/**
 * The slots as they are read: each accepted token behind the rejected guesses for its place, those
 * for the extra token's place, the discarded ones, the extra token.
 */
export function readingOrder(round: Round): number[] {
  const parents = parentsOf(round);
  const order: number[] = [];
  let last: Parent = null;
  round.drafted.forEach(({ outcome }, slot) => {
    if (outcome !== "accepted") return;
    order.push(...rejectedAfter(round, parents, last), slot);
    last = slot;
  });
  order.push(...rejectedAfter(round, parents, last));
  order.push(...[...round.drafted.keys()].filter((slot) => !order.includes(slot)));
  if (round.extra) order.push(round.drafted.length);
  return order;
}

/** The text of the likeliest path of the draft behind a token of it, or of the whole draft behind null. */
export function textAfter(round: Round, parent: Parent): string {
  const parents = parentsOf(round);
  const chance = (slot: number) => round.drafted[slot]?.draft_probability ?? 0;
  let text = "";
  for (let last = parent; ;) {
    const next = [...parents.keys()].filter((slot) => parents[slot] === last);
    // Equal ones in the order they were drafted.
    const [likeliest] = next.sort((a, b) => chance(b) - chance(a) || a - b);
    if (likeliest === undefined) return text;
    text += round.drafted[likeliest]?.text ?? "";
    last = likeliest;
  }
}
