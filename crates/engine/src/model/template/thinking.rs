//! The tags between which a model thinks before it answers, as its chat template spells them.

use serde::Serialize;

/// The variables by which a template is told whether the model shall think: as Qwen 3, SmolLM 3 and GLM name it, and
/// as DeepSeek and Granite do.
pub(super) const SWITCHES: [&str; 2] = ["enable_thinking", "thinking"];

/// What stands before a message in which a model thinks, where messages have channels: gpt-oss.
pub(in crate::model) const IN_A_CHANNEL: &str = "<|channel|>analysis<|message|>";

/// Where thinking begins and where it ends in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Thinking {
    pub open: &'static str,
    pub close: &'static str,
}

impl Thinking {
    /// The tags in use.
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

    /// The tags a template writes or takes out; most name the closing one only.
    pub(in crate::model) fn of(template: &str) -> Option<Self> {
        let written = Self::KNOWN.into_iter().find(|tags| template.contains(tags.close));
        // `channels` makes the first of them of what is thought in one.
        written.or_else(|| template.contains(IN_A_CHANNEL).then_some(Self::KNOWN[0]))
    }

    /// Whether a prompt ends with the opening tag, so that the reply begins inside of thinking.
    pub fn is_opened_by(self, prompt: &str) -> bool {
        prompt.trim_end().ends_with(self.open)
    }
}
