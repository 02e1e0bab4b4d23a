//! The hub's cache on disk, shared with other programs: `models--owner--name/snapshots/<revision>/`
//! holds links into `blobs/`, `refs/main` names the revision last asked for.
//!
//! Read here rather than through `hf-hub`, which needs a working HTTP client even to list files: a
//! computer without certificates could not open what it already has. Where the cache is, `hf-hub`
//! says, so that downloads and this listing agree.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::model_path::{Found, models_below, visible_entries};
use crate::{Error, Result};

/// What the hub says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMetadata {
    /// The file's name in the cache: for large files their SHA-256, for small ones git's SHA-1.
    pub(crate) etag: String,
    pub(crate) bytes: u64,
}

/// A repository's place in the cache.
#[derive(Debug, Clone)]
pub(crate) struct CachedRepository {
    cache: PathBuf,
    /// `models--owner--name`
    folder: String,
}

impl CachedRepository {
    pub(crate) fn new(cache: &Path, repository: &str) -> Self {
        Self { cache: cache.to_owned(), folder: format!("models--{}", repository.replace('/', "--")) }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.cache.join(&self.folder)
    }

    /// What a file of that checksum is called.
    pub(crate) fn blob(&self, etag: &str) -> PathBuf {
        self.path().join("blobs").join(etag)
    }

    /// What it is called while it is on its way.
    pub(crate) fn partial(&self, etag: &str) -> PathBuf {
        self.path().join("blobs").join(format!("{etag}.incomplete"))
    }

    /// Where a file of a revision is found.
    pub(crate) fn link(&self, revision: &str, file: &str) -> PathBuf {
        self.path().join("snapshots").join(revision).join(file)
    }

    /// Locked by whoever downloads the file, as all programs that share the cache do.
    ///
    /// # Errors
    /// `Error::Disk` when it cannot be made; `Ok(None)` when another holds it.
    pub(crate) fn lock(&self, etag: &str) -> Result<Option<File>> {
        let path = self.cache.join(".locks").join(&self.folder).join(format!("{etag}.lock"));
        let lock = parent(&path).and_then(|()| File::create(&path)).and_then(|file| match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        });
        lock.map_err(|source| Error::Disk { path, source })
    }

    /// Makes a downloaded blob the file of a revision: by a link, or by moving it there where links are
    /// not allowed. Not by hf-hub, which would ask the hub again and copy gigabytes on Windows.
    pub(crate) fn publish(&self, revision: &str, file: &str, known: &FileMetadata) -> Result<()> {
        let link = self.link(revision, file);
        let blob = self.blob(&known.etag);
        let up = "../".repeat(file.split('/').count() + 1);
        let published = parent(&link).and_then(|()| {
            // A link that leads nowhere is in the way.
            let _ = fs::remove_file(&link);
            match symlink(&format!("{up}blobs/{}", known.etag), &link) {
                Err(error) if links_are_refused(&error) => fs::rename(&blob, &link),
                // Another program was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && has(&link, known.bytes) => Ok(()),
                linked => linked,
            }
        });
        published.map_err(|source| Error::Disk { path: link, source })
    }

    /// Files of that name and length in other revisions, which may be the one that is wanted where links are not allowed.
    /// A link leads to a blob, which would have been found by its checksum.
    pub(crate) fn namesakes(&self, file: &str, bytes: u64) -> Vec<PathBuf> {
        let files = snapshots(&self.path()).into_iter().map(|snapshot| snapshot.join(file));
        files.filter(|path| !path.is_symlink() && has(path, bytes)).collect()
    }

    /// Makes a file of another revision the blob that it is, without a second copy where the disk can do so.
    pub(crate) fn adopt(&self, file: &Path, known: &FileMetadata) -> Result<()> {
        let blob = self.blob(&known.etag);
        let adopted = parent(&blob)
            .and_then(|()| fs::hard_link(file, &blob).or_else(|_| fs::copy(file, &blob).map(|_| ())));
        adopted.map_err(|source| Error::Disk { path: blob, source })
    }

    /// Remembers the revision that `main` stood for, by which other programs find the files.
    pub(crate) fn set_main(&self, revision: &str) -> Result<()> {
        let path = self.path().join("refs/main");
        let written = parent(&path).and_then(|()| fs::write(&path, revision));
        written.map_err(|source| Error::Disk { path, source })
    }
}

/// Bytes of a file; 0 when it is not there.
pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Whether a whole file is there.
pub(crate) fn has(path: &Path, bytes: u64) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes)
}

/// Puts to disk that a file is in its folder; Windows does so by itself.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Whether a disk or a system has no links for this person.
fn links_are_refused(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied)
}

fn parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

#[cfg(unix)]
fn symlink(to: &str, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, link)
}

#[cfg(not(unix))]
fn symlink(_to: &str, _link: &Path) -> io::Result<()> {
    // A privilege on Windows, and readers of the cache expect files there.
    Err(ErrorKind::Unsupported.into())
}

/// The cache that HF_HUB_CACHE or HF_HOME name, or else the one in the home folder.
pub(crate) fn cache_folder() -> PathBuf {
    hf_hub::resolve_cache_dir()
}

/// Every model in the cache by its name: `owner/name` for a safetensors repository, otherwise
/// `owner/name:file`.
pub(crate) fn models(cache: &Path) -> BTreeMap<String, Found> {
    let mut models = BTreeMap::new();
    for entry in visible_entries(cache) {
        let folder = entry.file_name();
        let Some(repository) = folder.to_str().and_then(|folder| folder.strip_prefix("models--")) else {
            continue;
        };
        let repository = repository.replace("--", "/");
        for snapshot in snapshots(&entry.path()) {
            for found in models_below(&snapshot) {
                let Some(name) = name(&repository, &snapshot, &found.path) else {
                    continue;
                };
                // The same file may be in several revisions; the first is the one to use.
                models.entry(name).or_insert(found);
            }
        }
    }
    models
}

