//! Export and import of conversations as files: exports as JSON or Markdown, imports of these and
//! of other programs' files. docs/conversations.md describes the formats.
//!
//! - `file`: reads one conversation after another from a file or archive; `elements`: splits a JSON
//!   list
//! - `kinds`: detects the program that wrote a file; `own`, `chatgpt`, `open_webui`, `lm_studio`:
//!   the formats; `reply_tree`: messages linked by parent; `parts`: texts in parts; `bounded`:
//!   lists and maps of limited length; `lenient`: values of another form than expected
//! - `markdown`: a conversation for reading; `problem`: reasons why a file is refused

mod bounded;
mod chatgpt;
mod elements;
mod file;
mod kinds;
mod lenient;
mod lm_studio;
mod markdown;
mod open_webui;
mod own;
mod parts;
mod problem;
mod reply_tree;

use std::io::{BufWriter, Write};
use std::path::Path;

use self::bounded::MAX_ELEMENTS;
use self::elements::LONGEST;
use self::kinds::Element;
use self::problem::bad;
use self::reply_tree::ReadTree;
pub(crate) use self::reply_tree::visible;
use crate::app::App;
use crate::cancel::Cancel;
use crate::conversations::setup::has_instructions;
use crate::error::Result;
use crate::ipc::{Conversation, ErrorCode, Export, ExportForm, ImportProgress, Imported, LeftOut};
use crate::save::{Unsaved, save_by};

/// Receives the progress of an import.
pub type OnImport<'a> = &'a mut dyn FnMut(ImportProgress);

impl App {
    /// Stores a copy of a conversation under this title: all of it, or only the path to the message
    /// `up_to`.
    ///
    /// # Errors
    /// Returns `NotFound`, and `Busy` while a reply is written.
    pub fn duplicate_conversation(
        &self,
        conversation: i64,
        up_to: Option<i64>,
        title: &str,
    ) -> Result<Conversation> {
        let _slot = self.take_slot()?;
        self.store_rest();
        Ok(self.store().copy_conversation(conversation, up_to, title.trim())?.into())
    }

    /// Exports a conversation, or all of them, to a file for the user; returns its path.
    ///
    /// # Errors
    /// Returns `NotFound`, `BadFile` for JSON too long to be imported again, or if the file cannot
    /// be written.
    pub fn export_conversations(&self, export: &Export) -> Result<String> {
        self.store_rest();
        let conversations = match export.conversation {
            Some(id) => vec![self.store().conversation(id)?],
            None => self.store().conversations()?,
        };
        let ids: Vec<i64> = conversations.iter().map(|conversation| conversation.id).collect();
        let name = match (export.conversation, conversations.first()) {
            (Some(_), Some(conversation)) => file_name(&conversation.title),
            _ => format!("foretoken-conversations-{}", chrono::Local::now().format("%Y-%m-%d")),
        };
        let end = if export.form == ExportForm::Json { "json" } else { "md" };
        let write = |to: &mut dyn Write| self.write_conversations(&ids, export, &mut BufWriter::new(to));
        Ok(save_by(&self.exports(), &format!("{name}.{end}"), write)?.display().to_string())
    }

    /// Writes conversations one by one, so only one is in memory. With all of them, those deleted
    /// meanwhile are left out.
    fn write_conversations(&self, ids: &[i64], export: &Export, to: &mut dyn Write) -> Result<(), Unsaved> {
        let [begin, between, end] = match export.form {
            ExportForm::Json => ["[\n", ",\n", "\n]\n"],
            ExportForm::Markdown => ["", "\n---\n\n", ""],
        };
        to.write_all(begin.as_bytes())?;
        let mut before = "";
        for &id in ids {
            match self.written(id, export) {
                Ok(text) => {
                    to.write_all(before.as_bytes())?;
                    to.write_all(&text)?;
                    before = between;
                }
                Err(error) if error.code == ErrorCode::NotFound && export.conversation.is_none() => {}
                Err(error) => return Err(error.into()),
            }
        }
        to.write_all(end.as_bytes())?;
        Ok(to.flush()?)
    }

    /// Returns a conversation in its file format.
    fn written(&self, id: i64, export: &Export) -> Result<Vec<u8>> {
        if export.form == ExportForm::Markdown {
            let title = self.store().conversation(id)?.title;
            return Ok(markdown::text(&title, &self.store().messages(id)?, &export.you).into_bytes());
        }
        let mut tree = self.store().tree(id)?;
        if export.traces {
            for node in &mut tree.nodes {
                node.rounds = self.store().rounds(node.id)?;
            }
        }
        let json = own::json(&tree)?;
        admit(&tree.title, tree.nodes.len(), json.len(), export.traces)?;
        Ok(json)
    }

