//! Reasons why a file of conversations is refused, or one of its conversations is left out.

use std::fmt::Display;

use crate::ipc::{CommandError, ErrorCode};

pub fn bad(message: impl Display) -> CommandError {
    CommandError::new(ErrorCode::BadFile, message)
}

pub fn damaged(error: &serde_json::Error) -> CommandError {
    bad(format!("This file is damaged or incomplete ({error}). Nothing was imported."))
}

/// A conversation that could not be read, while others of its file are imported.
#[derive(Debug)]
pub struct LeftOut {
    /// Title, if it could be read.
    pub title: Option<String>,
    /// Reason, as the end of a sentence without its full stop.
    pub reason: String,
}

impl LeftOut {
    /// Returns the error of a file that contains nothing else.
    pub fn error(&self) -> CommandError {
        match &self.title {
            Some(title) => bad(format!("\"{title}\" could not be read: {}.", self.reason)),
            None => bad(format!("A conversation in this file could not be read: {}.", self.reason)),
        }
    }
}
