//! Stored downloads across restarts: `downloads.json` in the data folder. Several programs may
//! share the file, so each changes only its own entries, under a lock.

use serde::{Deserialize, Serialize};

use crate::json_file::JsonFile;
use crate::{Folders, Result};

/// A stored download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) repository: String,
    /// `None` for a folder model.
    pub(crate) file: Option<String>,
    /// Commit of the files.
    pub(crate) revision: String,
    pub(crate) files: Vec<RecordFile>,
    #[serde(default)]
    pub(crate) end: End,
}

/// A file to download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// Name in the cache, by which the partial file is found.
    pub(crate) etag: String,
}

/// Final state of a download.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    #[default]
    None,
    Done,
    Failed(String),
}

impl Record {
    pub(crate) fn id(&self) -> String {
        match &self.file {
            Some(file) => format!("{}:{file}", self.repository),
            None => self.repository.clone(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}

/// The file of stored downloads.
#[derive(Debug)]
pub(crate) struct Records {
    file: JsonFile,
}

impl Records {
    pub(crate) fn new(folders: &Folders) -> Self {
        Self { file: JsonFile::new(folders.root().join("downloads.json")) }
    }

    /// Returns all records, the oldest first. An unreadable file is set aside.
    pub(crate) fn read(&self) -> Vec<Record> {
        self.file.read()
    }

    /// Adds a record or replaces the one of the same name.
    pub(crate) fn put(&self, record: &Record) -> Result<()> {
        self.file.change(|records: &mut Vec<Record>| {
            match records.iter_mut().find(|known| known.id() == record.id()) {
                Some(known) => *known = record.clone(),
                None => records.push(record.clone()),
            }
        })
    }

    pub(crate) fn remove(&self, id: &str) -> Result<()> {
        self.file.change(|records: &mut Vec<Record>| records.retain(|record| record.id() != id))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn record(file: &str) -> Record {
        let files = vec![RecordFile { path: file.into(), bytes: 3, etag: "e".into() }];
        Record {
            repository: "owner/name".into(),
            file: Some(file.into()),
            revision: "abc".into(),
            files,
            end: End::None,
        }
    }

    #[test]
    fn two_programs_keep_each_others_records() {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders::at(folder.path().join("data"));
        let (one, other) = (Records::new(&folders), Records::new(&folders));
        one.put(&record("a.gguf")).unwrap();
        other.put(&record("b.gguf")).unwrap();
        let done = Record { end: End::Done, ..record("a.gguf") };
        one.put(&done).unwrap();
        assert_eq!(other.read(), [done, record("b.gguf")]);
        other.remove("owner/name:a.gguf").unwrap();
        assert_eq!(one.read(), [record("b.gguf")]);
    }

    #[test]
    fn an_unreadable_file_is_set_aside_and_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let records = Records::new(&Folders::at(folder.path()));
        fs::write(folder.path().join("downloads.json"), "[{\"repos").unwrap();
        assert!(records.read().is_empty());
        records.put(&record("a.gguf")).unwrap();
        assert_eq!(records.read().len(), 1);
        assert_eq!(fs::read(folder.path().join("downloads.unreadable")).unwrap(), b"[{\"repos");
    }
}
