//! Options for embedding models.

use std::sync::Arc;

use clap::Args;
use foretoken_model::embedding::TextEmbedder;
use foretoken_senses::embedding::EmbeddingModel;
use foretoken_server::model_name;

use crate::error::Result;
use crate::session::library;

/// Options for an embedding model.
#[derive(Debug, Clone, Default, Args)]
pub struct EmbeddingArgs {
    /// Embedding model, such as multilingual-e5-small: files that are too long for the context are
    /// searched by meaning too, and `serve` has /v1/embeddings
    #[arg(long, value_name = "MODEL")]
    embedding_model: Option<String>,
}

impl EmbeddingArgs {
    /// Loads the model; `None` without one.
    ///
    /// # Errors
    /// Errors of opening and loading it.
    pub fn load(&self) -> Result<Option<Arc<dyn TextEmbedder>>> {
        let Some(name) = &self.embedding_model else { return Ok(None) };
        let model = EmbeddingModel::open(&library()?.resolve(name)?, &model_name(name))?;
        Ok(Some(Arc::new(model)))
    }
}
