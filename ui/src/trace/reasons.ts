/** Words for why a round drafted as many tokens as it did. */
import type { LengthReason } from "../bindings/LengthReason";

interface ReasonWords {
  /** A word or two, to stand beside a count. */
  short: string;
  /** The whole sentence. */
  long: string;
}

export const REASON_WORDS: Record<LengthReason, ReasonWords> = {
  fixed: { short: "as set", long: "The draft length is fixed in the settings." },
  governed: { short: "fastest", long: "The draft length that was expected to be fastest." },
  probe: {
    short: "trial",
    long: "A trial of the alternative: a short draft while drafting is paused, or a round without drafts while it is not.",
  },
  would_not_pay: {
    short: "too slow",
    long: "Drafting would have been slower: too few tokens are accepted for the time that drafting and verifying take.",
  },
  cannot_pay: {
    short: "never faster",
    long: "Drafting would be slower even if every token were accepted.",
  },
  unlikely: {
    short: "cut short",
    long: "The draft ended where further tokens became unlikely to be accepted.",
  },
  first_token: {
    short: "first token",
    long: "The first token did not wait for the draft model, which had not read the prompt yet.",
  },
  off: { short: "drafting off", long: "Drafting was turned off." },
  no_match: {
    short: "no match",
    long: "Nothing to repeat was found, or fewer tokens than the draft length.",
  },
  no_room: {
    short: "no room left",
    long: "The context window or the maximum reply length left no room for more.",
  },
  end_of_text: { short: "end of text", long: "The draft reached the end of the text." },
  draft_context_full: {
    short: "draft's context full",
    long: "The draft model's context window was full.",
  },
  drafter_failed: {
    short: "draft failed",
    long: "Drafting failed earlier in this reply, which continued without drafts.",
  },
};
