//! Errors in the protocol's format: a status, a type and one sentence.

use axum::http::StatusCode;
use axum::http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use foretoken_model::Error;
use foretoken_model::tools::LONGEST_NAME;
use serde_json::{Value, json};

/// Seconds after which a client may retry when the queue is full.
const RETRY_SECONDS: &str = "1";

/// Status of a full queue in Anthropic's protocol.
const OVERLOADED: u16 = 529;

/// An error response; see the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    kind: Kind,
    message: String,
    /// Invalid field of the request, if the error is about one.
    field: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    BadRequest,
    ContextLength,
    NoKey,
    Forbidden,
    UnknownPath,
    UnknownModel,
    WrongMethod,
    TooSlow,
    TooLarge,
    WrongType,
    QueueFull,
    NotReady,
    Failed,
}

impl Refusal {
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), field: None }
    }

    /// A malformed request.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Kind::BadRequest, message)
    }

    /// A request with an invalid `field`.
    pub(crate) fn bad_field(field: &str, expected: &str) -> Self {
        let field = field.to_owned();
        let message = format!("{field}: expected {expected}.");
        Self { field: Some(field), ..Self::bad_request(message) }
    }

    /// A name in `field` that no tool may have.
    pub(crate) fn bad_name(field: &str) -> Self {
        Self::bad_field(field, &format!("names of 1 to {LONGEST_NAME} letters, digits, '_' and '-'"))
    }

    /// A request for an unsupported feature.
    pub(crate) fn unsupported(field: &str, message: String) -> Self {
        Self { field: Some(field.to_owned()), ..Self::bad_request(message) }
    }

    /// A prompt longer than the model's context.
    pub fn context_length(message: impl Into<String>) -> Self {
        Self::new(Kind::ContextLength, message)
    }

    /// No model is loaded.
    pub fn not_ready(message: impl Into<String>) -> Self {
        Self::new(Kind::NotReady, message)
    }

    /// An error that is not the client's fault.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    pub(crate) fn no_key() -> Self {
        Self::new(
            Kind::NoKey,
            "The key is missing or wrong. Send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'.",
        )
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(Kind::Forbidden, message)
    }

    pub(crate) fn unknown_path(path: &str) -> Self {
        let message = format!(
            "Unknown path {path}. Available: /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages, \
             /v1/embeddings, /v1/models and /health."
        );
        Self::new(Kind::UnknownPath, message)
    }

    pub(crate) fn unknown_model(found: &str, loaded: &str) -> Self {
        let message = format!("The model '{found}' is not loaded. Use '{loaded}', or leave 'model' out.");
        Self { field: Some("model".to_owned()), ..Self::new(Kind::UnknownModel, message) }
    }

    /// A request for embeddings without a model for them.
    pub(crate) fn no_embedder() -> Self {
        let message = "There is no embedding model. Choose one in Settings > Documents, or start the server with \
                       --embedding-model.";
        Self::new(Kind::UnknownModel, message)
    }

    pub(crate) fn wrong_method(allowed: &str) -> Self {
        Self::new(Kind::WrongMethod, format!("This path accepts {allowed} only."))
    }

    pub(crate) fn too_slow() -> Self {
        Self::new(Kind::TooSlow, "The request did not arrive in time. Send it again.")
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(Kind::TooLarge, format!("The request is too large: the limit is {} MiB.", limit >> 20))
    }

    pub(crate) fn wrong_type() -> Self {
        Self::new(Kind::WrongType, "The request must be JSON. Send 'Content-Type: application/json'.")
    }

    pub(crate) fn queue_full() -> Self {
        Self::new(Kind::QueueFull, "Too many requests are waiting. Try again in a moment.")
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self.kind {
            Kind::BadRequest | Kind::ContextLength => StatusCode::BAD_REQUEST,
            Kind::NoKey => StatusCode::UNAUTHORIZED,
            Kind::Forbidden => StatusCode::FORBIDDEN,
            Kind::UnknownPath | Kind::UnknownModel => StatusCode::NOT_FOUND,
            Kind::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Kind::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Kind::WrongType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Kind::QueueFull => StatusCode::TOO_MANY_REQUESTS,
            Kind::NotReady => StatusCode::SERVICE_UNAVAILABLE,
            Kind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the protocol's error type and code, on which clients act.
    fn words(&self) -> (&'static str, Option<&'static str>) {
        match self.kind {
            Kind::NoKey => ("authentication_error", Some("invalid_api_key")),
            Kind::Forbidden => ("permission_error", None),
            Kind::ContextLength => ("invalid_request_error", Some("context_length_exceeded")),
            Kind::UnknownModel => ("invalid_request_error", Some("model_not_found")),
            Kind::QueueFull => ("rate_limit_error", Some("queue_full")),
            Kind::NotReady => ("server_error", Some("model_not_loaded")),
            Kind::Failed => ("server_error", None),
            _ => ("invalid_request_error", None),
        }
    }

    /// Status, type and code in Anthropic's protocol.
    fn message_words(&self) -> (StatusCode, &'static str) {
        let kind = match self.kind {
            Kind::NoKey => "authentication_error",
            Kind::Forbidden => "permission_error",
            Kind::UnknownPath | Kind::UnknownModel => "not_found_error",
            Kind::TooLarge => "request_too_large",
            Kind::TooSlow => "timeout_error",
            Kind::QueueFull => "overloaded_error",
            Kind::NotReady | Kind::Failed => "api_error",
            Kind::BadRequest | Kind::ContextLength | Kind::WrongMethod | Kind::WrongType => {
                "invalid_request_error"
            }
        };
        match self.kind {
            Kind::QueueFull => (StatusCode::from_u16(OVERLOADED).unwrap_or(self.status()), kind),
            _ => (self.status(), kind),
        }
    }

    /// Error in Anthropic's format.
    pub(crate) fn message_json(&self) -> Value {
        json!({ "type": "error", "error": { "type": self.message_words().1, "message": self.message } })
    }

    /// Response in Anthropic's format.
    pub(crate) fn message_response(&self) -> Response {
        self.response(self.message_words().0, self.message_json())
    }

    fn response(&self, status: StatusCode, json: Value) -> Response {
        let mut response = (status, axum::Json(json)).into_response();
        let headers = response.headers_mut();
        match self.kind {
            Kind::QueueFull => drop(headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS))),
            Kind::NoKey => drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            _ => {}
        }
        response
    }

    pub(crate) fn json(&self) -> Value {
        let (kind, code) = self.words();
        json!({ "error": { "message": self.message, "type": kind, "param": self.field, "code": code } })
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::PromptTooLong { .. } => Self::context_length(message),
            Error::Grammar { .. } => Self::unsupported("response_format", message),
            Error::Setting { .. }
            | Error::EmptyPrompt
            | Error::NoTemplate { .. }
            | Error::Picture(_)
            | Error::Template { .. } => Self::bad_request(message),
            _ => Self::failed(message),
        }
    }
}

/// Response in OpenAI's format, with the refusal as an extension.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.response(self.status(), self.json());
        response.extensions_mut().insert(self);
        response
    }
}
