//! Errors of every crate, converted for the page: a code to branch on and a message to show.

use std::fmt::Display;

use crate::ipc::{CommandError, ErrorCode, PromptSize};

pub type Result<T, E = CommandError> = std::result::Result<T, E>;

impl CommandError {
    pub fn new(code: ErrorCode, message: impl Display) -> Self {
        Self { code, message: message.to_string(), prompt: None }
    }

    /// Error of a message that does not fit even without earlier turns.
    pub fn message_too_long(size: PromptSize) -> Self {
        let message = format!(
            "This message is too long: {size}. Shorten it, attach less, or choose a model with a larger context."
        );
        Self { prompt: Some(size), ..Self::new(ErrorCode::MessageTooLong, message) }
    }
}

pub fn bad_setting(name: &str, expected: &str, found: impl Display) -> CommandError {
    CommandError::new(ErrorCode::BadSetting, format!("{name}: expected {expected}, found {found}."))
}

impl From<foretoken_model::Error> for CommandError {
    fn from(error: foretoken_model::Error) -> Self {
        use foretoken_model::Error;
        let code = match &error {
            Error::EmptyPrompt => ErrorCode::EmptyPrompt,
            Error::PromptTooLong { .. } => ErrorCode::PromptTooLong,
            Error::Setting { .. } => ErrorCode::BadSetting,
            Error::Picture(_) => ErrorCode::BadAttachment,
            Error::Cancelled => ErrorCode::Cancelled,
            Error::Compute(_) | Error::UnknownToken { .. } | Error::NotFinite => ErrorCode::Internal,
            _ => ErrorCode::BadModel,
        };
        let prompt = match error {
            Error::PromptTooLong { found, limit } => Some(PromptSize { tokens: found, context: limit }),
            _ => None,
        };
        Self { prompt, ..Self::new(code, error) }
    }
}

impl From<foretoken_documents::IndexError> for CommandError {
    fn from(error: foretoken_documents::IndexError) -> Self {
        Self::new(ErrorCode::Internal, error)
    }
}

impl From<foretoken_library::Error> for CommandError {
    fn from(error: foretoken_library::Error) -> Self {
        use foretoken_library::Error;
        let code = match &error {
            Error::Gated { .. } | Error::TokenRefused(_) => ErrorCode::NeedsToken,
            Error::NoRepository { .. } => ErrorCode::NotFound,
            Error::Unreachable { .. } => ErrorCode::Offline,
            Error::Stopped => ErrorCode::Cancelled,
            Error::Address(_) => ErrorCode::BadSetting,
            _ => ErrorCode::BadModel,
        };
        Self::new(code, error)
    }
}

impl From<foretoken_remote::Error> for CommandError {
    fn from(error: foretoken_remote::Error) -> Self {
        use foretoken_remote::Error;
        let code = match &error {
            Error::Address { .. } | Error::KeyForm => ErrorCode::BadSetting,
            Error::PromptTooLong { .. } => ErrorCode::PromptTooLong,
            _ => ErrorCode::Remote,
        };
        Self::new(code, error)
    }
}

impl From<foretoken_store::Error> for CommandError {
    fn from(error: foretoken_store::Error) -> Self {
        let code = match error {
            foretoken_store::Error::NotFound { .. } => ErrorCode::NotFound,
            foretoken_store::Error::FolderName => ErrorCode::BadName,
            _ => ErrorCode::Internal,
        };
        Self::new(code, error)
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(ErrorCode::Internal, error)
    }
}
