//! Recognises models by file names alone: a `.gguf` file, or a folder with `config.json` and
//! `.safetensors` files. Either may be split into numbered parts.

use std::fs::{self, DirEntry};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Deepest level of models below a folder: `publisher/model/quantisation/file`. Also ends loops of
/// links.
const DEPTH: usize = 4;

/// Bytes at the beginning of a file in which its header is looked for; vocabularies take some MB.
const LARGEST_HEADER: u64 = 16 << 20;

/// Parts up to which a file is compared with its siblings.
const MOST_PARTS: u32 = 1000;

/// A file or folder that looks like a model.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The `.gguf` file (the first part of a split model), or the safetensors folder.
    pub(crate) path: PathBuf,
    /// Size of the weights, all parts together.
    pub(crate) size_bytes: u64,
}

/// Recognises a model at `path`; the error says what is there instead.
pub(crate) fn recognise(path: &Path) -> Result<Found, String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    let size_bytes =
        if metadata.is_dir() { safetensors_size(path)? } else { gguf_size(path, metadata.len())? };
    Ok(Found { path: path.to_path_buf(), size_bytes })
}

/// Returns every model in `folder` and below, ordered by path. Unreadable entries are skipped.
pub(crate) fn models_below(folder: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    collect(folder, DEPTH, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Returns whether a name is that of a vision file: a GGUF file called mmproj.
pub(crate) fn is_vision_file(name: &str) -> bool {
    has_extension(Path::new(name), "gguf") && name.to_ascii_lowercase().contains("mmproj")
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<Found>) {
    found.extend(recognise(folder));
    for entry in visible_entries(folder) {
        let path = entry.path();
        if entry.file_name().to_str().is_some_and(is_vision_file) {
            continue;
        }
        if has_extension(&path, "gguf") && path.is_file() {
            match recognise(&path) {
                Ok(model) => found.push(model),
                Err(reason) => tracing::debug!("{} is not listed: {reason}", path.display()),
            }
        } else if depth > 0 && path.is_dir() {
            collect(&path, depth - 1, found);
        }
    }
}

/// Returns the entries of a folder whose names do not begin with a dot; none if it cannot be read.
pub(crate) fn visible_entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    let entries = fs::read_dir(folder).inspect_err(|error| tracing::debug!("{}: {error}", folder.display()));
    let entries = entries.into_iter().flatten().flatten();
    entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
}

fn gguf_size(path: &Path, size: u64) -> Result<u64, String> {
    if has_extension(path, "safetensors") {
        return Err("a single .safetensors file: choose the folder that contains it".into());
    }
    if !has_extension(path, "gguf") {
        return Err("a different kind of file".into());
    }
    match Part::of(path) {
        None => Ok(size),
        Some(part) if part.is_alone(path) && !is_split(path) => Ok(size),
        Some(part) if part.number == 1 => part.total_size(path),
        Some(part) => Err(format!("part {} of {}: choose the first part", part.number, part.count)),
    }
}

/// Returns whether the header of a `.gguf` file says that it is a part of several. Some whole files
/// keep the name of a part. A file that cannot be read, or is none, counts as a part.
fn is_split(path: &Path) -> bool {
    const KEY: &[u8] = b"split.count";
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LARGEST_HEADER).read_to_end(&mut start));
    read.is_err() || !start.starts_with(b"GGUF") || start.windows(KEY.len()).any(|bytes| bytes == KEY)
}

/// Document of an embedding model with the way from its states to an embedding, in a folder of its
/// own.
pub(crate) const POOLING: &str = "1_Pooling/config.json";

/// Returns whether a folder model needs the file of this name, as weights or beside them.
pub(crate) fn belongs_to_folder_model(name: &str) -> bool {
    if name == POOLING {
        return true;
    }
    let path = Path::new(name);
    let needed = ["safetensors", "json", "jinja", "txt", "model"];
    path.components().count() == 1 && needed.iter().any(|extension| has_extension(path, extension))
}

