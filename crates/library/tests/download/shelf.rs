//! A test hub with a few repositories, and a person who downloads from it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use foretoken_library::{Download, DownloadState, Downloads, Folders};
use foretoken_tests::hub::{Hub as Server, git_checksum, sha256};
use tempfile::TempDir;

pub const REPOSITORY: &str = "owner/name-GGUF";
pub const FILE: &str = "name-Q4_K_M.gguf";
pub const ID: &str = "owner/name-GGUF:name-Q4_K_M.gguf";
/// Size of [`FILE`] in bytes, not a multiple of anything.
pub const SIZE: u64 = 3_000_017;

pub struct Shelf {
    pub folder: TempDir,
    pub server: Server,
}

impl Shelf {
    /// Creates a hub with [`FILE`] in [`REPOSITORY`].
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&folder.path().join("repositories"));
        let shelf = Self { folder, server };
        shelf.put(REPOSITORY, FILE, SIZE);
        shelf
    }

    /// Adds a file of varying bytes. A small file gets git's checksum.
    pub fn put(&self, repository: &str, file: &str, bytes: u64) {
        let path = self.original(repository, file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut state =
            file.bytes().fold(bytes, |state, byte| state.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let content: Vec<u8> = (0..bytes)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        fs::write(&path, &content).unwrap();
        if !path.extension().is_some_and(|extension| extension == "gguf" || extension == "safetensors") {
            self.server.declare(&path, &git_checksum(&path));
        }
    }

    pub fn original(&self, repository: &str, file: &str) -> PathBuf {
        self.folder.path().join("repositories").join(repository).join(file)
    }

    pub fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    pub fn folders(&self) -> Folders {
        Folders::at(self.folder.path().join("data"))
    }

    pub fn hub(&self, token: Option<&str>) -> foretoken_library::Hub {
        foretoken_library::Hub::at(&self.server.url, self.cache(), token)
    }

    pub fn person(&self) -> Person {
        Person::new(self, None)
    }

    /// Returns the cache path of a file in the current revision.
    pub fn cached(&self, repository: &str, file: &str) -> PathBuf {
        let folder = self.cache().join(format!("models--{}", repository.replace('/', "--")));
        folder.join("snapshots").join(self.server.revision(repository)).join(file)
    }

    #[track_caller]
    pub fn assert_arrived(&self, repository: &str, file: &str) {
        let arrived = fs::read(self.cached(repository, file)).unwrap();
        assert!(arrived == fs::read(self.original(repository, file)).unwrap(), "{file} differs");
    }

    /// Locks a file of [`REPOSITORY`], like another program that downloads it, until the lock is
    /// dropped.
    pub fn locked(&self, file: &str) -> File {
        let checksum = sha256(&self.original(REPOSITORY, file));
        let path = self.cache().join(format!(".locks/models--owner--name-GGUF/{checksum}.lock"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let lock = File::create(path).unwrap();
        lock.try_lock().unwrap();
        lock
    }

    /// Returns the partial files in the cache.
    pub fn partial(&self) -> Vec<PathBuf> {
        let blobs = self.cache().join("models--owner--name-GGUF/blobs");
        let entries = fs::read_dir(blobs).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "incomplete")).collect()
    }
}

pub struct Person {
    pub downloads: Downloads,
    /// Every state that was sent, in order.
    states: Arc<Mutex<Vec<DownloadState>>>,
}

impl Person {
    pub fn new(shelf: &Shelf, token: Option<&str>) -> Self {
        Self::asking(shelf, shelf.hub(token))
    }

    pub fn asking(shelf: &Shelf, hub: foretoken_library::Hub) -> Self {
        let states: Arc<Mutex<Vec<DownloadState>>> = Arc::default();
        let telling = Arc::clone(&states);
        let downloads = Downloads::open(&shelf.folders(), hub, move |downloads| {
            let mut states = telling.lock().unwrap();
            for download in downloads {
                if states.last() != Some(&download.state) {
                    states.push(download.state.clone());
                }
            }
        });
        Self { downloads: downloads.unwrap(), states }
    }

    pub fn start(&self) -> Download {
        self.downloads.start(REPOSITORY, Some(FILE)).unwrap()
    }

    /// Waits until the download satisfies `wanted`.
    #[track_caller]
    pub fn until(&self, id: &str, wanted: impl Fn(&Download) -> bool) -> Download {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let all = self.downloads.list();
            if let Some(found) = all.iter().find(|download| download.id == id && wanted(download)) {
                return found.clone();
            }
            assert!(Instant::now() < deadline, "waited in vain: {all:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end and expects success.
    #[track_caller]
    pub fn until_done(&self, id: &str) {
        let ended = self.until(id, |download| !download.state.is_active());
        assert_eq!(ended.state, DownloadState::Done);
        assert_eq!(ended.done_bytes, ended.total_bytes);
    }

    /// Waits until the download pauses by itself, and returns the reason.
    #[track_caller]
    pub fn until_interrupted(&self, id: &str) -> String {
        let ended = self.until(id, |download| !download.state.is_active());
        match ended.state {
            DownloadState::Paused { reason: Some(reason) } => reason,
            other => panic!("{other:?}"),
        }
    }

    /// Returns every state that was sent, once the last one is `Done`.
    pub fn states(&self) -> Vec<DownloadState> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let states = self.states.lock().unwrap().clone();
            if states.last() == Some(&DownloadState::Done) || Instant::now() > deadline {
                return states;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns every file below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| if path.is_dir() && !path.is_symlink() { files_below(&path) } else { vec![path] })
        .collect()
}
