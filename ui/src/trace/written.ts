/** Words for the settings a reply was written with. */
import type { DrafterChoice } from "../bindings/DrafterChoice";
import type { DraftLength } from "../bindings/DraftLength";
import type { ReplySettings } from "../bindings/ReplySettings";
import type { Sampling } from "../bindings/Sampling";
import type { Speculation } from "../bindings/Speculation";
import type { Threshold } from "../bindings/Threshold";
import type { Tree } from "../bindings/Tree";

export type Row = [name: string, value: string];

const DRAFTERS: Record<DrafterChoice, string> = {
  combined: "combined",
  model: "draft model or head",
  ngram: "repetition (n-gram)",
  recycling: "recycling",
};

export function settingRows({ speculation, sampling, system_prompt }: ReplySettings): Row[] {
  const prompt: Row[] = system_prompt === "" ? [] : [["System prompt", system_prompt]];
  return [...speculationRows(speculation), ...samplingRows(sampling), ...prompt];
}

function speculationRows(speculation: Speculation): Row[] {
  const length: Row = ["Draft length", lengthWords(speculation.length)];
  if (speculation.length.type === "off") return [length];
  return [
    ["Drafting method", DRAFTERS[speculation.drafter]],
    length,
    ["Threshold", thresholdWords(speculation.threshold)],
    ["Tree", treeWords(speculation.tree)],
    ["Staged drafting", speculation.staged],
    ["Verification", speculation.verification === "block" ? "block" : "token by token"],
  ];
}

/** Only what has an effect: at temperature 0 nothing is filtered and nothing drawn. */
function samplingRows(sampling: Sampling): Row[] {
  const penalty: Row[] =
    sampling.repetition_penalty === 1
      ? []
      : [["Repetition penalty", String(sampling.repetition_penalty)]];
  if (sampling.temperature === 0) return [["Temperature", "0, greedy"], ...penalty];
  return [
    ["Temperature", String(sampling.temperature)],
    ["Top-k", sampling.top_k === 0 ? "off" : String(sampling.top_k)],
    ["Top-p", sampling.top_p === 1 ? "off" : String(sampling.top_p)],
    ["Min-p", sampling.min_p === 0 ? "off" : String(sampling.min_p)],
    ...penalty,
    ["Sampling mode", sampling.mode],
    ["Seed", sampling.seed === null ? "random" : String(sampling.seed)],
  ];
}

function lengthWords(length: DraftLength): string {
  return length.type === "fixed" ? `fixed, ${length.tokens}` : length.type;
}

function thresholdWords(threshold: Threshold): string {
  return threshold.type === "fixed" ? `fixed, ${threshold.chance}` : threshold.type;
}

function treeWords(tree: Tree): string {
  return tree.type === "width" ? `width, ${tree.guesses}` : tree.type;
}
