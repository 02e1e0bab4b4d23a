//! Conversations out of the application and into it, as files: exports as JSON or Markdown, and imports of these and of
//! what other programs write. docs/conversations.md describes the formats.
//!
//! - `file`: one conversation after the other out of a file, an archive too
//! - `kinds`: whose file it is; `own`, `chatgpt`, `open_webui`, `lm_studio`: what it looks like; `reply_tree`: messages
//!   that name what they follow
//! - `markdown`: a conversation to be read; `problem`: why a file is refused

mod chatgpt;
mod file;
mod kinds;
mod lm_studio;
mod markdown;
mod open_webui;
mod own;
mod problem;
mod reply_tree;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use foretoken_store::Tree;

use self::problem::bad;
use crate::app::App;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{CommandError, Conversation, Export, ExportForm, ImportProgress, Imported};
use crate::save::save_by;

/// Told how far an import is.
pub type OnImport<'a> = &'a mut dyn FnMut(ImportProgress);

impl App {
    /// Stores a copy of a conversation under this title, with all its branches and traces.
    ///
    /// # Errors
    /// `NotFound`, and `Busy` while a reply is written.
    pub fn duplicate_conversation(&self, conversation: i64, title: &str) -> Result<Conversation> {
        let _turn = self.take_turn()?;
        self.store_rest();
        Ok(self.store().copy_conversation(conversation, title.trim())?.into())
    }

    /// Writes a conversation, or all of them, into a file for the person; returns its path.
    ///
    /// # Errors
    /// `NotFound`, and where the file cannot be written.
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
        let mut failed = None;
        let write = |to: &mut dyn Write| {
            self.write_conversations(&ids, export, &mut BufWriter::new(to)).map_err(|error| match error {
                Failed::File(error) => error,
                Failed::Store(error) => {
                    failed = Some(error);
                    io::Error::other("see above")
                }
            })
        };
        let path = save_by(&self.exports(), &format!("{name}.{end}"), write);
        match failed {
            Some(error) => Err(error),
            None => Ok(path?.display().to_string()),
        }
    }

    /// One after the other, so that no more than one is held in memory.
    fn write_conversations(&self, ids: &[i64], export: &Export, to: &mut dyn Write) -> Result<(), Failed> {
        let json = export.form == ExportForm::Json;
        to.write_all(if json { b"[\n" } else { b"" })?;
        for (number, &id) in ids.iter().enumerate() {
            to.write_all(match (number, json) {
                (0, _) => b"",
                (_, true) => b",\n",
                (_, false) => b"\n---\n\n",
            })?;
            if json {
                let mut tree = self.store().tree(id).map_err(CommandError::from)?;
                if export.traces {
                    for node in &mut tree.nodes {
                        node.rounds = self.store().rounds(node.id).map_err(CommandError::from)?;
                    }
                }
                own::write(&tree, to)?;
            } else {
                let title = self.store().conversation(id).map_err(CommandError::from)?.title;
                let messages = self.store().messages(id).map_err(CommandError::from)?;
                markdown::write(&title, &messages, &export.you, to)?;
            }
        }
        to.write_all(if json { b"\n]\n" } else { b"" })?;
        Ok(to.flush()?)
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

/// Why an export ended.
enum Failed {
    File(io::Error),
    Store(CommandError),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<CommandError> for Failed {
    fn from(error: CommandError) -> Self {
        Self::Store(error)
    }
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
