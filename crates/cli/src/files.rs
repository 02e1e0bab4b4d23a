//! Files of a conversation: their text stands before a question. Files that take more than half of
//! the context are searched for each question.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use foretoken_documents::{
    ADDED, DocumentKey, DocumentReader, FileBudget, Index, MAX_BYTES, PASSAGES, Part, excerpts, quoted,
};
use foretoken_engine::session::estimated_tokens;
use foretoken_model::child::Program;

use crate::error::{Error, Result};

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

/// Joins files, excerpts of the long ones, and the question that follows them in a context of so
/// many tokens.
///
/// # Errors
/// `Error::Documents`.
pub fn before(files: &[TextFile], question: String, context: usize) -> Result<String> {
    let mut shown = Files::new(context);
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
    searched: Vec<(DocumentKey, String)>,
}

impl Files {
    /// Files for a context of so many tokens.
    pub fn new(context: usize) -> Self {
        Self { context, budget: half_of(context), index: None, searched: Vec::new() }
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
    /// `Error::Documents`.
    pub fn excerpts(&self, question: &str) -> Result<Option<String>> {
        let Some(index) = &self.index else { return Ok(None) };
        let named: Vec<_> = self.searched.iter().map(|(key, name)| (*key, name.as_str())).collect();
        let keys: Vec<_> = named.iter().map(|(key, _)| *key).collect();
        let excerpts = excerpts(index.find(&keys, question, PASSAGES)?, &self.budget, &named);
        Ok((!excerpts.is_empty()).then(|| quoted(&excerpts)))
    }

    /// Frees the tokens of whole files, which are no longer in the context; long ones stay
    /// searched.
    pub fn free(&mut self) {
        self.budget = half_of(self.context);
    }
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
        let text = before(&[towns()], "Who is the keeper?".into(), 1_000).unwrap();
        assert!(text.len() < 2_000, "{} bytes", text.len());
        assert!(text.starts_with("towns.md:\n```md\n## Town 0\n"), "{text}");
        assert!(text.contains("[1] towns.md, Lighthouse:\n```\n## Lighthouse\nThe keeper is called Ines."));
        assert!(text.ends_with("like [1].\n\nWho is the keeper?"), "{text}");
        let whole = before(&[towns()], "Who is the keeper?".into(), 10_000).unwrap();
        assert!(whole.contains("Town 150") && !whole.contains("Excerpts"));
        let none = before(&[towns()], "Zebras?".into(), 1_000).unwrap();
        assert!(none.ends_with("are added to it.]\n\nZebras?"), "{none}");
    }

    #[test]
    fn every_question_of_a_conversation_searches_the_long_files() {
        let mut files = Files::new(1_000);
        assert_eq!(files.excerpts("town 77").unwrap(), None);
        assert!(!files.add(&file("a.txt", "A fox.")).unwrap().is_searched);
        assert!(files.add(&towns()).unwrap().is_searched);
        assert!(files.add(&towns()).unwrap().is_searched);
        let found = |question| files.excerpts(question).unwrap().unwrap();
        assert!(found("town 77").contains("It rained in town 77."));
        assert!(found("Ines").contains("towns.md, Lighthouse"));
        assert_eq!(files.excerpts("A fox").unwrap(), None, "it is in the prompt as a whole");
    }

    #[test]
    fn files_that_left_the_context_take_no_tokens() {
        let mut files = Files::new(1_000);
        let half = file("a.txt", &"A fox. ".repeat(200));
        assert_eq!([(); 2].map(|()| files.add(&half).unwrap().is_searched), [false, true]);
        files.free();
        assert!(!files.add(&half).unwrap().is_searched);
    }
}
