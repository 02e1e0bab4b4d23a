/**
 * Schema of a trace file's lines, described in docs/trace.md. Messages are noun phrases for the
 * expected value. Unknown fields are dropped.
 */
import * as v from "valibot";
import type { Decision } from "../../bindings/Decision";
import type { Drafted } from "../../bindings/Drafted";
import type { DrafterKind } from "../../bindings/DrafterKind";
import type { Extra } from "../../bindings/Extra";
import type { ExtraKind } from "../../bindings/ExtraKind";
import type { Finish } from "../../bindings/Finish";
import type { LengthReason } from "../../bindings/LengthReason";
import type { Outcome } from "../../bindings/Outcome";
import type { Round } from "../../bindings/Round";
import type { Times } from "../../bindings/Times";

/** The version that is written, and the newest that can be read. */
export const VERSION = 3;

/** Most draft tokens of a round: more than any draft has, few enough to draw. */
const MAX_DRAFTED = 256;
const MAX_TOKEN = 65_536;

/** Schema of a union of string literals; the type checker verifies that all are listed. */
function words<Word extends string>(members: Record<Word, true>) {
  const known = Object.keys(members) as Word[];
  return v.picklist(known, `one of ${known.join(", ")}`);
}

const OUTCOMES = words<Outcome>({ accepted: true, rejected: true, discarded: true });
const DRAFTERS = words<DrafterKind>({
  model: true,
  head: true,
  ngram: true,
  recycling: true,
  forced: true,
});
const EXTRAS = words<ExtraKind>({ bonus: true, recovered: true, plain: true });
const FINISHES = words<Finish>({
  stop: true,
  length: true,
  context_full: true,
  cancelled: true,
  repeating: true,
});
const REASONS = words<LengthReason>({
  fixed: true,
  governed: true,
  probe: true,
  would_not_pay: true,
  cannot_pay: true,
  unlikely: true,
  step_too_dear: true,
  first_token: true,
  off: true,
  no_match: true,
  no_room: true,
  end_of_text: true,
  draft_context_full: true,
  drafter_failed: true,
});

function number(lowest: number, highest: number, expected: string) {
  return v.pipe(
    v.number(expected),
    v.finite(expected),
    v.minValue(lowest, expected),
    v.maxValue(highest, expected),
  );
}

function whole(highest: number, expected: string) {
  return v.pipe(number(0, highest, expected), v.integer(expected));
}

/** A field that may be null or missing, as in older files. */
function orNull<Schema extends v.GenericSchema>(schema: Schema) {
  return v.optional(v.nullable(schema), null);
}

const TEXT = v.string("a text");
const COUNT = whole(Number.MAX_SAFE_INTEGER, "a whole number from 0");
const PROBABILITY = number(0, 1, "a number from 0 to 1");
const MILLISECONDS = number(0, Number.MAX_VALUE, "a number of milliseconds from 0");
/** A duration. Subtractions may leave it slightly below zero. */
const DURATION = v.pipe(
  number(-1e-3, Number.MAX_VALUE, "a number of milliseconds from 0"),
  v.transform((ms) => Math.max(0, ms)),
);
const AMOUNT = number(0, Number.MAX_VALUE, "a number from 0");
const LENGTH = whole(MAX_DRAFTED, `a whole number from 0 to ${MAX_DRAFTED}`);
/** Expected tokens of a round: at most every drafted one, and the extra token. */
const EXPECTED = number(0, MAX_DRAFTED + 1, `a number from 0 to ${MAX_DRAFTED + 1}`);
const TOKEN_TEXT = v.pipe(
  TEXT,
  v.maxLength(MAX_TOKEN, `a text of at most ${MAX_TOKEN.toLocaleString("en")} characters`),
);

function listOf<Schema extends v.GenericSchema>(schema: Schema) {
  const expected = `a list of at most ${MAX_DRAFTED}`;
  return v.pipe(v.array(schema, "a list"), v.maxLength(MAX_DRAFTED, expected));
}

