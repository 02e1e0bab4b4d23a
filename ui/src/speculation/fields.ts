/**
 * Choices for the settings of speculation, some with a number; used by the settings and the arena.
 */
import type { DraftLength } from "../bindings/DraftLength";
import type { Mode } from "../bindings/Mode";
import type { Threshold } from "../bindings/Threshold";
import type { Tree } from "../bindings/Tree";
import { facts } from "../bindings/facts";
import { t } from "../messages/say";

interface NumberField {
  value: number | null;
  min: number;
  max: number;
  step: number;
  testid: string;
  onchange: (value: number | null) => void;
}

export interface Field<Word extends string> {
  value: Word;
  options: readonly { value: Word; label: string }[];
  testid: string;
  onchange: (word: Word) => void;
  /** Number field of the choice, if it has one. */
  number: NumberField | null;
}

/** Initial draft length of Fixed. */
const USUAL_LENGTH = 4;

const LENGTHS: Record<DraftLength["type"], DraftLength> = {
  auto: { type: "auto" },
  fixed: { type: "fixed", tokens: USUAL_LENGTH },
  off: { type: "off" },
};
const THRESHOLDS: Record<Threshold["type"], Threshold> = {
  off: { type: "off" },
  auto: { type: "auto" },
  fixed: { type: "fixed", chance: 0.3 },
};
const TREES: Record<Tree["type"], Tree> = {
  off: { type: "off" },
  auto: { type: "auto" },
  width: { type: "width", guesses: 2 },
};

export function lengthField(
  length: DraftLength,
  testid: string,
  change: (length: DraftLength) => void,
): Field<DraftLength["type"]> {
  return {
    value: length.type,
    options: [
      { value: "auto", label: t("field.auto") },
      { value: "fixed", label: t("field.fixed") },
      { value: "off", label: t("field.off") },
    ],
    testid: `${testid}-mode`,
    onchange: (type) => change(LENGTHS[type]),
    number:
      length.type === "fixed"
        ? {
            value: length.tokens,
            min: 1,
            max: facts.maxDraftLength,
            step: 1,
            testid,
            onchange: (tokens) =>
              change({ type: "fixed", tokens: Math.round(tokens ?? USUAL_LENGTH) }),
          }
        : null,
  };
}

export function thresholdField(
  threshold: Threshold,
  testid: string,
  change: (threshold: Threshold) => void,
): Field<Threshold["type"]> {
  return {
    value: threshold.type,
    options: [
      { value: "auto", label: t("field.auto") },
      { value: "fixed", label: t("field.fixed") },
      { value: "off", label: t("field.off") },
    ],
    testid,
    onchange: (type) => change(THRESHOLDS[type]),
    number:
      threshold.type === "fixed"
        ? {
            value: threshold.chance,
            min: 0,
            max: 1,
            step: 0.01,
            testid: `${testid}-chance`,
            onchange: (chance) => change({ type: "fixed", chance: chance ?? 0 }),
          }
        : null,
  };
}

export function treeField(
  tree: Tree,
  testid: string,
  change: (tree: Tree) => void,
): Field<Tree["type"]> {
  return {
    value: tree.type,
    options: [
      { value: "auto", label: t("field.auto") },
      { value: "width", label: t("field.width") },
      { value: "off", label: t("field.off") },
    ],
    testid,
    onchange: (type) => change(TREES[type]),
    number:
      tree.type === "width"
        ? {
            value: tree.guesses,
            min: 2,
            max: facts.maxTreeWidth,
            step: 1,
            testid: `${testid}-guesses`,
            onchange: (guesses) => change({ type: "width", guesses: Math.round(guesses ?? 2) }),
          }
        : null,
  };
}

export function modeField(mode: Mode, testid: string, change: (mode: Mode) => void): Field<Mode> {
  return {
    value: mode,
    options: [
      { value: "fastest", label: t("field.fastest") },
      { value: "reproducible", label: t("field.reproducible") },
    ],
    testid,
    onchange: change,
    number: null,
  };
}
