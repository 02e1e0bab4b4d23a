//! Options of whole conversations.

use clap::Args;

use super::{EmbeddingArgs, PairDeviceArgs, SamplingArgs, SpeculationArgs, ThinkingArgs, VisionArgs};

/// Options of whole conversations, for `chat` and `serve`.
#[derive(Debug, Clone, Args)]
pub struct TalkArgs {
    /// Target model, which writes the replies [default: smollm2, or starter if that is missing].
    /// Without --draft, a target drafts with the MTP head in its own file, `smollm2` with
    /// `smollm2-head`, `starter` with `starter-draft`, and any other target with n-grams and
    /// token recycling
    #[arg(long, value_name = "MODEL")]
    pub target: Option<String>,
    /// Maximum length of a reply in tokens [default: as long as the context allows]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_tokens: Option<usize>,
    #[command(flatten)]
    pub embedding: EmbeddingArgs,
    #[command(flatten)]
    pub thinking: ThinkingArgs,
    #[command(flatten)]
    pub speculation: SpeculationArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub vision: VisionArgs,
    #[command(flatten)]
    pub device: PairDeviceArgs,
}

impl TalkArgs {
    /// These options for another target, without the models, files and lengths that were chosen for
    /// this one.
    #[must_use]
    pub fn for_target(&self, target: String) -> Self {
        Self {
            target: Some(target),
            speculation: self.speculation.without_models(),
            vision: self.vision.without_file(),
            device: self.device.without_context(),
            ..self.clone()
        }
    }
}
