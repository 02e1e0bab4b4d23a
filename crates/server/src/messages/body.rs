//! Bodies of requests for messages. `cache_control`, `metadata` and the like change no text and are
//! ignored.

use foretoken_grammar::Grammar;
use serde::Deserialize;
use serde_json::Value;

use super::block::{Message, Texts, conversation};
use super::tools::{ToolBody, ToolChoiceBody, tool_use};
use crate::fields::{self, body, max_tokens, stops, top_k, whole};
use crate::order::{Order, SamplingChoices};
use crate::protocol::{ParsedRequest, ReplyFormat};
use crate::refusal::Refusal;

/// Fields that would change the reply.
const UNSUPPORTED: [&str; 3] = ["container", "mcp_servers", "output_format"];

/// Beginning of system blocks with which Claude Code marks each request. They differ in every
/// request, so that nothing after them could be read from a cache.
const MARK: &str = "x-anthropic-";

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    system: Option<Texts>,
    stream: Option<bool>,
    #[serde(default, deserialize_with = "whole")]
    max_tokens: Option<i64>,
    temperature: Option<f32>,
    #[serde(default, deserialize_with = "whole")]
    top_k: Option<i64>,
    top_p: Option<f32>,
    stop_sequences: Option<Vec<String>>,
    tools: Option<Vec<ToolBody>>,
    tool_choice: Option<ToolChoiceBody>,
    thinking: Option<Thinking>,
    output_config: Option<OutputConfig>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Enabled {},
    Disabled {},
    /// The model decides.
    Adaptive {},
}

#[derive(Deserialize)]
struct OutputConfig {
    format: Option<OutputFormat>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OutputFormat {
    JsonSchema { schema: Value },
}

/// Parses a request for a message, or for the length of its prompt.
///
/// # Errors
/// Returns the problem in one sentence.
pub fn read(json: &[u8]) -> Result<ParsedRequest, Refusal> {
    body::<Body>(json, &UNSUPPORTED)?.asked()
}

impl Body {
    fn asked(self) -> Result<ParsedRequest, Refusal> {
        let system = self.system.map(|texts| texts.joined(|text| !text.starts_with(MARK)));
        let input = conversation(&system.unwrap_or_default(), self.messages.unwrap_or_default())?;
        let format = self.output_config.and_then(|config| config.format);
        let order = Order {
            sampling: SamplingChoices {
                temperature: self.temperature,
                top_k: self.top_k.map(top_k),
                top_p: self.top_p,
                ..SamplingChoices::default()
            },
            max_tokens: max_tokens(self.max_tokens, "max_tokens")?,
            separates_thinking: true,
            thinking: match self.thinking {
                Some(Thinking::Enabled {}) => Some(true),
                Some(Thinking::Disabled {}) => Some(false),
                Some(Thinking::Adaptive {}) | None => None,
            },
            stop: stops(self.stop_sequences.map(fields::Texts::Many), "stop_sequences")?,
            grammar: format.map(|OutputFormat::JsonSchema { schema }| Grammar::Schema(schema.to_string())),
            tools: tool_use(self.tools, self.tool_choice)?,
            ..input.order("messages")?
        };
        Ok(ParsedRequest {
            model: self.model.filter(|model| !model.is_empty()),
            order,
            streams: self.stream.unwrap_or(false),
            format: ReplyFormat::Messages,
        })
    }
}
