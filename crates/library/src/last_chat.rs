//! The terminal's last conversation, `chat.json` in the data folder, which only its owner can read.
//! The terminal defines its contents.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json_file::JsonFile;
use crate::{Error, Folders, Result};

/// File of the conversation; see the module.
#[derive(Debug, Clone)]
pub struct LastChat(JsonFile);

/// Contents of the file, of any version.
#[derive(Default, Serialize, Deserialize)]
struct Contents(Option<Value>);

impl LastChat {
    pub fn new(folders: &Folders) -> Self {
        Self(JsonFile::new(folders.root().join("chat.json")))
    }

    /// Reads the conversation; `None` without one. A damaged file is set aside.
    ///
    /// # Errors
    /// `Error::Disk` for a file that cannot be read now.
    pub fn load<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        self.0.try_read().map_err(|source| Error::Disk { path: self.0.path().to_owned(), source })
    }

    /// Replaces the conversation.
    ///
    /// # Errors
    /// `Error::Disk`.
    pub fn save(&self, chat: &impl Serialize) -> Result<()> {
        let Ok(chat) = serde_json::to_value(chat) else { return Ok(()) };
        self.0.change(|contents: &mut Contents| contents.0 = Some(chat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_conversation_is_read_by_its_owner_alone_and_a_damaged_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let last = LastChat::new(&Folders::at(folder.path()));
        let load = || last.load::<Vec<String>>().unwrap();
        assert_eq!(load(), None);
        for words in [["Hello", "Hi"], ["Why?", "Because."]] {
            last.save(&words).unwrap();
            assert_eq!(load(), Some(words.map(str::to_owned).to_vec()));
        }
        let path = folder.path().join("chat.json");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&path.metadata().unwrap()) & 0o777, 0o600);
        for damaged in ["[\"Hel", "{\"another\": \"version\"}", "[7]"] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(load(), None, "{damaged}");
            assert_eq!(std::fs::read_to_string(path.with_extension("unreadable")).unwrap(), damaged);
        }
        last.save(&["Again"]).unwrap();
        assert_eq!(load(), Some(vec!["Again".to_owned()]));
    }
}
