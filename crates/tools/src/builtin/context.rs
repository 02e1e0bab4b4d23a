//! What built-in tools get: arguments, and what the program that calls them provides.

use serde_json::{Map, Value};

use super::web_search::SearchEngine;
use crate::error::{Error, Result};

/// What built-in tools need of the program that calls them.
pub trait BuiltinContext {
    /// Returns up to `most` messages of other conversations that contain all `words`, the best
    /// first.
    fn find_messages(&self, words: &str, most: u32) -> Result<Vec<FoundMessage>>;

    /// Returns the files that are attached to the conversation, the latest last.
    fn attached(&self) -> Result<Vec<AttachedFile>>;

    /// Returns the text of an attached file.
    fn attached_text(&self, id: i64) -> Result<String>;

    /// Returns the person's search engine; `None` if none is set.
    fn search_engine(&self) -> Option<SearchEngine>;
}

/// For programs that offer no built-in tools.
impl BuiltinContext for () {
    fn find_messages(&self, _: &str, _: u32) -> Result<Vec<FoundMessage>> {
        Ok(Vec::new())
    }

    fn attached(&self) -> Result<Vec<AttachedFile>> {
        Ok(Vec::new())
    }

    fn attached_text(&self, _: i64) -> Result<String> {
        Ok(String::new())
    }

    fn search_engine(&self) -> Option<SearchEngine> {
        None
    }
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMessage {
    /// Title of its conversation.
    pub conversation: String,
    pub date: String,
    /// `true` if a model wrote it.
    pub is_reply: bool,
    pub excerpt: String,
}

/// An attached file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    pub id: i64,
    pub name: String,
}

/// Returns an argument that has to be a text.
pub(super) fn text_argument<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str> {
    let text = arguments.get(name).and_then(Value::as_str).map(str::trim);
    let missing = || Error::Builtin(format!("Expected the argument \"{name}\", a text."));
    text.filter(|text| !text.is_empty()).ok_or_else(missing)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Texts of a person for tests.
    #[derive(Default)]
    pub(in crate::builtin) struct Fixed {
        pub(in crate::builtin) messages: Vec<FoundMessage>,
        pub(in crate::builtin) files: Vec<(AttachedFile, String)>,
    }

    impl Fixed {
        pub(in crate::builtin) fn with_files(files: &[(&str, &str)]) -> Self {
            let file = |(id, (name, text)): (usize, &(&str, &str))| {
                (AttachedFile { id: id as i64, name: (*name).to_owned() }, (*text).to_owned())
            };
            Self { files: files.iter().enumerate().map(file).collect(), ..Self::default() }
        }
    }

    impl BuiltinContext for Fixed {
        fn find_messages(&self, _: &str, _: u32) -> Result<Vec<FoundMessage>> {
            Ok(self.messages.clone())
        }

        fn attached(&self) -> Result<Vec<AttachedFile>> {
            Ok(self.files.iter().map(|(file, _)| file.clone()).collect())
        }

        fn attached_text(&self, id: i64) -> Result<String> {
            Ok(self.files[id as usize].1.clone())
        }

        fn search_engine(&self) -> Option<SearchEngine> {
            None
        }
    }
}
