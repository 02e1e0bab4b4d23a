//! Parser of request bodies for fuzzing, without a connection.

use crate::embeddings::EmbeddingRequest;
use crate::protocol::{Endpoint, ParsedRequest};

/// Parses a body for each endpoint and returns the error messages, if any.
pub fn read(body: &[u8]) -> [Option<String>; 5] {
    let [chat, text, messages, responses] =
        Endpoint::ALL.map(|endpoint| ParsedRequest::read(body, endpoint).err());
    let embeddings = EmbeddingRequest::read(body).err();
    [chat, text, messages, responses, embeddings]
        .map(|refusal| refusal.map(|refusal| refusal.message().to_owned()))
}
