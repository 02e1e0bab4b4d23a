//! Parser of request bodies for fuzzing, without a connection.

use crate::protocol::{Endpoint, ParsedRequest};

/// Parses a body for each endpoint and returns the error messages, if any.
pub fn read(body: &[u8]) -> [Option<String>; 4] {
    Endpoint::ALL
        .map(|endpoint| ParsedRequest::read(body, endpoint).err().map(|refusal| refusal.message().to_owned()))
}
