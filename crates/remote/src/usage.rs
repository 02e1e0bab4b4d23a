//! Token counts that servers report. Implausible counts are ignored.

use serde_json::Value;

/// Token counts of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub prompt: u32,
    /// Prompt tokens from the server's cache.
    pub reused: u32,
    /// Tokens of the reply, including hidden reasoning.
    pub reply: u32,
}

/// Counts of drafted tokens. A server that does not report how many were verified has verified all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drafts {
    pub drafted: u32,
    pub judged: u32,
    pub accepted: u32,
}

/// Most bytes of a token; the longest of known vocabularies are runs of spaces.
const MAX_TOKEN_BYTES: usize = 1024;

/// Most tokens without text: the end, and markers of messages and reasoning.
const MAX_HIDDEN_TOKENS: usize = 64;

impl Usage {
    /// Reads `usage` of a reply of `bytes` bytes, including reasoning.
    pub(crate) fn read(usage: &Value, bytes: usize) -> Option<Self> {
        let count =
            |pointer: &str| usage.pointer(pointer)?.as_u64().and_then(|count| u32::try_from(count).ok());
        let [prompt, reply] = [count("/prompt_tokens")?, count("/completion_tokens")?];
        let total =
            usage.get("total_tokens").map_or(Some(prompt.checked_add(reply)?), |_| count("/total_tokens"))?;
        let hidden = count("/completion_tokens_details/reasoning_tokens").unwrap_or(0);
        // A token has at least one byte of visible text, or is one of the few without.
        let seen = reply.saturating_sub(hidden) as usize;
        let possible =
            seen <= bytes + MAX_HIDDEN_TOKENS && bytes <= (reply as usize).saturating_mul(MAX_TOKEN_BYTES);
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
    /// Reads counts from our own server's `usage`, llama-server's `timings`, or vLLM's `metrics`
    /// (started with `--per-request-spec-decode-metrics`), for a reply of `reply` tokens.
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
    fn plausible_counts_are_used_unchanged() {
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
    fn implausible_counts_are_ignored() {
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
    fn draft_counts_are_read_in_every_format_and_contradictory_ones_are_ignored() {
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