/// Returns whether a file of this name certainly belongs to a folder model. Only such files are
/// deleted from a folder that may also contain others.
pub(crate) fn is_known_of_folder_model(name: &str) -> bool {
    const KNOWN: [&str; 5] =
        ["config.json", "generation_config.json", "tokenizer.model", "special_tokens_map.json", "merges.txt"];
    KNOWN.contains(&name)
        || has_extension(Path::new(name), "safetensors")
        || name.ends_with(".safetensors.index.json")
        || (name.starts_with("tokenizer") && name.ends_with(".json"))
        || ["vocab.", "chat_template."].iter().any(|begin| name.starts_with(begin))
}

fn safetensors_size(folder: &Path) -> Result<u64, String> {
    if !folder.join("config.json").is_file() {
        return Err("a folder without config.json".into());
    }
    let mut total = 0;
    for entry in visible_entries(folder) {
        let path = entry.path();
        if !has_extension(&path, "safetensors") {
            continue;
        }
        total += match Part::of(&path) {
            // Split weights count once, at the first part; a later part without it is an incomplete
            // download.
            Some(part) if part.number == 1 => part.total_size(&path)?,
            Some(part) => part.size_of(&path, 1).map(|_| 0)?,
            None => fs::metadata(&path).map_or(0, |metadata| metadata.len()),
        };
    }
    if total == 0 { Err("a folder without .safetensors files".into()) } else { Ok(total) }
}

/// Position of a file in a split model: `stem-00001-of-00003.gguf`.
pub(crate) struct Part {
    stem: String,
    pub(crate) number: u32,
    pub(crate) count: u32,
}

impl Part {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let (rest, count) = path.file_stem()?.to_str()?.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let parse = |digits: &str| (digits.len() == 5).then(|| digits.parse().ok()).flatten();
        Some(Self { stem: stem.into(), number: parse(number)?, count: parse(count)? })
    }

    /// Returns whether no other part of the model is beside `path`.
    fn is_alone(&self, path: &Path) -> bool {
        // Names with thousands of parts are not searched one by one.
        self.count <= MOST_PARTS
            && (1..=self.count)
                .filter(|&number| number != self.number)
                .all(|number| !self.sibling(path, number).exists())
    }

    fn total_size(&self, path: &Path) -> Result<u64, String> {
        (1..=self.count).map(|number| self.size_of(path, number)).sum()
    }

    /// Returns the path of part `number` of the model that `path` is a part of.
    pub(crate) fn sibling(&self, path: &Path, number: u32) -> PathBuf {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!("{}-{number:05}-of-{:05}.{extension}", self.stem, self.count))
    }

    /// Returns the bytes of part `number` of the model that `path` is a part of.
    fn size_of(&self, path: &Path, number: u32) -> Result<u64, String> {
        let size = fs::metadata(self.sibling(path, number)).map(|metadata| metadata.len());
        size.map_err(|_| {
            format!("a model split into {} parts, of which part {number} is missing", self.count)
        })
    }
}

