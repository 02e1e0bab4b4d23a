//! The hub's cache on disk, shared with other programs: `models--owner--name/snapshots/<revision>/`
//! holds links into `blobs/`, and `refs/main` names the revision used last.
//!
//! The cache is read here rather than through `hf-hub`, which needs a working HTTP client even to
//! list files: a computer without certificates could not use the models it already has. `hf-hub`
//! still decides the cache's folder, so downloads and this listing agree.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::model_path::{Found, models_below, visible_entries};
use crate::{Error, Result};

/// Metadata of a file on the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMetadata {
    /// Name of the file in the cache: SHA-256 for large files, git's SHA-1 for small ones.
    pub(crate) etag: String,
    pub(crate) bytes: u64,
}

/// Folders of a repository in the cache.
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

    /// Returns the path of the blob with this checksum.
    pub(crate) fn blob(&self, etag: &str) -> PathBuf {
        self.path().join("blobs").join(etag)
    }

    /// Returns the path of the blob while it is being downloaded.
    pub(crate) fn partial(&self, etag: &str) -> PathBuf {
        self.path().join("blobs").join(format!("{etag}.incomplete"))
    }

    /// Returns the path of a file in a revision.
    pub(crate) fn link(&self, revision: &str, file: &str) -> PathBuf {
        self.path().join("snapshots").join(revision).join(file)
    }

    /// Locks a file for downloading, as all programs that share the cache do.
    ///
    /// # Errors
    /// Returns `Error::Disk` if the lock file cannot be created; `Ok(None)` if another program
    /// holds the lock.
    pub(crate) fn lock(&self, etag: &str) -> Result<Option<File>> {
        let path = self.cache.join(".locks").join(&self.folder).join(format!("{etag}.lock"));
        let lock = parent(&path).and_then(|()| File::create(&path)).and_then(|file| match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        });
        lock.map_err(|source| Error::Disk { path, source })
    }

    /// Makes a downloaded blob a file of a revision: by a link, or by moving it if links are not
    /// allowed. `hf-hub` would ask the hub again and copy gigabytes on Windows.
    pub(crate) fn publish(&self, revision: &str, file: &str, known: &FileMetadata) -> Result<()> {
        let link = self.link(revision, file);
        let blob = self.blob(&known.etag);
        let up = "../".repeat(file.split('/').count() + 1);
        let published = parent(&link).and_then(|()| {
            // A broken link is in the way.
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

    /// Returns files of this name and length in other revisions. If links are not allowed, one of
    /// them may be the wanted file. Links are skipped: their blob would have been found by its
    /// checksum.
    pub(crate) fn same_name_and_size(&self, file: &str, bytes: u64) -> Vec<PathBuf> {
        let files = snapshots(&self.path()).into_iter().map(|snapshot| snapshot.join(file));
        files.filter(|path| !path.is_symlink() && has(path, bytes)).collect()
    }

    /// Makes a file of another revision a blob, without a second copy if the disk supports it.
    pub(crate) fn adopt(&self, file: &Path, known: &FileMetadata) -> Result<()> {
        let blob = self.blob(&known.etag);
        let adopted = parent(&blob)
            .and_then(|()| fs::hard_link(file, &blob).or_else(|_| fs::copy(file, &blob).map(|_| ())));
        adopted.map_err(|source| Error::Disk { path: blob, source })
    }

    /// Writes the current revision of `main`, by which other programs find the files.
    pub(crate) fn set_main(&self, revision: &str) -> Result<()> {
        let path = self.path().join("refs/main");
        let written = parent(&path).and_then(|()| fs::write(&path, revision));
        written.map_err(|source| Error::Disk { path, source })
    }
}

/// Returns the length of a file in bytes; 0 if it does not exist.
pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Returns whether a file exists with its full length.
pub(crate) fn has(path: &Path, bytes: u64) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes)
}

/// Syncs the folder of a file, so that its new entry is durable; Windows does this by itself.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Returns whether the disk or the system refuses links to this user.
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
    // Links need a privilege on Windows, and readers of the cache accept plain files there.
    Err(ErrorKind::Unsupported.into())
}

/// Returns the cache named by HF_HUB_CACHE or HF_HOME, or else the one in the home folder.
pub(crate) fn cache_folder() -> PathBuf {
    hf_hub::resolve_cache_dir()
}

/// Returns every model in the cache by name: `owner/name` for a safetensors repository, otherwise
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
                // A file may be in several revisions; the first one wins.
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

/// Returns the revisions of a repository: the one of `refs/main`, then the newest.
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

    /// Puts a file into a fabricated cache like a download.
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
    fn files_and_repositories_are_listed_with_the_size_of_their_blobs() {
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
    fn the_revision_of_main_wins_and_older_ones_add_missing_files() {
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
    fn a_file_that_is_not_a_link_may_be_reused_from_another_revision() {
        let cache = tempfile::tempdir().unwrap();
        let path = download(cache.path(), "owner/name", "abc", "m.gguf", 3);
        let repository = CachedRepository::new(cache.path(), "owner/name");
        assert_eq!(repository.same_name_and_size("m.gguf", 3).is_empty(), path.is_symlink());
        fs::remove_file(&path).unwrap();
        put(&path, 3);
        assert_eq!(repository.same_name_and_size("m.gguf", 3), [path]);
        assert!(repository.same_name_and_size("m.gguf", 4).is_empty());
    }

    // Other systems cannot open a folder to change its time.
    #[cfg(unix)]
    #[test]
    fn of_the_other_revisions_the_newest_wins() {
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
    fn a_missing_cache_is_empty() {
        assert!(models(Path::new("/nowhere/at/all")).is_empty());
    }
}
