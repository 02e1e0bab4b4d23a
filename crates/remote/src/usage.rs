//! The numbers that servers report of a reply. One that cannot be true is taken for none.

use serde_json::Value;

/// Tokens of a reply, as the server counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub prompt: u32,
    /// Of these, what the server still had in its cache.
    pub reused: u32,
    /// Of the reply, with what was thought and not shown.
    pub reply: u32,
}

/// What became of drafted tokens. Who does not say which were judged has judged them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drafts {
    pub drafted: u32,
    pub judged: u32,
    pub accepted: u32,
}

/// Bytes that a token can have; the longest of known vocabularies are runs of spaces.
const TOKEN_BYTES: usize = 1024;

/// Tokens that are in no text: the end, marks of turns and of thinking.
const UNSEEN: usize = 64;

impl Usage {
    /// What `usage` says of a reply of so many bytes, thinking included.
    pub(crate) fn read(usage: &Value, bytes: usize) -> Option<Self> {
        let count =
            |pointer: &str| usage.pointer(pointer)?.as_u64().and_then(|count| u32::try_from(count).ok());
        let [prompt, reply] = [count("/prompt_tokens")?, count("/completion_tokens")?];
        let total =
            usage.get("total_tokens").map_or(Some(prompt.checked_add(reply)?), |_| count("/total_tokens"))?;
        let hidden = count("/completion_tokens_details/reasoning_tokens").unwrap_or(0);
        // A token has at least one byte of what is seen, or is one of few that have none.
        let seen = reply.saturating_sub(hidden) as usize;
        let possible = seen <= bytes + UNSEEN && bytes <= (reply as usize).saturating_mul(TOKEN_BYTES);
        let reused =
            count("/prompt_tokens_details/cached_tokens").filter(|&reused| reused <= prompt).unwrap_or(0);
        (prompt > 0 && prompt.checked_add(reply) == Some(total) && possible).then_some(Self {
            prompt,
            reused,
            reply,
        })
    }
}

impl Drafts {
    /// As our own server says it in `usage`, llama-server in `timings`, or vLLM in `metrics` where it is started with
    /// `--per-request-spec-decode-metrics`, of a reply of so many tokens.
    pub(crate) fn read(usage: &Value, timings: &Value, metrics: &Value, reply: Option<u32>) -> Option<Self> {
        let count = |of: &Value, name: &str| of[name].as_u64().and_then(|count| u32::try_from(count).ok());
        let ours = || {
            let [drafted, judged, accepted] =
                ["drafted", "judged", "accepted"].map(|name| count(usage, name));
            Some(Self { drafted: drafted?, judged: judged?, accepted: accepted? })
        };
        let theirs = |of: &Value, drafted: &str, accepted: &str| {
            let [drafted, accepted] = [drafted, accepted].map(|name| count(of, name));
            Some(Self { drafted: drafted?, judged: drafted?, accepted: accepted? })
        };
        let llama_server = || theirs(timings, "draft_n", "draft_n_accepted");
        let vllm =
            || theirs(&metrics["speculative_decoding"], "num_draft_tokens", "num_accepted_draft_tokens");
        let found = ours().or_else(llama_server).or_else(vllm)?;
        let ordered = found.drafted >= found.judged && found.judged >= found.accepted;
        (found.drafted > 0 && ordered && reply.is_none_or(|reply| found.accepted <= reply)).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_that_can_be_true_are_taken_as_they_are() {
        let usage = json!({ "prompt_tokens": 35, "completion_tokens": 40, "total_tokens": 75,
                            "prompt_tokens_details": { "cached_tokens": 30 } });
        assert_eq!(Usage::read(&usage, 160), Some(Usage { prompt: 35, reused: 30, reply: 40 }));
        let without_total =
            json!({ "prompt_tokens": 35, "completion_tokens": 40, "prompt_tokens_details": null });
        assert_eq!(Usage::read(&without_total, 160), Some(Usage { prompt: 35, reused: 0, reply: 40 }));
        let thought = json!({ "prompt_tokens": 5, "completion_tokens": 4000, "total_tokens": 4005,
                              "completion_tokens_details": { "reasoning_tokens": 3990 } });
        assert_eq!(Usage::read(&thought, 12), Some(Usage { prompt: 5, reused: 0, reply: 4000 }));
    }

    #[test]
    fn counts_that_cannot_be_true_are_taken_for_none() {
        let lies = [
            json!(null),
            json!("many"),
            json!({ "prompt_tokens": 1 }),
            json!({ "prompt_tokens": 0, "completion_tokens": 40 }),
            json!({ "prompt_tokens": -1, "completion_tokens": 40 }),
            json!({ "prompt_tokens": 1.5, "completion_tokens": 40 }),
            json!({ "prompt_tokens": 1, "completion_tokens": 1e12 }),
            json!({ "prompt_tokens": 4294967295u32, "completion_tokens": 40 }),
            json!({ "prompt_tokens": 35, "completion_tokens": 40, "total_tokens": 76 }),
            json!({ "prompt_tokens": 35, "completion_tokens": 40, "total_tokens": "75" }),
            json!({ "prompt_tokens": 35, "completion_tokens": 100000 }),
            json!({ "prompt_tokens": 35, "completion_tokens": 0 }),
        ];
        for lie in lies {
            assert_eq!(Usage::read(&lie, 160), None, "{lie}");
        }
    }

    #[test]
    fn drafts_are_read_in_every_spelling_and_not_where_they_contradict_themselves() {
        let ours = json!({ "drafted": 51, "judged": 34, "accepted": 16 });
        let found = Some(Drafts { drafted: 51, judged: 34, accepted: 16 });
        assert_eq!(Drafts::read(&ours, &json!(null), &json!(null), Some(40)), found);
        let theirs = json!({ "draft_n": 51, "draft_n_accepted": 16 });
        let all_judged = Some(Drafts { drafted: 51, judged: 51, accepted: 16 });
        assert_eq!(Drafts::read(&json!(null), &theirs, &json!(null), None), all_judged);
        let vllm =
            json!({ "speculative_decoding": { "num_draft_tokens": 51, "num_accepted_draft_tokens": 16 } });
        assert_eq!(Drafts::read(&json!(null), &json!(null), &vllm, Some(40)), all_judged);
        assert_eq!(Drafts::read(&ours, &theirs, &vllm, Some(40)), found);
        for (usage, timings) in [
            (json!(null), json!(null)),
            (json!({ "drafted": 0, "judged": 0, "accepted": 0 }), json!(null)),
            (json!({ "drafted": 5, "judged": 6, "accepted": 1 }), json!(null)),
            (json!({ "drafted": 6, "judged": 5, "accepted": 6 }), json!(null)),
            (json!({ "drafted": 60, "judged": 60, "accepted": 41 }), json!(null)),
            (json!({ "drafted": -1, "judged": -1, "accepted": -1 }), json!(null)),
            (json!(null), json!({ "draft_n": 3, "draft_n_accepted": 4 })),
        ] {
            assert_eq!(Drafts::read(&usage, &timings, &json!(null), Some(40)), None, "{usage} {timings}");
        }
    }
}
