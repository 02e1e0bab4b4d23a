/** Tokens of a trace in words: for hover cards, labels and screen readers. */
import type { DrafterKind } from "../bindings/DrafterKind";
import type { Round } from "../bindings/Round";
import { picture, visibleBlank, type ChipKind } from "./chips";
import { tokenAt, type TokenRef } from "./round";
import { drafterName } from "./names";
import { roundMs } from "./statistics";
import { depthsOf, longestPath, parentsOf, replacedBy, textAfter } from "./tree";
import { t } from "../messages/say";
import { count, decimal, percent } from "../messages/numbers";

export function outcomeWords(kind: ChipKind): string {
  return t(`outcome.${kind}`);
}

/** All facts about one token, ready to be shown. */
export interface TokenCard {
  kind: ChipKind;
  text: string;
  id: number;
  /** Position in the draft, from 1; null for the extra token. */
  position: number | null;
  /** Length of the draft's longest path. */
  draftLength: number;
  /** Rank among its siblings by draft probability, from 1; null without siblings. */
  rank: { number: number; of: number } | null;
  draftProbability: number | null;
  targetProbability: number | null;
  acceptance: number | null;
  drafter: string | null;
  /** Acceptance probability at which drafting stops; null without a threshold. */
  threshold: number | null;
  /** Texts of the rejected tokens that an emitted token replaces. */
  insteadOf: string[];
  /** The unverified rest of the draft behind a rejected token; empty for others. */
  unchecked: string;
  /** Number of the round, from 1. */
  round: number;
  roundMs: number;
  draftMs: number;
  verifyMs: number;
  /** Experts read per layer for the round; null in a dense model. */
  experts: number | null;
}

export function cardOf(rounds: readonly Round[], ref: TokenRef): TokenCard | null {
  const round = rounds[ref.round];
  const token = tokenAt(round, ref.slot);
  if (!round || !token) return null;
  const common = {
    draftLength: longestPath(round),
    round: round.index + 1,
    roundMs: roundMs(rounds, ref.round),
    draftMs: round.times.draft_ms,
    verifyMs: round.times.verify_ms,
    experts: round.experts ?? null,
  };
  if ("extra" in token) {
    return {
      ...common,
      kind: token.extra.kind,
      text: token.extra.text,
      id: token.extra.token,
      position: null,
      draftProbability: null,
      targetProbability: null,
      acceptance: null,
      drafter: null,
      rank: null,
      threshold: null,
      insteadOf: rejectedTexts(round, ref.slot),
      unchecked: "",
    };
  }
  const { drafted } = token;
  return {
    ...common,
    kind: drafted.outcome,
    text: drafted.text,
    id: drafted.token,
    position: (depthsOf(round)[ref.slot] ?? 0) + 1,
    rank: rankOf(round, ref.slot),
    draftProbability: drafted.draft_probability,
    targetProbability: drafted.target_probability,
    acceptance: drafted.acceptance,
    drafter: drafterWords(drafted.drafter, round.staged),
    threshold: round.threshold,
    insteadOf: drafted.outcome === "accepted" ? rejectedTexts(round, ref.slot) : [],
    unchecked: drafted.outcome === "rejected" ? textAfter(round, ref.slot) : "",
  };
}

function drafterWords(drafter: DrafterKind, staged: boolean): string {
  return t(staged && drafter === "model" ? "drafter.modelStaged" : `drafter.${drafter}`);
}

function rejectedTexts(round: Round, slot: number): string[] {
  return replacedBy(round, slot).map((rejected) => round.drafted[rejected]?.text ?? "");
}

function rankOf(round: Round, slot: number): TokenCard["rank"] {
  const parents = parentsOf(round);
  const siblings = [...parents.keys()].filter((other) => parents[other] === parents[slot]);
  if (siblings.length < 2) return null;
  const chance = (at: number) => round.drafted[at]?.draft_probability ?? 0;
  // Equal ones stay in draft order.
  const ranked = siblings.sort((a, b) => chance(b) - chance(a) || a - b);
  return { number: ranked.indexOf(slot) + 1, of: ranked.length };
}

/** The models of a reply: "Written by Starter, drafted by n-gram". */
export function authorWords(target: string, draft: string | null): string {
  return draft === null
    ? t("trace.writtenPlain", { target })
    : t("trace.writtenDrafted", { target, draft: drafterName(draft) });
}

/** One sentence for a screen reader. */
export function sentenceOf(card: TokenCard): string {
  const parts = [
    t("trace.token", {
      token: tokenName(card.text),
      outcome: outcomeWords(card.kind),
      round: count(card.round),
    }),
    card.position &&
      t("trace.tokenPosition", { position: count(card.position), length: count(card.draftLength) }),
    card.rank && t("trace.tokenRank", { number: count(card.rank.number), of: count(card.rank.of) }),
    card.acceptance !== null && t("trace.tokenAcceptance", { percent: percent(card.acceptance) }),
  ];
  return parts.filter(Boolean).join(", ");
}

/** A token's text within a sentence. */
export function tokenName(text: string): string {
  const words = text.trim();
  return shortened(words === "" ? JSON.stringify(text) : words, picture);
}

/** Longest text on a card, in characters. */
const MAX_SHOWN = 120;

/** A token's text with visible white space, cut if it is long. */
export function visible(text: string): string {
  return shortened(text, visibleBlank);
}

function shortened(text: string, show: (part: string) => string): string {
  if (text.length <= MAX_SHOWN) return show(text);
  // Never splits a surrogate pair.
  const cut = text.slice(0, MAX_SHOWN).replace(/[\ud800-\udbff]$/, "");
  return t("trace.shortened", { text: show(cut), count: text.length });
}

/** A probability with enough digits to distinguish small ones. */
export function probability(value: number): string {
  if (value > 0 && value < 0.001) return `< ${decimal(0.001, 3)}`;
  return decimal(value, 3);
}

/** A duration: "3.4 ms", "212 ms", "4.1 s", "42 s", "18:15", "2 h 12 min". */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds >= 3600) return hours(seconds);
  if (seconds >= 60) return clockWords(ms);
  if (ms >= 9950) return `${count(seconds)}\u00a0s`;
  if (ms >= 1000) return `${decimal(ms / 1000, 1)}\u00a0s`;
  return ms < 10 ? `${decimal(ms, 1)}\u00a0ms` : `${count(ms)}\u00a0ms`;
}

/** "18:15", "0:04": minutes and seconds. */
function clockWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** "2 h 12 min", of seconds. */
function hours(seconds: number): string {
  const minutes = Math.round(seconds / 60);
  return t("amount.hours", {
    hours: count(Math.floor(minutes / 60)),
    minutes: count(minutes % 60),
  });
}

/** A waiting time: "8 s", "2 min 5 s", "2 h 12 min". At least a second. */
export function seconds(ms: number): string {
  const all = Math.max(1, Math.round(ms / 1000));
  if (all >= 3600) return hours(all);
  if (all < 60) return t("amount.seconds", { seconds: count(all) });
  const [minutes, rest] = [count(Math.floor(all / 60)), count(all % 60)];
  return t("amount.minutes", { minutes, seconds: rest });
}
