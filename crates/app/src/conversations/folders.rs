//! Folders of conversations.

use foretoken_store::LONGEST_FOLDER_NAME;

use crate::app::App;
use crate::error::Result;
use crate::exchange::visible;
use crate::ipc::{Conversation, ConversationFolder};

/// Methods that take a name return `BadName` if it is empty or another folder has it. A long name
/// is cut.
impl App {
    pub fn conversation_folders(&self) -> Result<Vec<ConversationFolder>> {
        Ok(self.store().folders()?.into_iter().map(Into::into).collect())
    }

    pub fn create_folder(&self, name: &str) -> Result<ConversationFolder> {
        Ok(self.store().create_folder(&shown_name(name))?.into())
    }

    pub fn rename_folder(&self, folder: i64, name: &str) -> Result<ConversationFolder> {
        Ok(self.store().rename_folder(folder, &shown_name(name))?.into())
    }

    /// Deletes a folder; its conversations stay, in no folder.
    pub fn delete_folder(&self, folder: i64) -> Result<()> {
        Ok(self.store().delete_folder(folder)?)
    }

    /// Restores a deleted folder with its conversations.
    pub fn restore_folder(&self, folder: i64) -> Result<ConversationFolder> {
        Ok(self.store().restore_folder(folder)?.into())
    }

    /// Moves a conversation into a folder, or out of its folder for `None`.
    pub fn move_conversation(&self, conversation: i64, folder: Option<i64>) -> Result<Conversation> {
        Ok(self.store().move_conversation(conversation, folder)?.into())
    }
}

/// Returns a name on one line without characters that hide or change others, cut to the longest
/// that a folder may have.
pub(crate) fn shown_name(name: &str) -> String {
    let name = visible(name);
    let line = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(LONGEST_FOLDER_NAME).collect();
    cut.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_of_visible_characters() {
        assert_eq!(shown_name("  Work\n\tand  play "), "Work and play");
        assert_eq!(shown_name("a\u{202e}b\u{2066}\u{7}\0"), "ab");
        assert_eq!(shown_name("\u{202e} \u{200f}"), "");
        assert_eq!(shown_name("<b>مجلد</b>"), "<b>مجلد</b>");
        let long = shown_name(&"ü".repeat(300));
        assert_eq!(long.chars().count(), LONGEST_FOLDER_NAME);
        let spaced = format!("{} {}", "a".repeat(LONGEST_FOLDER_NAME - 1), "b");
        assert_eq!(shown_name(&spaced), "a".repeat(LONGEST_FOLDER_NAME - 1));
    }
}
