//! Bodies of requests for responses. What else may be `include`d, `metadata`, `prompt_cache_key`
//! and the like change no text and are ignored.

use foretoken_grammar::Grammar;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::Echo;
use super::item::{InputBody, conversation};
use super::tools::{ToolBody, ToolChoiceBody, tool_use};
use crate::fields::{max_tokens, object, typed, whole};
use crate::order::{Order, SamplingChoices};
use crate::protocol::{ParsedRequest, ReplyFormat};
use crate::refusal::Refusal;

/// Fields that would change the reply.
const UNSUPPORTED: [&str; 4] = ["background", "conversation", "max_tool_calls", "prompt"];

/// Part of a response that is sent only to those who include it.
const LOGPROBS: &str = "message.output_text.logprobs";

/// Most alternatives of a token whose log probabilities a response has.
const MAX_TOP: i64 = 20;

/// Field that names an earlier response.
const PREVIOUS: &str = "previous_response_id";

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    input: Option<InputBody>,
    instructions: Option<String>,
    stream: Option<bool>,
    #[serde(default, deserialize_with = "whole")]
    max_output_tokens: Option<i64>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    tools: Option<Vec<ToolBody>>,
    tool_choice: Option<ToolChoiceBody>,
    parallel_tool_calls: Option<bool>,
    text: Option<TextConfig>,
    reasoning: Option<Reasoning>,
    include: Option<Vec<String>>,
    #[serde(default, deserialize_with = "whole")]
    top_logprobs: Option<i64>,
}

#[derive(Deserialize)]
struct TextConfig {
    format: Option<TextFormat>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TextFormat {
    Text,
    JsonObject,
    JsonSchema { schema: Value },
}

impl TextFormat {
    /// The reply's grammar; `None` for any text.
    fn grammar(self) -> Option<Grammar> {
        match self {
            Self::Text => None,
            Self::JsonObject => Some(Grammar::Json),
            Self::JsonSchema { schema } => Some(Grammar::Schema(schema.to_string())),
        }
    }
}

#[derive(Deserialize)]
struct Reasoning {
    effort: Option<String>,
}

impl Reasoning {
    /// Returns whether the model shall reason; `None` for its default.
    fn thinking(&self) -> Option<bool> {
        self.effort.as_deref().map(|effort| !["none", "minimal"].contains(&effort))
    }
}

/// Returns the number of alternatives of each token; `None` for no log probabilities.
fn logprobs(includes: bool, top: Option<i64>) -> Result<Option<usize>, Refusal> {
    let Some(top) = top else { return Ok(includes.then_some(0)) };
    let number = usize::try_from(top).ok().filter(|_| top <= MAX_TOP);
    let number = number.ok_or_else(|| Refusal::bad_field("top_logprobs", &format!("0 to {MAX_TOP}")))?;
    Ok((includes || number > 0).then_some(number))
}

/// Parses a request for a response.
///
/// # Errors
/// Returns the problem in one sentence.
pub fn read(json: &[u8]) -> Result<ParsedRequest, Refusal> {
    let fields = object(json, &UNSUPPORTED)?;
    if fields.get(PREVIOUS).is_some_and(|id| !id.is_null()) {
        let message = "Responses are not stored here. Send the whole conversation as 'input'.";
        return Err(Refusal::unsupported(PREVIOUS, message.to_owned()));
    }
    let echo = Echo::of(&fields);
    typed::<Body>(fields)?.asked(echo)
}

impl Body {
    fn asked(self, echo: Map<String, Value>) -> Result<ParsedRequest, Refusal> {
        let parallel = self.parallel_tool_calls.unwrap_or(true);
        let (tools, known) = tool_use(self.tools, self.tool_choice, parallel)?;
        let input = conversation(self.instructions.as_deref(), self.input)?;
        let includes = self.include.is_some_and(|included| included.iter().any(|part| part == LOGPROBS));
        let logprobs = logprobs(includes, self.top_logprobs)?;
        let order = Order {
            sampling: SamplingChoices {
                temperature: self.temperature,
                top_p: self.top_p,
                ..SamplingChoices::default()
            },
            max_tokens: max_tokens(self.max_output_tokens, "max_output_tokens")?,
            separates_thinking: true,
            thinking: self.reasoning.and_then(|reasoning| reasoning.thinking()),
            grammar: self.text.and_then(|text| text.format).and_then(TextFormat::grammar),
            tools,
            logprobs,
            ..input.order("input")?
        };
        Ok(ParsedRequest {
            model: self.model.filter(|model| !model.is_empty()),
            order,
            streams: self.stream.unwrap_or(false),
            format: ReplyFormat::Response(Echo { fields: echo, tools: known }),
        })
    }
}
