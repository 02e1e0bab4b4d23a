//! Parser of request bodies for fuzzing, without a connection.

use crate::body::{Endpoint, ParsedRequest};

/// Parses a body for each endpoint and returns the error messages, if any.
pub fn read(body: &[u8]) -> [Option<String>; 2] {
    [Endpoint::Chat, Endpoint::Completion]
        .map(|endpoint| ParsedRequest::read(body, endpoint).err().map(|refusal| refusal.message().to_owned()))
}
