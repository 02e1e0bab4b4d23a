/** Results of a reply's check. */
export const check = {
  "check.theTarget": "the target",
  "check.temperature0": "temperature 0",
  "check.seed": "seed {seed}",
  "check.identical":
    "{tokens, plural, one {Identical: without drafts {target} writes the same token ({how}).} other {Identical: without drafts {target} writes the same # tokens ({how}).}}",
  "check.diverge": "The texts diverge at token {number}.",
  "check.bug": "This is a bug in Foretoken: please report it.",
  "check.exactTie":
    "Exact tie: two tokens were equally likely, and rounding decided. This is not an error.",
  "check.nearTie":
    "Near tie: two tokens were almost equally likely, and rounding decided. This is not an error.",
  "check.otherOrder":
    "Another version of Foretoken wrote this reply and rounded differently, so nearly equal tokens can change places. Regenerate the reply to check drafting.",
  "check.why":
    "In the fastest sampling mode every run writes another text, so the texts themselves cannot be compared.",
  "check.nothingJudged": "No draft token was checked, so there is nothing to compare.",
  "check.same":
    "{judged, plural, one {Verified: recomputed without drafts, the one probability is identical.} other {Verified: recomputed without drafts, all # probabilities are identical.}}",
  "check.sameAlmost":
    "{judged, plural, one {Verified: recomputed without drafts, the one probability agrees (largest difference {difference}).} other {Verified: recomputed without drafts, all # probabilities agree (largest difference {difference}).}}",
  "check.differ":
    "{different, plural, one {Recomputed without drafts: # of {judged} probabilities differs, by {difference}.} other {Recomputed without drafts: # of {judged} probabilities differ, by {difference} at most.}}",
  "check.running": "Regenerating without drafts",
  "check.runningAt": "Regenerating without drafts: {done} of {total} tokens",
  "check.progress": "Progress of the check",
  "check.dismiss": "Dismiss the result",
  "check.show": "Show token {number} in the reply",
  "check.how":
    "Foretoken regenerated this reply without drafts and compared the two token by token.",
  "check.restored": "The check computed them again.",
  "check.thisReply": "This reply",
  "check.withoutDrafts": "{target} without drafts",
  "check.tokenId": "Token {id}",
  "check.logit": "logit {value}",
  "check.ended": "had already ended",
  "check.gap": "Gap",
} as const;
