//! Tags around a model's reasoning, as its chat template spells them.

use serde::Serialize;

/// Template variables that switch reasoning: of Qwen 3, SmolLM 3 and GLM, and of DeepSeek and
/// Granite.
pub(super) const SWITCHES: [&str; 2] = ["enable_thinking", "thinking"];

/// Fields of messages with calls in which templates expect their reasoning, and how they read it:
/// Qwen 3, GLM and Gemma 4, and gpt-oss and LFM2.5.
pub(super) const FIELDS: [(&str, &str); 2] =
    [("reasoning_content", "reasoning_content"), ("thinking", "message.thinking")];

/// Header of a reasoning message in gpt-oss's channels.
pub(crate) const IN_A_CHANNEL: &str = "<|channel|>analysis<|message|>";

/// Tags before and after the reasoning in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Thinking {
    pub open: &'static str,
    pub close: &'static str,
}

impl Thinking {
    /// Supported tags.
    pub const KNOWN: [Self; 5] = [
        // Qwen 3, DeepSeek R1, SmolLM 3 and most others
        Self { open: "<think>", close: "</think>" },
        // Magistral
        Self { open: "[THINK]", close: "[/THINK]" },
        // Command A
        Self { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
        // Seed-OSS
        Self { open: "<seed:think>", close: "</seed:think>" },
        // Gemma 4
        Self { open: "<|channel>thought", close: "<channel|>" },
    ];

    /// Finds the tags in a template; most templates contain only the closing one.
    pub(crate) fn of(template: &str) -> Option<Self> {
        let written = Self::KNOWN.into_iter().find(|tags| template.contains(tags.close));
        // `channels` converts reasoning in channels to the first of these tags.
        written.or_else(|| template.contains(IN_A_CHANNEL).then_some(Self::KNOWN[0]))
    }

    /// Returns whether a prompt ends with the opening tag, so that the reply begins with reasoning.
    pub fn is_opened_by(self, prompt: &str) -> bool {
        prompt.trim_end().ends_with(self.open)
    }
}