pub(crate) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Writes a file of this many bytes and creates its folders.
    pub(crate) fn put(path: &Path, bytes: usize) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![0; bytes]).unwrap();
    }

    fn found_in(folder: &Path) -> Vec<(String, u64)> {
        let name = |path: &Path| path.strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/");
        models_below(folder).iter().map(|model| (name(&model.path), model.size_bytes)).collect()
    }

    #[test]
    fn files_and_folders_are_recognised_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        put(&folder.join("b.gguf"), 3);
        put(&folder.join("A.GGUF"), 2);
        put(&folder.join("notes.txt"), 9);
        put(&folder.join("llama/config.json"), 9);
        put(&folder.join("llama/model.safetensors"), 5);
        put(&folder.join("publisher/model/c.gguf"), 7);
        put(&folder.join("only-config/config.json"), 9);
        put(&folder.join("only-weights/model.safetensors"), 9);
        put(&folder.join(".hidden/d.gguf"), 9);
        put(&folder.join("folder.gguf/e.gguf"), 4);
        let expected = [
            ("A.GGUF", 2),
            ("b.gguf", 3),
            ("folder.gguf/e.gguf", 4),
            ("llama", 5),
            ("publisher/model/c.gguf", 7),
        ];
        assert_eq!(found_in(folder), expected.map(|(name, size)| (name.to_string(), size)));
    }

    #[test]
    fn a_split_model_is_listed_once_with_the_size_of_all_parts() {
        let folder = tempfile::tempdir().unwrap();
        for (number, size) in [(1, 10), (2, 20), (3, 5)] {
            put(&folder.path().join(format!("m-0000{number}-of-00003.gguf")), size);
            put(&folder.path().join(format!("s/model-0000{number}-of-00003.safetensors")), size);
        }
        put(&folder.path().join("s/config.json"), 9);
        let expected = [("m-00001-of-00003.gguf".to_string(), 35), ("s".to_string(), 35)];
        assert_eq!(found_in(folder.path()), expected);
        let second = recognise(&folder.path().join("m-00002-of-00003.gguf")).unwrap_err();
        assert_eq!(second, "part 2 of 3: choose the first part");
    }

    #[test]
    fn a_split_model_with_a_missing_part_is_not_a_model() {
        for (missing, present) in [(1, 2), (2, 1)] {
            let folder = tempfile::tempdir().unwrap();
            put(&folder.path().join(format!("m-0000{present}-of-00002.gguf")), 1);
            put(&folder.path().join(format!("s/model-0000{present}-of-00002.safetensors")), 1);
            put(&folder.path().join("s/config.json"), 9);
            assert!(found_in(folder.path()).is_empty());
            let reason = recognise(&folder.path().join("s")).unwrap_err();
            assert!(reason.ends_with(&format!("part {missing} is missing")), "{reason}");
        }
    }

    #[test]
    fn a_complete_model_named_like_a_part_is_a_model() {
        let folder = tempfile::tempdir().unwrap();
        for (name, key) in [
            ("whole-00001-of-00003.gguf", &b"general.name"[..]),
            ("part-00001-of-00003.gguf", b"split.count"),
        ] {
            fs::write(folder.path().join(name), [b"GGUF\x03\0\0\0", key].concat()).unwrap();
        }
        assert_eq!(found_in(folder.path()), [("whole-00001-of-00003.gguf".to_string(), 20)]);
        let second = folder.path().join("whole-00002-of-00003.gguf");
        fs::write(&second, b"GGUF\x03\0\0\0").unwrap();
        assert!(recognise(&second).is_err(), "one of several files is a part");
    }

    #[test]
    fn a_name_that_only_resembles_a_part_is_a_complete_model() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["best-of-00002.gguf", "one-1-of-2.gguf", "two-00002-of-all.gguf"] {
            put(&folder.path().join(name), 1);
        }
        assert_eq!(found_in(folder.path()).len(), 3);
    }

    #[cfg(unix)]
    #[test]
    fn broken_links_and_loops_of_links_are_skipped() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        put(&folder.path().join("a/good.gguf"), 1);
        symlink("nowhere", folder.path().join("a/broken.gguf")).unwrap();
        symlink("/nowhere/at/all", folder.path().join("gone")).unwrap();
        symlink("..", folder.path().join("a/up")).unwrap();
        let names: Vec<_> = found_in(folder.path()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[0], "a/good.gguf");
        assert!(names.iter().all(|name| name.ends_with("good.gguf")), "{names:?}");
    }

    #[test]
    fn a_path_that_is_not_a_model_says_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        put(&folder.path().join("a/model.safetensors"), 1);
        put(&folder.path().join("b/config.json"), 1);
        put(&folder.path().join("c.txt"), 1);
        for (name, found) in [
            ("a", "a folder without config.json"),
            ("a/model.safetensors", "a single .safetensors file: choose the folder that contains it"),
            ("b", "a folder without .safetensors files"),
            ("c.txt", "a different kind of file"),
        ] {
            assert_eq!(recognise(&folder.path().join(name)).unwrap_err(), found);
        }
    }
}
