/** Models and drafts in lists: their details, and the reasons for and against them. */
export const models = {
  "model.server": "on the server {server}",
  "model.noArchitecture": "no architecture",
  "model.context": "context {tokens} tokens",
  "draft.none": "None",
  "draft.noneDetail": "plain decoding, one token at a time",
  "draft.ngram": "N-gram",
  "draft.ngramDetail": "repeats what the conversation already said",
  "draft.mtpDetail": "the draft head in this model's own file",
  "merit.last_used": "last used",
  "merit.made_for_target": "made for this model",
  "merit.known_pair": "known pair",
  "merit.tried": "tried: {speedup}x",
  "merit.same_vocabulary": "same vocabulary",
  "merit.needs_no_model": "needs no model",
  "merit.may_not_fit": "may not fit in memory",
  "merit.no_faster": "tried: no faster",
} as const;
