//! One conversation after the other out of a file: JSON, or an archive with JSON in it. Memory is taken for one
//! conversation at a time.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use flate2::read::DeflateDecoder;
use foretoken_store::Tree;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use zip::{CompressionMethod, ZipArchive};

use super::kinds;
use super::problem::{bad, damaged};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode};

/// Longest conversation in a file, in bytes: an archive of a few bytes can hold any number.
pub const LONGEST: u64 = 256 << 20;

/// Gets each conversation, and which share of the file was read.
type OnTree<'a> = &'a mut dyn FnMut(Tree, f32) -> Result<()>;

/// Reads the conversations in the file at `path`.
///
/// # Errors
/// `BadFile`, `Cancelled`, and those of `on`.
pub fn read(path: &Path, cancel: &Cancel, on: OnTree<'_>) -> Result<()> {
    let refused = |error: io::Error| bad(format!("{} could not be read: {error}.", path.display()));
    let mut file = File::open(path).map_err(refused)?;
    let total = file.metadata().map_err(refused)?.len();
    let mut begin = [0; 4];
    let archive = file.read_exact(&mut begin).is_ok() && begin == *b"PK\x03\x04";
    file.rewind().map_err(refused)?;
    if archive { read_archive(file, cancel, on) } else { read_json(file, total, cancel, on) }
}

/// Those in every `conversations.json` of an archive; large exports have several, numbered.
fn read_archive(file: File, cancel: &Cancel, on: OnTree<'_>) -> Result<()> {
    let damaged = |error: zip::result::ZipError| bad(format!("This archive is damaged or cut off: {error}."));
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
    let mut entries = Vec::new();
    for (entry, name) in archive.file_names().enumerate() {
        let name = name.map_err(damaged)?.into_owned();
        let last = name.rsplit('/').next().unwrap_or_default();
        if last.starts_with("conversations") && last.ends_with(".json") {
            entries.push((name, entry));
        }
    }
    entries.sort_unstable();
    if entries.is_empty() {
        return Err(bad("There is no conversations.json in this archive."));
    }
    let parts = entries.len() as f32;
    for (number, (_, entry)) in entries.iter().enumerate() {
        let entry = archive.by_index_raw(*entry).map_err(damaged)?;
        let mut on = |tree, share| on(tree, (number as f32 + share) / parts);
        let total = entry.size();
        match entry.compression() {
            CompressionMethod::Stored => read_json(entry, total, cancel, &mut on)?,
            CompressionMethod::DEFLATE => read_json(DeflateDecoder::new(entry), total, cancel, &mut on)?,
            other => return Err(bad(format!("This archive is packed in a way that is not known: {other}."))),
        }
    }
    Ok(())
}

/// Those of a list, or the one that is all of the file. `total` is how many bytes that has.
fn read_json(file: impl Read, total: u64, cancel: &Cancel, on: OnTree<'_>) -> Result<()> {
    let done = Done::default();
    let mut file = BufReader::new(Watched { file, done: &done, cancel });
    let list = begins_list(&mut file).map_err(|error| unread(&error.to_string(), cancel))?;
    let mut failed = None;
    let share = || done.all.get() as f32 / total.max(1) as f32;
    let mut take = |json: &str| -> Result<()> {
        done.one.set(0);
        match kinds::tree(json)? {
            Some(tree) => on(tree, share().min(1.0)),
            None => Ok(()),
        }
    };
    let mut read = serde_json::Deserializer::from_reader(file);
    let outcome = if list {
        let conversations = Conversations { take: &mut take, failed: &mut failed };
        read.deserialize_seq(conversations).and_then(|()| read.end())
    } else {
        Box::<RawValue>::deserialize(&mut read).and_then(|one| {
            failed = take(one.get()).err();
            read.end()
        })
    };
    match (failed, outcome) {
        (Some(error), _) => Err(error),
        (None, Err(error)) if error.is_io() => Err(unread(&error.to_string(), cancel)),
        (None, Err(error)) => Err(damaged(&error)),
        (None, Ok(())) => Ok(()),
    }
}

fn unread(reason: &str, cancel: &Cancel) -> CommandError {
    if cancel.is_cancelled() {
        return CommandError::new(ErrorCode::Cancelled, "The import was stopped. Nothing was imported.");
    }
    bad(format!("This file could not be read: {reason}. Nothing was imported."))
}

/// Whether a file holds a list. White space before it is read, and what some programs mark UTF-8 with.
fn begins_list(file: &mut impl io::BufRead) -> io::Result<bool> {
    loop {
        match file.fill_buf()?.first() {
            Some(b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF) => file.consume(1),
            first => return Ok(first == Some(&b'[')),
        }
    }
}

/// Bytes that were read: of all, and of the present conversation.
#[derive(Default)]
struct Done {
    all: Cell<u64>,
    one: Cell<u64>,
}

/// A file that can be read no further once it is given up, or a conversation is too long.
struct Watched<'a, R> {
    file: R,
    done: &'a Done,
    cancel: &'a Cancel,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        let read = self.file.read(into)?;
        for count in [&self.done.all, &self.done.one] {
            count.set(count.get() + read as u64);
        }
        if self.done.one.get() > LONGEST {
            return Err(io::Error::other(format!("a conversation has more than {} MB", LONGEST >> 20)));
        }
        Ok(read)
    }
}

