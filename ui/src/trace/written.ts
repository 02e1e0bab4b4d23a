/** The settings of a stored reply, in words. */
import type { DraftLength } from "../bindings/DraftLength";
import type { ReplySettings } from "../bindings/ReplySettings";
import type { Sampling } from "../bindings/Sampling";
import type { Speculation } from "../bindings/Speculation";
import type { Threshold } from "../bindings/Threshold";
import type { Tree } from "../bindings/Tree";
import { count } from "../messages/numbers";
import { t } from "../messages/say";

export type Row = [name: string, value: string];

export function settingRows(written: ReplySettings): Row[] {
  const { speculation, sampling, stop = [], system_prompt, thinking } = written;
  const thought: Row[] =
    thinking === null ? [] : [[t("setting.thinking"), t(`written.${thinking ? "on" : "off"}`)]];
  const prompt: Row[] = system_prompt === "" ? [] : [[t("setting.system_prompt"), system_prompt]];
  const ends: Row[] = stop.length === 0 ? [] : [[t("setting.stop"), stop.join(" · ")]];
  const rows = [...speculationRows(speculation), ...samplingRows(sampling)];
  return [...rows, ...ends, ...thought, ...prompt];
}

function speculationRows(speculation: Speculation): Row[] {
  const length: Row = [t("setting.draft_length"), lengthWords(speculation.length)];
  if (speculation.length.type === "off") return [length];
  return [
    [t("setting.drafter"), t(`written.drafter.${speculation.drafter}`)],
    length,
    [t("setting.threshold"), thresholdWords(speculation.threshold)],
    [t("setting.tree"), treeWords(speculation.tree)],
    [t("setting.staged"), t(`written.${speculation.staged}`)],
    [t("setting.verification"), t(`written.${speculation.verification}`)],
  ];
}

/** Rows for settings with an effect: at temperature 0 there is no filtering and no sampling. */
function samplingRows(sampling: Sampling): Row[] {
  const penalty = penaltyRows(sampling);
  if (sampling.temperature === 0)
    return [[t("setting.temperature"), t("field.greedy")], ...penalty];
  return [
    [t("setting.temperature"), count(sampling.temperature, 6)],
    [t("setting.top_k"), sampling.top_k === 0 ? t("written.off") : count(sampling.top_k, 6)],
    [t("setting.top_p"), sampling.top_p === 1 ? t("written.off") : count(sampling.top_p, 6)],
    [t("setting.min_p"), sampling.min_p === 0 ? t("written.off") : count(sampling.min_p, 6)],
    ...penalty,
    [t("setting.mode"), t(`written.${sampling.mode}`)],
    [t("setting.seed"), sampling.seed === null ? t("settings.random") : String(sampling.seed)],
  ];
}

/** "1.03, last 128 tokens"; no rows for penalties that are off. */
export function penaltyRows(sampling: Sampling): Row[] {
  const last = (tokens: number) =>
    tokens === -1 ? t("settings.wholeText") : t("written.lastTokens", { count: tokens });
  const { repetition_penalty, repeat_last_n, dry_multiplier, dry_base } = sampling;
  const rows: Row[] = [];
  if (repetition_penalty !== 1 && repeat_last_n !== 0) {
    const value = `${count(repetition_penalty, 6)}, ${last(repeat_last_n)}`;
    rows.push([t("setting.repetition_penalty"), value]);
  }
  if (dry_multiplier > 0 && sampling.dry_penalty_last_n !== 0) {
    const { dry_allowed_length: length } = sampling;
    const numbers = `${count(dry_multiplier, 6)} × ${count(dry_base, 6)}`;
    const from = t("written.fromLength", { count: length });
    rows.push([t("written.dry"), `${numbers}, ${from}, ${last(sampling.dry_penalty_last_n)}`]);
  }
  for (const key of ["presence_penalty", "frequency_penalty"] as const) {
    // Older replies have none.
    if (sampling[key]) rows.push([t(`setting.${key}`), count(sampling[key], 6)]);
  }
  const biased = sampling.logit_bias?.length ?? 0;
  if (biased > 0) rows.push([t("setting.word_bias"), t("written.biased", { count: biased })]);
  return rows;
}

function lengthWords(length: DraftLength): string {
  return length.type === "fixed"
    ? t("written.fixed", { value: count(length.tokens) })
    : t(`written.${length.type}`);
}

function thresholdWords(threshold: Threshold): string {
  return threshold.type === "fixed"
    ? t("written.fixed", { value: count(threshold.chance, 6) })
    : t(`written.${threshold.type}`);
}

function treeWords(tree: Tree): string {
  return tree.type === "width"
    ? t("written.width", { value: count(tree.guesses) })
    : t(`written.${tree.type}`);
}
