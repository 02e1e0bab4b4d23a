//! Conversations out of the application and into it, as files: exports as JSON or Markdown, and imports of these and of
//! what other programs write. docs/conversations.md describes the formats.
//!
//! - `file`: one conversation after the other out of a file, an archive too; `elements`: where each ends
//! - `kinds`: whose file it is; `own`, `chatgpt`, `open_webui`, `lm_studio`: what it looks like; `reply_tree`: messages
//!   that name what they follow; `parts`: texts in parts; `bounded`: no more of them than there can be
//! - `markdown`: a conversation to be read; `problem`: why a file is refused

mod bounded;
mod chatgpt;
mod elements;
mod file;
mod kinds;
mod lm_studio;
mod markdown;
mod open_webui;
mod own;
mod parts;
mod problem;
mod reply_tree;

use std::io::{BufWriter, Write};
use std::path::Path;

use foretoken_store::Tree;

use self::bounded::MOST;
use self::elements::LONGEST;
use self::problem::bad;
use crate::app::App;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{Conversation, ErrorCode, Export, ExportForm, ImportProgress, Imported};
use crate::save::{Unsaved, save_by};

/// Told how far an import is.
pub type OnImport<'a> = &'a mut dyn FnMut(ImportProgress);

impl App {
    /// Stores a copy of a conversation under this title: all of it, or what leads to the message `up_to` and that
    /// alone.
    ///
    /// # Errors
    /// `NotFound`, and `Busy` while a reply is written.
    pub fn duplicate_conversation(
        &self,
        conversation: i64,
        up_to: Option<i64>,
        title: &str,
    ) -> Result<Conversation> {
        let _turn = self.take_turn()?;
        self.store_rest();
        Ok(self.store().copy_conversation(conversation, up_to, title.trim())?.into())
    }

    /// Writes a conversation, or all of them, into a file for the person; returns its path.
    ///
    /// # Errors
    /// `NotFound`, `BadFile` for JSON that would be too long to be imported again, and where the file cannot be written.
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

    /// One after the other, so that no more than one is held in memory. Of all, those are left out that were deleted
    /// meanwhile.
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

    /// A conversation as it stands in a file.
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
        admit(&tree.title, (tree.nodes.len(), json.len()), export.traces)?;
        Ok(json)
    }

    /// Stores what is in a file, and is not here already: all of it or nothing. [`Self::stop_import`] ends it.
    ///
    /// # Errors
    /// `BadFile` for one that cannot be read, is damaged or of a kind that is not known; `Cancelled`.
    pub fn import_conversations(&self, path: &str, on_progress: OnImport<'_>) -> Result<Imported> {
        let cancel = self.importing.begin();
        let mut added = Vec::new();
        match self.import(Path::new(path), &cancel, &mut added, on_progress) {
            Ok(imported) => Ok(imported),
            Err(error) => {
                // Should that fail, what nobody sees goes with what was deleted.
                if let Err(error) = self.store().remove_added(&added) {
                    tracing::warn!(%error, "what was imported half is not removed yet");
                }
                Err(error)
            }
        }
    }

    /// Ends the import under way, which leaves nothing.
    pub fn stop_import(&self) {
        self.importing.end();
    }

    fn import(
        &self,
        path: &Path,
        cancel: &Cancel,
        added: &mut Vec<i64>,
        on_progress: OnImport<'_>,
    ) -> Result<Imported> {
        let mut known = 0;
        file::read(path, cancel, &mut |tree: Tree, share| {
            if self.store().holds(&tree)? {
                known += 1;
            } else {
                added.push(self.store().add_hidden(&tree)?);
            }
            on_progress(ImportProgress { share, conversations: added.len() as u32 });
            Ok(())
        })?;
        if added.is_empty() && known == 0 {
            return Err(bad("There is no conversation in this file."));
        }
        self.store().show_added(added)?;
        Ok(Imported { added: added.len() as u32, known, last: added.last().copied() })
    }
}

/// Whether a conversation of so many messages and bytes could be imported again.
fn admit(title: &str, (messages, bytes): (usize, usize), traces: bool) -> Result<()> {
    let instead = match (messages > MOST, bytes > LONGEST) {
        (false, false) => return Ok(()),
        (false, true) if traces => "without traces, or as Markdown",
        _ => "as Markdown",
    };
    Err(bad(format!("\"{title}\" is too long to be imported again. Export it {instead}.")))
}

/// Characters of a title that a file is named after at most.
const LONGEST_NAME: usize = 60;

/// The words of a title as a file's name, which every system takes.
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
    fn what_could_not_be_imported_again_is_not_exported_and_what_to_do_is_said() {
        assert!(admit("Foxes", (MOST, LONGEST), true).is_ok());
        let refusal = |size, traces| admit("Foxes", size, traces).unwrap_err().message;
        let without = "\"Foxes\" is too long to be imported again. Export it without traces, or as Markdown.";
        let markdown = "\"Foxes\" is too long to be imported again. Export it as Markdown.";
        assert_eq!(refusal((1, LONGEST + 1), true), without);
        assert_eq!(refusal((1, LONGEST + 1), false), markdown);
        assert_eq!(refusal((MOST + 1, 1), true), markdown);
    }
}
