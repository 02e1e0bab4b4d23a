/** Words for why a round drafted as many tokens as it did. */
import type { LengthReason } from "../bindings/LengthReason";

interface ReasonWords {
  /** A word or two, to stand beside a count. */
  short: string;
  /** The whole sentence. */
  long: string;
}

export const REASON_WORDS: Record<LengthReason, ReasonWords> = {
  fixed: { short: "as set", long: "The draft length of the settings." },
  governed: { short: "governed", long: "The draft length that promised the most tokens a second." },
  probe: {
    short: "trial",
    long: "A trial of what was not chosen: a short draft while drafting does not pay, or none while it does.",
  },
  would_not_pay: {
    short: "would not pay",
    long: "Drafting would have cost time: too few tokens are accepted for what drafting and verifying take.",
  },
  cannot_pay: {
    short: "cannot pay",
    long: "Drafting would cost time even if every token were accepted.",
  },
  unlikely: {
    short: "cut where unlikely",
    long: "The draft ended where all of it became unlikely to be accepted.",
  },
  first_token: {
    short: "first token",
    long: "The first token did not wait for the draft model, which had yet to read the prompt.",
  },
  off: { short: "drafting off", long: "Drafting was switched off." },
  no_match: {
    short: "no match",
    long: "Nothing to repeat was found, or less than was asked for.",
  },
  no_room: {
    short: "no room left",
    long: "The context or the maximum length left room for no more.",
  },
  end_of_text: { short: "end of the text", long: "The draft ended the text." },
  draft_context_full: {
    short: "draft's context full",
    long: "The draft model's own context was full.",
  },
  drafter_failed: {
    short: "draft failed",
    long: "The draft failed earlier in the reply, which went on without drafts.",
  },
};
