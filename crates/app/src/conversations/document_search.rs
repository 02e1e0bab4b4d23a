//! Search in attached documents. The index is made at the first search and lives as long as the
//! program.

use std::collections::HashMap;
use std::sync::Mutex;

use foretoken_documents::{DocumentKey, Found, Index};

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
#[derive(Default)]
pub(crate) struct DocumentSearch(Mutex<Indexed>);

#[derive(Default)]
struct Indexed {
    index: Option<Index>,
    /// Keys of stored attachments that were searched.
    keys: HashMap<i64, DocumentKey>,
}

impl DocumentSearch {
    /// Adds the text of a document to the index.
    pub(crate) fn add(&self, text: &str) -> Result<()> {
        lock(&self.0).index()?.add(text)?;
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
        let mut indexed = lock(&self.0);
        let keys = documents.iter().map(|document| match document {
            Document::New(text) => Ok(indexed.index()?.add(text)?),
            Document::Stored(id) => indexed.stored(*id, &text_of),
        });
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let passages = indexed.index()?.find(&keys, question, most)?;
        Ok(Matches { keys, passages })
    }
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