/// The elements of a list, one by one.
struct Conversations<'a> {
    take: &'a mut dyn FnMut(&str) -> Result<()>,
    failed: &'a mut Option<CommandError>,
}

impl<'de> Visitor<'de> for Conversations<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of conversations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(one) = list.next_element::<Box<RawValue>>()? {
            if let Err(error) = (self.take)(one.get()) {
                *self.failed = Some(error);
                return Err(A::Error::custom("see above"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::read::DeflateEncoder;
    use std::io::Write;

    const LIST: &str = r#"[{"name":"One","createdAt":1,"messages":[
        {"versions":[{"type":"singleStep","role":"user","content":[{"type":"text","text":"Why?"}]}],"currentlySelected":0}
    ]},{"title":"Two","mapping":{"a":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["Who?"]}}}}}]"#;

    fn read_bytes(bytes: &[u8]) -> Result<Vec<String>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut titles = Vec::new();
        read(file.path(), &Cancel::default(), &mut |tree, share| {
            assert!((0.0..=1.0).contains(&share));
            titles.push(tree.title);
            Ok(())
        })?;
        Ok(titles)
    }

    /// An archive of deflated files.
    fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut directory = Vec::new();
        for (name, text) in files {
            let mut packed = DeflateEncoder::new(text.as_bytes(), Compression::default());
            let mut data = Vec::new();
            packed.read_to_end(&mut data).unwrap();
            let number = |number: usize| (number as u32).to_le_bytes();
            // Version 2.0, no flags, deflated, no time; no check sum, which is not looked at.
            let mut facts = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            facts.extend([number(data.len()), number(text.len()), number(name.len())].concat());
            directory.extend(b"PK\x01\x02\x14\0");
            directory.extend(&facts);
            directory.extend([0; 10]);
            directory.extend(number(bytes.len()));
            directory.extend(name.bytes());
            bytes.extend(b"PK\x03\x04");
            bytes.extend(&facts);
            bytes.extend(name.bytes());
            bytes.extend(data);
        }
        let count = (files.len() as u16).to_le_bytes();
        let [size, start] = [directory.len(), bytes.len()].map(|number| (number as u32).to_le_bytes());
        bytes.extend(directory);
        bytes.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &count, &count, &size, &start, &[0, 0]].concat());
        bytes
    }

    #[test]
    fn a_list_one_conversation_and_an_archive_are_read() {
        assert_eq!(read_bytes(LIST.as_bytes()).unwrap(), ["One", "Two"]);
        assert_eq!(read_bytes(format!("\u{feff} \n{LIST}\n").as_bytes()).unwrap(), ["One", "Two"]);
        let one = LIST[1..].split_once(",{\"title").unwrap().0;
        assert_eq!(read_bytes(one.as_bytes()).unwrap(), ["One"]);
        let archive = zipped(&[
            ("user.json", "{}"),
            ("export/conversations-000.json", LIST),
            ("conversations-001.json", one_list(one).as_str()),
        ]);
        assert_eq!(read_bytes(&archive).unwrap(), ["One", "One", "Two"]);
    }

    fn one_list(one: &str) -> String {
        format!("[{one}]")
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_refused_in_a_sentence() {
        let archive = zipped(&[("conversations.json", LIST)]);
        for end in 0..LIST.len() {
            let error = read_bytes(&LIST.as_bytes()[..end]).unwrap_err();
            assert!(error.code == ErrorCode::BadFile && error.message.ends_with('.'), "{}", error.message);
        }
        for end in 0..archive.len() {
            assert_eq!(read_bytes(&archive[..end]).unwrap_err().code, ErrorCode::BadFile);
        }
        for other in
            ["null", "7", "[7]", "[{}]", "{}", "[{\"messages\":7}]", "\u{0}", &"[".repeat(10_000), "GGUF"]
        {
            assert_eq!(read_bytes(other.as_bytes()).unwrap_err().code, ErrorCode::BadFile, "{other}");
        }
        let error = read_bytes(&zipped(&[("user.json", "{}")])).unwrap_err();
        assert!(error.message.contains("conversations.json"), "{}", error.message);
        let missing = read(Path::new("/nowhere.json"), &Cancel::default(), &mut |_, _| Ok(())).unwrap_err();
        assert!(missing.message.contains("/nowhere.json"), "{}", missing.message);
    }

    #[test]
    fn an_import_that_is_stopped_says_so() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let one = LIST[1..].split_once(",{\"title").unwrap().0;
        file.write_all(format!("[{}", format!("{one},").repeat(1_000)).as_bytes()).unwrap();
        let cancel = Cancel::default();
        let mut count = 0;
        let stop = &mut |_, _| {
            count += 1;
            cancel.cancel();
            Ok(())
        };
        assert_eq!(read(file.path(), &cancel, stop).unwrap_err().code, ErrorCode::Cancelled);
        assert!(count < 1_000, "{count}");
    }
}