    /// Stores the conversations of a file that do not exist yet. Those that cannot be read are left
    /// out and named. An incomplete file adds nothing. [`Self::stop_import`] cancels it.
    ///
    /// # Errors
    /// Returns `BadFile` for a file that cannot be read, is damaged or contains no readable
    /// conversation; `Cancelled`.
    pub fn import_conversations(&self, path: &str, on_progress: OnImport<'_>) -> Result<Imported> {
        let cancel = self.importing.begin();
        let mut added = Vec::new();
        match self.import(Path::new(path), &cancel, &mut added, on_progress) {
            Ok(imported) => Ok(imported),
            Err(error) => {
                // If removing fails, the hidden conversations are purged with other deleted ones.
                let added: Vec<i64> = added.into_iter().map(|(id, _)| id).collect();
                if let Err(error) = self.store().remove_added(&added) {
                    tracing::warn!(%error, "the rest of a failed import is not removed yet");
                }
                Err(error)
            }
        }
    }

    /// Cancels the running import, which then stores nothing.
    pub fn stop_import(&self) {
        self.importing.end();
    }

    fn import(
        &self,
        path: &Path,
        cancel: &Cancel,
        added: &mut Vec<(i64, Option<String>)>,
        on_progress: OnImport<'_>,
    ) -> Result<Imported> {
        let (mut known, mut instructed) = (0, 0);
        let mut left_out = LeftOut::default();
        let mut problem = None;
        file::read(path, cancel, &mut |element, share| {
            match element {
                Element::Conversation(ReadTree { tree, left_out: messages }) => {
                    left_out.add(messages, Some(&tree.title));
                    if self.store().holds(&tree)? {
                        known += 1;
                    } else {
                        instructed += u32::from(tree.setup.as_deref().is_some_and(has_instructions));
                        let folder = tree.folder.clone().or_else(|| lm_studio::folder(path));
                        added.push((self.store().add_hidden(&tree)?, folder));
                    }
                }
                Element::Empty => {}
                Element::LeftOut(conversation) => {
                    left_out.conversations += 1;
                    left_out.name(conversation.title.as_deref());
                    problem.get_or_insert_with(|| conversation.error());
                }
            }
            on_progress(ImportProgress { share, conversations: added.len() as u32 });
            Ok(())
        })?;
        if added.is_empty() && known == 0 {
            return Err(problem.unwrap_or_else(|| bad("This file contains no conversations.")));
        }
        self.store().show_added(added)?;
        let last = added.last().map(|(id, _)| *id);
        Ok(Imported { added: added.len() as u32, known, last, instructed, left_out })
    }
}

/// Most conversations with something left out that are named.
const MAX_NAMED: usize = 3;

impl LeftOut {
    /// Adds messages left out of the conversation `title`.
    fn add(&mut self, messages: u32, title: Option<&str>) {
        if messages > 0 {
            self.messages += messages;
            self.name(title);
        }
    }

    fn name(&mut self, title: Option<&str>) {
        if let Some(title) = title.filter(|_| self.titles.len() < MAX_NAMED) {
            self.titles.push(title.to_owned());
        }
    }
}

/// Checks whether a conversation of this many messages and bytes could be imported again.
fn admit(title: &str, messages: usize, bytes: usize, traces: bool) -> Result<()> {
    let instead = match (messages > MAX_ELEMENTS, bytes > LONGEST) {
        (false, false) => return Ok(()),
        (false, true) if traces => "without traces, or as Markdown",
        _ => "as Markdown",
    };
    Err(bad(format!("\"{title}\" is too long to import again. Export it {instead}.")))
}

/// Longest file name made from a title, in characters.
const LONGEST_NAME: usize = 60;

/// Makes a file name of a title that every system accepts.
fn file_name(title: &str) -> String {
    let words: Vec<&str> =
        title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").to_lowercase().chars().take(LONGEST_NAME).collect();
    format!("foretoken-{}", if name.is_empty() { "conversation" } else { name.trim_end_matches('-') })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_too_long_to_import_again_is_not_exported_and_the_message_says_what_to_do() {
        assert!(admit("Foxes", MAX_ELEMENTS, LONGEST, true).is_ok());
        let refusal = |messages, bytes, traces| admit("Foxes", messages, bytes, traces).unwrap_err().message;
        let without = "\"Foxes\" is too long to import again. Export it without traces, or as Markdown.";
        let markdown = "\"Foxes\" is too long to import again. Export it as Markdown.";
        assert_eq!(refusal(1, LONGEST + 1, true), without);
        assert_eq!(refusal(1, LONGEST + 1, false), markdown);
        assert_eq!(refusal(MAX_ELEMENTS + 1, 1, true), markdown);
    }
}