const DRAFTED = v.object(
  {
    token: COUNT,
    text: TOKEN_TEXT,
    parent: orNull(COUNT),
    draft_probability: PROBABILITY,
    target_probability: orNull(PROBABILITY),
    acceptance: orNull(PROBABILITY),
    outcome: OUTCOMES,
    drafter: DRAFTERS,
    survival: orNull(PROBABILITY),
  },
  "an object",
) satisfies v.GenericSchema<unknown, Drafted>;

const EXTRA = v.object(
  { token: COUNT, text: TOKEN_TEXT, kind: EXTRAS },
  "an object or null",
) satisfies v.GenericSchema<unknown, Extra>;

const DECISION = v.object(
  {
    before: orNull(LENGTH),
    chosen: LENGTH,
    drafting_ms: v.optional(listOf(MILLISECONDS), []),
    verify_ms: listOf(MILLISECONDS),
    acceptance: listOf(PROBABILITY),
    tokens_per_second: listOf(AMOUNT),
  },
  "an object or null",
) satisfies v.GenericSchema<unknown, Decision>;

const TIMES = v.object(
  {
    draft_ms: v.optional(DURATION, 0),
    verify_ms: v.optional(DURATION, 0),
    sample_ms: v.optional(DURATION, 0),
    rest_ms: v.optional(DURATION, 0),
  },
  "an object",
) satisfies v.GenericSchema<unknown, Times>;

/** A round except its time, which old files lack. */
export const ROUND = v.object(
  {
    index: COUNT,
    position: COUNT,
    drafted: listOf(DRAFTED),
    extra: orNull(EXTRA),
    draft_length: LENGTH,
    reason: REASONS,
    threshold: orNull(PROBABILITY),
    expected: orNull(EXPECTED),
    row_price: orNull(AMOUNT),
    staged: v.optional(v.boolean("true or false"), false),
    decision: orNull(DECISION),
    experts: orNull(AMOUNT),
    times: v.optional(TIMES, {}),
    at_ms: v.optional(MILLISECONDS),
  },
  "an object",
) satisfies v.GenericSchema<unknown, Omit<Round, "at_ms"> & { at_ms?: number | undefined }>;

export const HEADER = v.object(
  {
    version: v.pipe(COUNT, v.minValue(1, "a whole number from 1")),
    program: v.optional(TEXT, ""),
    target: orNull(TEXT),
    draft: orNull(TEXT),
    prompt: orNull(TEXT),
    created_at: orNull(COUNT),
  },
  "an object",
);

export type Header = v.InferOutput<typeof HEADER>;

/** Token ids as written by the terminal, or their number as written by the window. */
const TOKENS = v.union(
  [
    COUNT,
    v.pipe(
      v.array(COUNT),
      v.transform((ids) => ids.length),
    ),
  ],
  "a whole number from 0 or a list of them",
);

/** The reply's numbers, named as in the stored summary. */
export const DONE = v.object(
  {
    text: v.optional(TEXT),
    /** Null for a reply that was cut off; a missing field means that it ended normally. */
    finish: v.optional(v.nullable(FINISHES), "stop"),
    prompt_tokens: v.optional(COUNT),
    reused_tokens: v.optional(COUNT),
    restored_tokens: v.optional(COUNT),
    tokens: v.optional(TOKENS),
    rounds: v.optional(COUNT),
    drafted: v.optional(COUNT),
    judged: v.optional(COUNT),
    accepted: v.optional(COUNT),
    acceptance_rate: v.optional(v.nullable(PROBABILITY)),
    tokens_per_round: v.optional(AMOUNT),
    ttft_ms: v.optional(MILLISECONDS),
    tokens_per_second: v.optional(v.nullable(AMOUNT)),
    plain_tokens_per_second: v.optional(v.nullable(AMOUNT)),
    elapsed_ms: v.optional(MILLISECONDS),
    times: v.optional(TIMES),
  },
  "an object",
);

export type Done = v.InferOutput<typeof DONE>;
