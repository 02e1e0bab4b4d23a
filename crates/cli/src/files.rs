//! Files of a conversation: their text stands before a question. Files that take more than half of
//! the context are searched for each question.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foretoken_documents::{
    ADDED, Coverage, DocumentKey, DocumentReader, FileBudget, Index, MAX_BYTES, PASSAGES, Part, Query,
    excerpts, quoted,
};
use foretoken_engine::session::estimated_tokens;
use foretoken_model::child::Program;
use foretoken_model::embedding::{TextEmbedder, TextUse};

use crate::error::{Error, Result};
use crate::output;

/// First bytes of a PDF.
const PDF: &[u8] = b"%PDF-";

/// Text of a file.
#[derive(Debug)]
pub struct TextFile {
    name: String,
    text: String,
}

/// Reads a document, or a text in UTF-8.
///
/// # Errors
/// `Error::Read`, `Error::Unread`.
pub fn read(path: &Path) -> Result<TextFile> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    let unread = |reason| Error::Unread { path: path.to_owned(), reason };
    if bytes.starts_with(PDF) {
        return Err(unread("PDFs are read in the window only; save its text as a file"));
    }
    let text = DocumentReader::new(Some(&Program::This)).read_any(&bytes);
    let text = text.map_err(|reason| unread(reason.reason()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(TextFile { name, text })
}

/// Reads several files.
///
/// # Errors
/// As [`read`].
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<TextFile>> {
    paths.iter().map(|path| read(path)).collect()
}

/// Joins files, excerpts of the long ones, and the question that follows them.
///
/// # Errors
/// As [`Files::excerpts`].
pub fn before(files: &[TextFile], question: String, mut shown: Files) -> Result<String> {
    let mut parts = Vec::new();
    for file in files {
        parts.push(shown.add(file)?.text);
    }
    parts.extend(shown.excerpts(&question)?);
    parts.push(question);
    Ok(parts.join("\n\n"))
}

/// A file as it stands in a prompt.
pub struct Shown {
    pub text: String,
    /// True if this is its beginning, and the rest is searched.
    pub is_searched: bool,
}

/// Files of a conversation.
pub struct Files {
    context: usize,
    budget: FileBudget,
    /// Long files; `None` before the first one.
    index: Option<Index>,
    /// Model with which long files are searched by meaning too.
    embedder: Option<Arc<dyn TextEmbedder>>,
    searched: Vec<(DocumentKey, String)>,
}

impl Files {
    /// Files for a context of so many tokens.
    pub fn new(context: usize, embedder: Option<Arc<dyn TextEmbedder>>) -> Self {
        Self { context, budget: half_of(context), index: None, embedder, searched: Vec::new() }
    }

    /// Removes all files.
    pub fn clear(&mut self) {
        *self = Self::new(self.context, self.embedder.take());
    }

    /// Adds a file; returns how the next message shows it.
    ///
    /// # Errors
    /// `Error::Documents`.
    pub fn add(&mut self, TextFile { name, text }: &TextFile) -> Result<Shown> {
        let mut budget = self.budget;
        let is_searched = budget.next(text.len()) != Part::Whole;
        if is_searched {
            let index = match &mut self.index {
                Some(index) => index,
                none => none.insert(Index::open()?),
            };
            let key = index.add(text)?;
            self.searched.retain(|(other, _)| *other != key);
            self.searched.push((key, name.clone()));
        }
        Ok(Shown { text: self.budget.shown(name, text, ADDED), is_searched })
    }

    /// Returns the excerpts of searched files that match a question, as they stand before it;
    /// `None` without any.
    ///
    /// # Errors
    /// `Error::Documents`; errors of the embedding model.
    pub fn excerpts(&mut self, question: &str) -> Result<Option<String>> {
        let Some(index) = &mut self.index else { return Ok(None) };
        let vector = match &self.embedder {
            Some(model) => {
                embed_all(index, &**model)?;
                Some(model.embed(question, TextUse::Query)?.vector)
            }
            None => None,
        };
        let named: Vec<_> = self.searched.iter().map(|(key, name)| (*key, name.as_str())).collect();
        let keys: Vec<_> = named.iter().map(|(key, _)| *key).collect();
        let query = Query { words: question, vector: vector.as_deref() };
        let excerpts = excerpts(index.find(&keys, query, PASSAGES)?, &self.budget, &named);
        Ok((!excerpts.is_empty()).then(|| quoted(&excerpts)))
    }

    /// Frees the tokens of whole files, which are no longer in the context; long ones stay
    /// searched.
    pub fn free(&mut self) {
        self.budget = half_of(self.context);
    }
}

/// Computes the embeddings of all passages that have none, with progress on a terminal.
fn embed_all(index: &mut Index, model: &dyn TextEmbedder) -> Result<()> {
    let Coverage { mut embedded, passages } = index.coverage()?;
    let shows = embedded < passages && std::io::stderr().is_terminal();
    while let Some(passage) = index.unembedded()? {
        if shows {
            output::status(format_args!("Embedding passages: {embedded} of {passages}"));
        }
        index.embed(&passage, &model.embed(&passage.text, TextUse::Passage)?.vector)?;
        embedded += 1;
    }
    if shows {
        output::status("");
    }
    Ok(())
}

/// Half of a context for whole files, as in the window.
fn half_of(context: usize) -> FileBudget {
    FileBudget::new(context / 2, estimated_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> TextFile {
        TextFile { name: name.to_owned(), text: text.to_owned() }
    }

    /// A file of about 3,000 tokens.
    fn towns() -> TextFile {
        let town = |number| format!("## Town {number}\nIt rained in town {number}. The river rose.\n\n");
        let keeper = "## Lighthouse\nThe keeper is called Ines.\n";
        file("towns.md", &((0..200).map(town).collect::<String>() + keeper))
    }

    #[test]
    fn a_long_file_is_shown_with_its_beginning_and_what_matches_the_question() {
        let text = before(&[towns()], "Who is the keeper?".into(), Files::new(1_000, None)).unwrap();
        assert!(text.len() < 2_000, "{} bytes", text.len());
        assert!(text.starts_with("towns.md:\n```md\n## Town 0\n"), "{text}");
        assert!(text.contains("[1] towns.md, Lighthouse:\n```\n## Lighthouse\nThe keeper is called Ines."));
        assert!(text.ends_with("like [1].\n\nWho is the keeper?"), "{text}");
        let whole = before(&[towns()], "Who is the keeper?".into(), Files::new(10_000, None)).unwrap();
        assert!(whole.contains("Town 150") && !whole.contains("Excerpts"));
        let none = before(&[towns()], "Zebras?".into(), Files::new(1_000, None)).unwrap();
        assert!(none.ends_with("are added to it.]\n\nZebras?"), "{none}");
    }

    #[test]
    fn every_question_of_a_conversation_searches_the_long_files() {
        let mut files = Files::new(1_000, None);
        assert_eq!(files.excerpts("town 77").unwrap(), None);
        assert!(!files.add(&file("a.txt", "A fox.")).unwrap().is_searched);
        assert!(files.add(&towns()).unwrap().is_searched);
        assert!(files.add(&towns()).unwrap().is_searched);
        let mut found = |question| files.excerpts(question).unwrap().unwrap();
        assert!(found("town 77").contains("It rained in town 77."));
        assert!(found("Ines").contains("towns.md, Lighthouse"));
        assert_eq!(files.excerpts("A fox").unwrap(), None, "it is in the prompt as a whole");
    }

    #[test]
    fn files_that_left_the_context_take_no_tokens() {
        let mut files = Files::new(1_000, None);
        let half = file("a.txt", &"A fox. ".repeat(200));
        assert_eq!([(); 2].map(|()| files.add(&half).unwrap().is_searched), [false, true]);
        files.free();
        assert!(!files.add(&half).unwrap().is_searched);
    }
}
