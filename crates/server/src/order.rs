//! A request for one reply, as the writer receives it.

use std::sync::Arc;

use foretoken_engine::owner::Owner;
use foretoken_engine::session::{ToolChoice, ToolUse};
use foretoken_engine::speculation::Speculation;
use foretoken_grammar::Grammar;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_model::{ChatMessage, Picture, PlacedPicture, Role};

use crate::picture_file::PictureFile;

/// Prompt and options of one reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub prompt: Prompt,
    pub sampling: SamplingChoices,
    /// Longest reply in tokens; `None` for the writer's own limit.
    pub max_tokens: Option<usize>,
    /// `true` if the reasoning comes apart from the text.
    pub separates_thinking: bool,
    /// Reasoning before the reply: on or off, if the model's template has a switch for it; `None`
    /// for the default.
    pub thinking: Option<bool>,
    /// Texts that end the reply and are not part of it.
    pub stop: Vec<String>,
    /// `true` to continue after the model's end-of-text token.
    pub ignore_end: bool,
    /// Client whose texts alone are continued.
    pub owner: Owner,
    /// Grammar of the reply; `None` for any text.
    pub grammar: Option<Grammar>,
    /// Tools that the model may call; `None` for none.
    pub tools: Option<ToolUse>,
    /// Number of replies to write one after the other, 1 to [`MAX_CHOICES`].
    pub choices: usize,
    /// Number of alternatives whose log probabilities are sent, beside those of the reply's tokens;
    /// `None` for no log probabilities.
    pub logprobs: Option<usize>,
    /// Files of pictures in the conversation, until they are read.
    pub pictures: Vec<PictureFile>,
}

/// Most replies to one request.
pub const MAX_CHOICES: usize = 8;

#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// Conversation to reply to, formatted by the model's own template.
    Conversation(Vec<ChatMessage>),
    /// Text to continue as it is.
    Text(String),
}

/// Sampling options that a client chose; see [`Sampling`] for units and ranges.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SamplingChoices {
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    pub repeat_last_n: Option<i32>,
    pub presence_penalty: Option<f32>,
    pub frequency_penalty: Option<f32>,
    pub logit_bias: Option<Vec<(TokenId, f32)>>,
    pub dry_multiplier: Option<f32>,
    pub dry_base: Option<f32>,
    pub dry_allowed_length: Option<u32>,
    pub dry_penalty_last_n: Option<i32>,
    pub dry_sequence_breakers: Option<Vec<String>>,
    pub stop_loops: Option<bool>,
    pub seed: Option<u32>,
}

/// Options used where the client chose none.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    pub sampling: Sampling,
    pub speculation: Speculation,
    /// See [`Order::thinking`].
    pub thinking: Option<bool>,
    /// Longest reply in tokens; `None` means as long as the context allows.
    pub max_tokens: Option<usize>,
    /// `true` if the reply to a question begins with a call of a tool, where the client lets the
    /// model decide.
    pub tool_first: bool,
}

impl SamplingChoices {
    /// Merges the client's choices over `base`. A seed asks for the same text again, whichever
    /// draft runs, so it selects the reproducible mode.
    pub(crate) fn over(self, base: &Sampling) -> Sampling {
        let seed = self.seed.or(base.seed);
        let has_penalties = self.repetition_penalty.is_some() || self.dry_multiplier.is_some();
        Sampling {
            temperature: self.temperature.unwrap_or(base.temperature),
            top_k: self.top_k.unwrap_or(base.top_k),
            top_p: self.top_p.unwrap_or(base.top_p),
            min_p: self.min_p.unwrap_or(base.min_p),
            automatic_penalties: base.automatic_penalties && !has_penalties,
            repetition_penalty: self.repetition_penalty.unwrap_or(base.repetition_penalty),
            repeat_last_n: self.repeat_last_n.unwrap_or(base.repeat_last_n),
            presence_penalty: self.presence_penalty.unwrap_or(base.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(base.frequency_penalty),
            logit_bias: self.logit_bias.unwrap_or_else(|| base.logit_bias.clone()),
            dry_multiplier: self.dry_multiplier.unwrap_or(base.dry_multiplier),
            dry_base: self.dry_base.unwrap_or(base.dry_base),
            dry_allowed_length: self.dry_allowed_length.unwrap_or(base.dry_allowed_length),
            dry_penalty_last_n: self.dry_penalty_last_n.unwrap_or(base.dry_penalty_last_n),
            dry_sequence_breakers: self
                .dry_sequence_breakers
                .unwrap_or_else(|| base.dry_sequence_breakers.clone()),
            stop_loops: self.stop_loops.unwrap_or(base.stop_loops),
            seed,
            mode: if seed.is_some() { Mode::Reproducible } else { base.mode },
        }
    }
}

impl Order {
    /// Orders a reply to `prompt` without options.
    pub fn new(prompt: Prompt) -> Self {
        Self {
            prompt,
            sampling: SamplingChoices::default(),
            max_tokens: None,
            separates_thinking: false,
            thinking: None,
            stop: Vec::new(),
            ignore_end: false,
            owner: Owner::default(),
            grammar: None,
            tools: None,
            choices: 1,
            logprobs: None,
            pictures: Vec::new(),
        }
    }

    /// Reads the pictures into their messages.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn read_pictures<E>(&mut self, read: impl Fn(&[u8]) -> Result<Picture, E>) -> Result<(), E> {
        let Prompt::Conversation(messages) = &mut self.prompt else { return Ok(()) };
        for PictureFile { message, at, bytes, detail } in std::mem::take(&mut self.pictures) {
            let picture = Arc::new(read(&bytes)?);
            if let Some(message) = messages.get_mut(message) {
                message.pictures.push(PlacedPicture { at, picture, detail });
            }
        }
        Ok(())
    }

    /// Messages with pictures.
    pub(crate) fn with_pictures(&self) -> Vec<ChatMessage> {
        let Prompt::Conversation(messages) = &self.prompt else { return Vec::new() };
        messages.iter().filter(|message| !message.pictures.is_empty()).cloned().collect()
    }

    /// Lets the reply to a question begin with a call, unless the client decides about that.
    /// Messages after a call's result, such as an agent's remarks, are no question.
    pub(crate) fn begin_with_call(&mut self) {
        let Prompt::Conversation(messages) = &self.prompt else { return };
        let mut new = messages.iter().rev().take_while(|message| message.role != Role::Assistant);
        let is_asked = messages.last().is_some_and(|last| last.role == Role::User)
            && new.all(|message| message.role != Role::Tool);
        if let Some(tools) = self.tools.as_mut().filter(|tools| is_asked && tools.choice == ToolChoice::Auto)
        {
            tools.choice = ToolChoice::Required;
            // Small models do not stop calling by themselves.
            tools.parallel = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_options_use_the_defaults_and_a_seed_makes_the_reply_reproducible() {
        let base = Sampling { top_k: 40, ..Sampling::default() };
        assert_eq!(SamplingChoices::default().over(&base), base);
        let chosen = SamplingChoices { temperature: Some(0.1), seed: Some(7), ..SamplingChoices::default() };
        let expected = Sampling { temperature: 0.1, seed: Some(7), mode: Mode::Reproducible, ..base.clone() };
        assert_eq!(chosen.over(&base), expected);
        let penalised = SamplingChoices { dry_multiplier: Some(0.5), ..SamplingChoices::default() };
        assert!(base.automatic_penalties && !penalised.over(&base).automatic_penalties);
        let seeded = Sampling { seed: Some(3), ..base };
        assert_eq!(SamplingChoices::default().over(&seeded).mode, Mode::Reproducible);
    }
}
