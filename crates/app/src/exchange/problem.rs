//! Reasons why a file of conversations is refused.

use std::fmt::Display;

use crate::ipc::{CommandError, ErrorCode};

pub fn bad(message: impl Display) -> CommandError {
    CommandError::new(ErrorCode::BadFile, message)
}

pub fn damaged(error: &serde_json::Error) -> CommandError {
    bad(format!(
        "This file is damaged, incomplete, too long or not a conversation ({error}). Nothing was imported."
    ))
}
