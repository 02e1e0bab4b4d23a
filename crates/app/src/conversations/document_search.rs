//! Search in attached documents. The index is made at the first search and lives as long as the
//! program. With an embedding model, passages are found by their meaning too; the engine computes
//! their embeddings while it has nothing else to do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use foretoken_documents::{Coverage, DocumentKey, Found, Index, Query};
use foretoken_model::embedding::{TextEmbedder, TextUse};

use crate::embedding::Embedder;
use crate::error::Result;
use crate::lock::lock;

/// A document to search.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Document<'a> {
    /// Text of a file that is not stored yet.
    New(&'a str),
    /// Id of an attachment.
    Stored(i64),
}

/// Passages that match a question, best first, and the keys of all documents, in their order.
pub(crate) struct Matches {
    pub(crate) keys: Vec<DocumentKey>,
    pub(crate) passages: Vec<Found>,
}

/// Searches documents.
pub(crate) struct DocumentSearch {
    embedder: Arc<Embedder>,
    indexed: Mutex<Indexed>,
}

#[derive(Default)]
struct Indexed {
    index: Option<Index>,
    /// Keys of stored attachments that were searched.
    keys: HashMap<i64, DocumentKey>,
}

impl DocumentSearch {
    pub(crate) fn new(embedder: Arc<Embedder>) -> Self {
        Self { embedder, indexed: Mutex::default() }
    }

    /// Adds the text of a document to the index.
    pub(crate) fn add(&self, text: &str) -> Result<()> {
        lock(&self.indexed).index()?.add(text)?;
        Ok(())
    }

    /// Finds the best passages of documents, at most `most`; `text_of` returns the text of a stored
    /// one.
    pub(crate) fn find(
        &self,
        documents: &[Document<'_>],
        question: &str,
        most: usize,
        text_of: impl Fn(i64) -> Result<String>,
    ) -> Result<Matches> {
        let vector = self.embedder.model().and_then(|model| vector(&*model, question, TextUse::Query));
        let mut indexed = lock(&self.indexed);
        let keys = documents.iter().map(|document| match document {
            Document::New(text) => Ok(indexed.index()?.add(text)?),
            Document::Stored(id) => indexed.stored(*id, &text_of),
        });
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let query = Query { words: question, vector: vector.as_deref() };
        let passages = indexed.index()?.find(&keys, query, most)?;
        Ok(Matches { keys, passages })
    }

    /// Computes the embedding of the next passage; returns whether there was one.
    pub(crate) fn embed_next(&self) -> Result<bool> {
        let Some(model) = self.embedder.model() else { return Ok(false) };
        let next = lock(&self.indexed).index()?.unembedded()?;
        let Some(passage) = next else { return Ok(false) };
        let vector = vector(&*model, &passage.text, TextUse::Passage);
        // Another model may have been chosen meanwhile.
        let mut indexed = lock(&self.indexed);
        if self.embedder.has(&model) {
            // A passage without an embedding is similar to nothing.
            indexed.index()?.embed(&passage, &vector.unwrap_or_else(|| vec![0.0; model.width()]))?;
        }
        Ok(true)
    }

    /// Removes all embeddings, after another model was chosen.
    pub(crate) fn forget_embeddings(&self) -> Result<()> {
        lock(&self.indexed).index()?.forget_embeddings();
        Ok(())
    }

    /// Returns how many passages have an embedding.
    pub(crate) fn coverage(&self) -> Result<Coverage> {
        Ok(lock(&self.indexed).index()?.coverage()?)
    }
}

/// Embedding of a text; `None` if the model fails.
fn vector(model: &dyn TextEmbedder, text: &str, purpose: TextUse) -> Option<Vec<f32>> {
    let embedded = model.embed(text, purpose);
    embedded.inspect_err(|error| tracing::warn!("a text has no embedding: {error}")).ok().map(|it| it.vector)
}

impl Indexed {
    fn index(&mut self) -> Result<&mut Index> {
        match &mut self.index {
            Some(index) => Ok(index),
            none => Ok(none.insert(Index::open()?)),
        }
    }

    /// Returns the key of an attachment, which is in the index then.
    fn stored(&mut self, id: i64, text_of: impl Fn(i64) -> Result<String>) -> Result<DocumentKey> {
        if let Some(&key) = self.keys.get(&id)
            && self.index()?.has(key)?
        {
            return Ok(key);
        }
        let key = self.index()?.add(&text_of(id)?)?;
        self.keys.insert(id, key);
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use foretoken_model::embedding::TextEmbedding;

    use super::*;

    /// Embeds by the first letter of the last word; fails on an empty text.
    struct Letters;

    impl TextEmbedder for Letters {
        fn name(&self) -> &str {
            "letters"
        }

        fn width(&self) -> usize {
            26
        }

        fn longest(&self) -> usize {
            100
        }

        fn embed(&self, text: &str, _: TextUse) -> foretoken_model::Result<TextEmbedding> {
            let letter = text.split_whitespace().next_back().and_then(|word| word.bytes().next());
            let letter = letter.ok_or(foretoken_model::Error::EmptyPrompt)?;
            let vector = (b'a'..=b'z').map(|other| f32::from(u8::from(other == letter))).collect();
            Ok(TextEmbedding { vector, tokens: 1, is_cut: false })
        }
    }

    fn found(search: &DocumentSearch, text: &str, question: &str) -> Vec<String> {
        let matches = search.find(&[Document::New(text)], question, 1, |_| unreachable!()).unwrap();
        matches.passages.into_iter().map(|found| found.text).collect()
    }

    #[test]
    fn passages_are_found_by_words_first_and_by_meaning_once_they_have_embeddings() {
        let search = DocumentSearch::new(Arc::default());
        let text = "# A\nfox\n# B\nhen\n";
        assert_eq!(found(&search, text, "hare"), [""; 0]);
        assert!(!search.embed_next().unwrap(), "no model is chosen");
        search.embedder.put(Arc::new(Letters));
        assert_eq!(found(&search, text, "hare"), [""; 0], "nothing is embedded yet");
        assert!(search.embed_next().unwrap() && search.embed_next().unwrap());
        assert!(!search.embed_next().unwrap());
        assert_eq!(search.coverage().unwrap(), Coverage { embedded: 2, passages: 2 });
        assert_eq!(found(&search, text, "hare"), ["# B\nhen\n"]);
        assert_eq!(found(&search, text, "fox"), ["# A\nfox\n"]);
        assert_eq!(found(&search, text, " "), [""; 0], "a question without an embedding");
        assert!(search.embedder.choose(None));
        search.forget_embeddings().unwrap();
        assert_eq!(found(&search, text, "hare"), [""; 0]);
    }
}
