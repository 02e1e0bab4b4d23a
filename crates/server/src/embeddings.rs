//! Requests for embeddings in OpenAI's protocol.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foretoken_model::embedding::{TextEmbedder, TextUse};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::fields::{Texts, body};
use crate::refusal::Refusal;

/// Most texts of a request, as in OpenAI's service.
const MAX_TEXTS: usize = 2048;

/// A parsed request.
#[derive(Debug, PartialEq)]
pub struct EmbeddingRequest {
    /// Model that computes them; `None` for the one in use.
    pub model: Option<String>,
    texts: Vec<String>,
    encoding: Encoding,
    dimensions: Option<usize>,
}

/// Encoding of an embedding in the response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Float,
    /// Numbers of 32 bits, little-endian.
    Base64,
}

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    input: Texts,
    #[serde(default)]
    encoding_format: Option<Encoding>,
    #[serde(default)]
    dimensions: Option<usize>,
}

impl EmbeddingRequest {
    /// # Errors
    /// Returns the problem in one sentence.
    pub fn read(json: &[u8]) -> Result<Self, Refusal> {
        let Body { model, input, encoding_format, dimensions } = body(json, &[])?;
        let texts = input.list();
        if texts.is_empty() || texts.len() > MAX_TEXTS {
            return Err(Refusal::bad_field("input", &format!("1 to {MAX_TEXTS} texts")));
        }
        if texts.iter().any(|text| text.trim().is_empty()) {
            return Err(Refusal::bad_field("input", "texts that are not empty"));
        }
        Ok(Self { model, texts, encoding: encoding_format.unwrap_or_default(), dimensions })
    }

    /// Computes the embeddings, text after text. Dropping the future ends it after the current one.
    ///
    /// # Errors
    /// Returns the problem in one sentence, such as a text that is longer than the model reads.
    pub async fn response(self, embedder: Arc<dyn TextEmbedder>) -> Result<Value, Refusal> {
        let width = embedder.width();
        if self.dimensions.is_some_and(|dimensions| dimensions != width) {
            return Err(Refusal::bad_field("dimensions", &format!("{width}, as this model has")));
        }
        let (mut data, mut tokens) = (Vec::with_capacity(self.texts.len()), 0);
        for (index, text) in self.texts.into_iter().enumerate() {
            let computing = Arc::clone(&embedder);
            let computed = spawn_blocking(move || computing.embed(&text, TextUse::Any));
            let failed = |error: &dyn std::fmt::Display| Refusal::failed(format!("{error}"));
            let embedding =
                computed.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
            if embedding.is_cut {
                let most = embedder.longest();
                let expected = format!("texts of at most {most} tokens, as this model reads");
                return Err(Refusal::bad_field(&format!("input[{index}]"), &expected));
            }
            tokens += embedding.tokens;
            let embedding = self.encoding.of(&embedding.vector);
            data.push(json!({ "object": "embedding", "index": index, "embedding": embedding }));
        }
        let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
        Ok(json!({ "object": "list", "data": data, "model": embedder.name(), "usage": usage }))
    }
}

impl Encoding {
    fn of(self, vector: &[f32]) -> Value {
        match self {
            Self::Float => vector.into(),
            Self::Base64 => {
                let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
                STANDARD.encode(bytes).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use foretoken_model::embedding::TextEmbedding;

    use super::*;

    /// An embedder of two numbers: the length of the text, and 0. It reads five letters.
    struct Lengths;

    impl TextEmbedder for Lengths {
        fn name(&self) -> &str {
            "lengths"
        }

        fn width(&self) -> usize {
            2
        }

        fn longest(&self) -> usize {
            5
        }

        fn embed(&self, text: &str, purpose: TextUse) -> foretoken_model::Result<TextEmbedding> {
            assert_eq!(purpose, TextUse::Any);
            let tokens = text.len().min(5);
            Ok(TextEmbedding { vector: vec![tokens as f32, 0.0], tokens, is_cut: text.len() > 5 })
        }
    }

    async fn response(request: Value) -> Result<Value, Refusal> {
        EmbeddingRequest::read(request.to_string().as_bytes())?.response(Arc::new(Lengths)).await
    }

    #[tokio::test]
    async fn texts_become_embeddings_in_their_order() {
        let found = response(json!({ "input": ["fox", "hen x"], "model": "lengths" })).await.unwrap();
        assert_eq!(
            found,
            json!({
                "object": "list",
                "model": "lengths",
                "data": [
                    { "object": "embedding", "index": 0, "embedding": [3.0, 0.0] },
                    { "object": "embedding", "index": 1, "embedding": [5.0, 0.0] },
                ],
                "usage": { "prompt_tokens": 8, "total_tokens": 8 },
            })
        );
        let found = response(json!({ "input": "fox", "encoding_format": "base64" })).await.unwrap();
        assert_eq!(found["data"][0]["embedding"], "AABAQAAAAAA=");
        assert!(response(json!({ "input": "fox", "dimensions": 2, "user": "me" })).await.is_ok());
    }

    #[tokio::test]
    async fn what_cannot_be_computed_is_refused_by_name() {
        for (request, message) in [
            (json!({ "input": [] }), "input: expected 1 to 2048 texts."),
            (json!({ "input": ["a", " "] }), "input: expected texts that are not empty."),
            (
                json!({ "input": ["a", "longer"] }),
                "input[1]: expected texts of at most 5 tokens, as this model reads.",
            ),
            (json!({ "input": "a", "dimensions": 1 }), "dimensions: expected 2, as this model has."),
        ] {
            assert_eq!(response(request).await.unwrap_err().message(), message);
        }
        let tokens = response(json!({ "input": [1, 2] })).await.unwrap_err();
        assert!(tokens.message().contains("expected a string or a list of strings"), "{}", tokens.message());
        assert!(response(json!({ "input": vec!["a"; 2049] })).await.is_err());
        assert!(response(json!({})).await.is_err());
    }
}
