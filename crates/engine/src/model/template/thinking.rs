//! The tags between which a model thinks before it answers, as its chat template spells them.

use serde::Serialize;

/// Where thinking begins and where it ends in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Thinking {
    pub open: &'static str,
    pub close: &'static str,
}

impl Thinking {
    /// The tags in use.
    pub const KNOWN: [Self; 4] = [
        // Qwen 3, DeepSeek R1, SmolLM 3 and most others
        Self { open: "<think>", close: "</think>" },
        // Magistral
        Self { open: "[THINK]", close: "[/THINK]" },
        // Command A
        Self { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
        // Seed-OSS
        Self { open: "<seed:think>", close: "</seed:think>" },
    ];

    /// The tags a template writes or takes out; most name the closing one only.
    pub(in crate::model) fn of(template: &str) -> Option<Self> {
        Self::KNOWN.into_iter().find(|tags| template.contains(tags.close))
    }

    /// Whether a prompt ends with the opening tag, so that the reply begins inside of thinking.
    pub fn is_opened_by(self, prompt: &str) -> bool {
        prompt.trim_end().ends_with(self.open)
    }
}
