//! What is read of a request, for those who try damaged ones: its body without a connection.

use crate::body::{Asked, Endpoint};

/// Reads a body as one for each endpoint; in what words these refuse it, if they do.
pub fn read(body: &[u8]) -> [Option<String>; 2] {
    [Endpoint::Chat, Endpoint::Completion]
        .map(|endpoint| Asked::read(body, endpoint).err().map(|refusal| refusal.message().to_owned()))
}
