//! Reads the conversations of a file one by one: JSON, or an archive that contains JSON.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use super::elements::Elements;
use super::kinds::{self, Element};
use super::problem::bad;
use crate::cancel::Cancel;
use crate::error::Result;

/// Largest ratio of unpacked to packed size: more than any compression reaches, unless an archive
/// lists one part many times. The second limit is in bytes.
const MAX_RATIO: u64 = 1_000;
const MOST_UNPACKED: u64 = 8 << 30;

/// Receives each conversation, and the share of the file read so far.
type OnElement<'a> = &'a mut dyn FnMut(Element, f32) -> Result<()>;

/// Reads the conversations in the file at `path`.
///
/// # Errors
/// Returns `BadFile`, `Cancelled`, and errors of `on`.
pub fn read(path: &Path, cancel: &Cancel, on: OnElement<'_>) -> Result<()> {
    let refused = |error: io::Error| bad(format!("{} could not be read: {error}.", path.display()));
    let about = fs::metadata(path).map_err(refused)?;
    // Opening a pipe would block.
    if !about.is_file() {
        return Err(bad(format!("{} is not a regular file.", path.display())));
    }
    let mut file = File::open(path).map_err(refused)?;
    let mut begin = [0; 4];
    let archive = file.read_exact(&mut begin).is_ok() && begin == *b"PK\x03\x04";
    file.rewind().map_err(refused)?;
    if archive {
        return read_archive(file, about.len(), cancel, on);
    }
    read_json(Elements::new(BufReader::new(file), u64::MAX, cancel), about.len(), on).map(drop)
}

/// Reads every `conversations.json` of an archive of `packed` bytes; large exports have several,
/// numbered.
fn read_archive(file: File, packed: u64, cancel: &Cancel, on: OnElement<'_>) -> Result<()> {
    let damaged =
        |error: zip::result::ZipError| bad(format!("This archive is damaged or incomplete: {error}."));
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
        return Err(bad("This archive contains no conversations.json."));
    }
    let parts = entries.len() as f32;
    let mut left = packed.saturating_mul(MAX_RATIO).min(MOST_UNPACKED);
    for (number, (_, entry)) in entries.iter().enumerate() {
        let entry = archive.by_index_raw(*entry).map_err(damaged)?;
        let mut on = |element, share| on(element, (number as f32 + share) / parts);
        let total = entry.size();
        let unpacked: &mut dyn Read = match entry.compression() {
            CompressionMethod::Stored => &mut { entry },
            CompressionMethod::DEFLATE => &mut DeflateDecoder::new(entry),
            other => return Err(bad(format!("This archive uses an unsupported compression: {other}."))),
        };
        left -= read_json(Elements::new(BufReader::new(unpacked), left, cancel), total, &mut on)?;
    }
    Ok(())
}

/// Reads the conversations of a file of `total` bytes; returns the bytes read.
fn read_json(mut elements: Elements<'_, impl BufRead>, total: u64, on: OnElement<'_>) -> Result<u64> {
    while let Some(json) = elements.next()? {
        let element = kinds::element(&json)?;
        on(element, (elements.read() as f32 / total.max(1) as f32).min(1.0))?;
    }
    Ok(elements.read())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::ErrorCode;
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
        read(file.path(), &Cancel::default(), &mut |element, share| {
            assert!((0.0..=1.0).contains(&share));
            match element {
                Element::Conversation(read) => titles.push(read.tree.title),
                Element::Empty => {}
                Element::LeftOut(left_out) => return Err(left_out.error()),
            }
            Ok(())
        })?;
        Ok(titles)
    }

    /// Creates an archive of deflated files. A file with the text of the previous one is listed as
    /// the same part again.
    fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut directory = Vec::new();
        let (mut before, mut start) = ("", 0);
        for (name, text) in files {
            let mut packed = DeflateEncoder::new(text.as_bytes(), Compression::default());
            let mut data = Vec::new();
            packed.read_to_end(&mut data).unwrap();
            let number = |number: usize| (number as u32).to_le_bytes();
            // Version 2.0, no flags, deflated, no time; a checksum of zero, which is not verified.
            let mut facts = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            facts.extend([number(data.len()), number(text.len()), number(name.len())].concat());
            directory.extend(b"PK\x01\x02\x14\0");
            directory.extend(&facts);
            directory.extend([0; 10]);
            if *text != before {
                (before, start) = (text, bytes.len());
            }
            directory.extend(number(start));
            directory.extend(name.bytes());
            if start < bytes.len() {
                continue;
            }
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
    fn a_list_a_single_conversation_and_an_archive_are_read() {
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
    fn a_truncated_file_is_refused_with_a_message() {
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
    fn an_archive_that_lists_one_part_many_times_is_refused_at_the_limit() {
        let long = format!("[{}]", " ".repeat(4 << 20));
        let archive = zipped(&[("conversations-0.json", &long)]);
        assert!(archive.len() < 5_000, "{}", archive.len());
        assert!(read_bytes(&archive).unwrap().is_empty());
        let names: Vec<String> = (0..9).map(|part| format!("conversations-{part}.json")).collect();
        let again: Vec<_> = names.iter().map(|name| (name.as_str(), long.as_str())).collect();
        let error = read_bytes(&zipped(&again)).unwrap_err();
        assert!(error.message.contains("too large to unpack"), "{}", error.message);
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_a_file_is_refused_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.json");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [folder.path(), &pipe, Path::new("/dev/zero")] {
            let error = read(path, &Cancel::default(), &mut |_, _| Ok(())).unwrap_err();
            assert_eq!(error.message, format!("{} is not a regular file.", path.display()));
        }
    }

    #[test]
    fn a_cancelled_import_reports_it() {
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
