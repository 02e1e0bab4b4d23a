//! What whole conversations need.

use clap::Args;

use super::{PairDeviceArgs, SamplingArgs, SpeculationArgs, ThinkingArgs};

/// Who replies in conversations, and how: for `chat` and `serve`.
#[derive(Debug, Args)]
pub struct TalkArgs {
    /// The model that writes [default: smollm2, or starter where that is missing]. Unless --draft says
    /// otherwise, `starter-draft` drafts for `starter`, `smollm2-head` for `smollm2`, and what needs no model for any
    /// other
    #[arg(long, value_name = "MODEL")]
    pub target: Option<String>,
    /// Longest reply in tokens [default: as long as the context allows]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_tokens: Option<usize>,
    #[command(flatten)]
    pub thinking: ThinkingArgs,
    #[command(flatten)]
    pub speculation: SpeculationArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub device: PairDeviceArgs,
}