fn name(repository: &str, snapshot: &Path, path: &Path) -> Option<String> {
    let below = path.strip_prefix(snapshot).ok()?.to_str()?.replace('\\', "/");
    Some(if below.is_empty() { repository.to_string() } else { format!("{repository}:{below}") })
}

/// The revisions of a repository: that of `refs/main`, then the newest.
pub(crate) fn snapshots(repository: &Path) -> Vec<PathBuf> {
    let main = fs::read_to_string(repository.join("refs/main")).unwrap_or_default();
    let mut snapshots: Vec<_> = visible_entries(&repository.join("snapshots"))
        .map(|entry| {
            let modified = entry.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            (entry.file_name() == main.trim(), modified, entry.path())
        })
        .collect();
    snapshots.sort();
    snapshots.into_iter().rev().map(|(.., path)| path).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model_path::tests::put;

    /// Puts a file into a fabricated cache as a download does.
    pub(crate) fn download(
        cache: &Path,
        repository: &str,
        revision: &str,
        file: &str,
        bytes: usize,
    ) -> PathBuf {
        let repository = CachedRepository::new(cache, repository);
        let known =
            FileMetadata { etag: format!("{revision}-{}", file.replace('/', "-")), bytes: bytes as u64 };
        put(&repository.blob(&known.etag), bytes);
        repository.set_main(revision).unwrap();
        repository.publish(revision, file, &known).unwrap();
        repository.link(revision, file)
    }

    fn names(cache: &Path) -> Vec<(String, u64)> {
        models(cache).into_iter().map(|(name, found)| (name, found.size_bytes)).collect()
    }

    #[test]
    fn files_and_repositories_are_listed_with_the_size_of_what_they_link_to() {
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path();
        let file = download(cache, "owner/gguf", "abc", "Q8_0/m.gguf", 30);
        download(cache, "owner/llama", "abc", "config.json", 1);
        download(cache, "owner/llama", "abc", "model.safetensors", 20);
        download(cache, "gpt2", "abc", "m.gguf", 1);
        let expected = [("gpt2:m.gguf", 1), ("owner/gguf:Q8_0/m.gguf", 30), ("owner/llama", 20)];
        assert_eq!(names(cache), expected.map(|(name, size)| (name.to_string(), size)));
        assert_eq!(models(cache)["owner/gguf:Q8_0/m.gguf"].path, file);
    }

    #[test]
    fn the_revision_of_main_is_used_and_older_ones_only_for_what_it_lacks() {
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path();
        download(cache, "owner/name", "zzz", "a.gguf", 1);
        download(cache, "owner/name", "zzz", "old.gguf", 2);
        let newer = download(cache, "owner/name", "aaa", "a.gguf", 3);
        let models = models(cache);
        assert_eq!(models["owner/name:a.gguf"], Found { path: newer, size_bytes: 3 });
        assert_eq!(models["owner/name:old.gguf"].size_bytes, 2);
    }

    #[test]
    fn a_file_that_is_no_link_to_a_blob_may_be_one_of_another_revision() {
        let cache = tempfile::tempdir().unwrap();
        let path = download(cache.path(), "owner/name", "abc", "m.gguf", 3);
        let repository = CachedRepository::new(cache.path(), "owner/name");
        assert_eq!(repository.namesakes("m.gguf", 3).is_empty(), path.is_symlink());
        fs::remove_file(&path).unwrap();
        put(&path, 3);
        assert_eq!(repository.namesakes("m.gguf", 3), [path]);
        assert!(repository.namesakes("m.gguf", 4).is_empty());
    }

    // Elsewhere a folder cannot be opened to make it older.
    #[cfg(unix)]
    #[test]
    fn of_the_other_revisions_the_newest_is_used() {
        let cache = tempfile::tempdir().unwrap();
        for (revision, size, age) in [("b", 2, 10), ("c", 1, 20), ("a", 3, 30)] {
            let link = download(cache.path(), "owner/name", revision, "old.gguf", size);
            let modified = SystemTime::now() - std::time::Duration::from_secs(age);
            fs::File::open(link.parent().unwrap()).unwrap().set_modified(modified).unwrap();
        }
        download(cache.path(), "owner/name", "main", "new.gguf", 4);
        assert_eq!(models(cache.path())["owner/name:old.gguf"].size_bytes, 2);
    }

    #[test]
    fn broken_entries_do_not_hide_the_others() {
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path();
        download(cache, "owner/good", "abc", "m.gguf", 1);
        let link = download(cache, "owner/lost", "abc", "m.gguf", 1);
        fs::remove_file(fs::canonicalize(link).unwrap()).unwrap();
        put(&cache.join("models--owner--file"), 1);
        put(&cache.join("models--owner--odd/snapshots"), 1);
        put(&cache.join("datasets--owner--data/snapshots/abc/d.gguf"), 1);
        put(&cache.join(".locks/models--owner--good/m.gguf"), 1);
        fs::create_dir_all(cache.join("models--owner--empty/snapshots/abc")).unwrap();
        assert_eq!(names(cache), [("owner/good:m.gguf".to_string(), 1)]);
    }

    #[test]
    fn a_cache_that_is_not_there_is_empty() {
        assert!(models(Path::new("/nowhere/at/all")).is_empty());
    }
}
