//! Protocols of requests for replies: parsers of their bodies, and formats of replies.

use crate::completions::{self, CompletionFormat, Kind};
use crate::format::Format;
use crate::messages::{self, MessageFormat};
use crate::order::Order;
use crate::refusal::Refusal;
use crate::responses::{self, Echo, ResponseFormat};

/// Endpoint of a request for a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// OpenAI's chat completions and completions.
    Completion(Kind),
    /// Anthropic's messages.
    Messages,
    /// OpenAI's responses.
    Responses,
}

impl Endpoint {
    pub const ALL: [Self; 4] =
        [Self::Completion(Kind::Chat), Self::Completion(Kind::Text), Self::Messages, Self::Responses];
}

/// A parsed request.
#[derive(Debug, PartialEq)]
pub struct ParsedRequest {
    /// Model that should reply; `None` for the loaded one.
    pub model: Option<String>,
    pub order: Order,
    pub streams: bool,
    pub format: ReplyFormat,
}

/// Format of the reply to a request.
#[derive(Debug, PartialEq)]
pub enum ReplyFormat {
    Completion {
        kind: Kind,
        /// `true` if a stream should end with its usage.
        streams_usage: bool,
        /// `true` if the reply has log probabilities.
        logprobs: bool,
    },
    Messages,
    Response(Echo),
}

impl ParsedRequest {
    /// # Errors
    /// Returns the problem in one sentence.
    pub fn read(json: &[u8], endpoint: Endpoint) -> Result<Self, Refusal> {
        match endpoint {
            Endpoint::Completion(kind) => completions::read(json, kind),
            Endpoint::Messages => messages::read(json),
            Endpoint::Responses => responses::read(json),
        }
    }
}

impl ReplyFormat {
    /// Format of a reply by `model`.
    pub fn of(self, model: String) -> Box<dyn Format> {
        match self {
            Self::Completion { kind, streams_usage, logprobs } => {
                Box::new(CompletionFormat::new(kind, model, streams_usage, logprobs))
            }
            Self::Messages => Box::new(MessageFormat::new(model)),
            Self::Response(echo) => Box::new(ResponseFormat::new(model, echo)),
        }
    }
}
