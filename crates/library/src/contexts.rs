//! Contexts of conversations on disk, so that they go on after a restart without being read again.
//!
//! A folder per model has pages, `p/HASH`, which texts share and which never change, and texts,
//! `t/NAME`, which name their pages. A file appears whole or not at all, and is read only if its
//! header and checksum are right. Programs that write or remove files hold a lock. On a disk that
//! fills up contexts take less: at most a share of what is free without them.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use blake3::Hasher;

use crate::Folders;
use crate::cache::sync_folder_of;
use crate::checksum::hex;
use crate::disk::free_at;
use crate::private;

/// Hash of a model or of the text up to the end of a page.
pub type Hash = [u8; 32];

const MAGIC: &[u8; 8] = b"FTKCTX01";

/// Lengths of the parts of a header: magic, model, name, number of pages, length, checksum.
const HEADER: usize = 8 + 32 + 32 + 8 + 8 + 32;

/// Bytes of a text beside its pages. More is no text.
const LARGEST_TEXT: usize = 1 << 30;

/// Contexts take at most one of this many parts of the space that is free without them.
const SHARE: u64 = 4;

/// Files as large as the one to be written for which there must be room.
const ROOM: u64 = 16;

/// Bytes written per second while nobody waits: more than any model fills, and few enough that a
/// reply that streams meanwhile is hardly slowed down.
const RATE: f64 = 10e6;

/// Age of unfinished files that no program writes any more.
const ABANDONED: Duration = Duration::from_secs(60);

/// File that tells backup programs to leave a folder out.
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n";

/// Contexts of all models.
#[derive(Debug, Clone)]
pub struct Contexts {
    root: PathBuf,
    /// Returns the free bytes of the disk at a path.
    free_at: fn(&Path) -> Option<u64>,
    pace: Arc<Pace>,
}

/// Pace of writing, of [`RATE`] or as fast as the disk.
#[derive(Debug, Default)]
struct Pace {
    is_hurried: Mutex<bool>,
    changed: Condvar,
}

impl Pace {
    /// Pauses after a file of `length` bytes, which took `elapsed` to write.
    fn pause(&self, length: u64, elapsed: Duration) {
        let rest = Duration::from_secs_f64(length as f64 / RATE).saturating_sub(elapsed);
        let is_hurried = self.is_hurried.lock().unwrap_or_else(PoisonError::into_inner);
        let _ended = self.changed.wait_timeout_while(is_hurried, rest, |is_hurried| !*is_hurried);
    }

    fn set_hurried(&self, hurried: bool) {
        *self.is_hurried.lock().unwrap_or_else(PoisonError::into_inner) = hurried;
        self.changed.notify_all();
    }
}

/// Contexts of one model.
#[derive(Debug, Clone)]
pub struct ModelContexts {
    contexts: Contexts,
    model: Hash,
    folder: PathBuf,
}

impl Contexts {
    pub fn new(folders: &Folders) -> Self {
        Self { root: folders.contexts(), free_at, pace: Arc::default() }
    }

    /// Writes as fast as the disk, or slowly again. Affects all copies of this value.
    pub fn hurry(&self, hurried: bool) {
        self.pace.set_hurried(hurried);
    }

    pub fn of_model(&self, model: Hash) -> ModelContexts {
        let folder = self.root.join(hex(&model[..16]));
        ModelContexts { contexts: self.clone(), model, folder }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files().iter().map(|file| file.bytes).sum()
    }

    /// Removes the text `name` of every model, and the pages that no other text names.
    ///
    /// # Errors
    /// Any reason why a file is still there.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.remove_if(|file| file.is_text() && file.path.ends_with(name))
    }

    /// Removes the text `name` of every model but `model`, and the pages that no other text names.
    ///
    /// # Errors
    /// Any reason why a file is still there.
    pub fn remove_of_others(&self, name: &str, model: Hash) -> io::Result<()> {
        let own = self.of_model(model).text_path(name);
        self.remove_if(|file| file.is_text() && file.path.ends_with(name) && file.path != own)
    }

    /// Removes the files that `unwanted` names, then the pages that no text names.
    fn remove_if(&self, unwanted: impl Fn(&Found) -> bool) -> io::Result<()> {
        if !self.root.exists() {
            return Ok(());
        }
        let _lock = self.lock(true)?;
        for file in self.files().iter().filter(|file| unwanted(file)) {
            gone(fs::remove_file(&file.path))?;
        }
        self.sweep()
    }

    /// Removes everything.
    ///
    /// # Errors
    /// Any reason why a file is still there.
    pub fn clear(&self) -> io::Result<()> {
        if !self.root.exists() {
            return Ok(());
        }
        let _lock = self.lock(true)?;
        self.files().into_iter().try_for_each(|file| gone(fs::remove_file(file.path)))
    }

    /// Removes abandoned files, then the texts least recently used until all files have at most
    /// `most` bytes and their share of the disk, and the pages that no text names.
    ///
    /// # Errors
    /// Any reason why a file is still there.
    pub fn tidy(&self, most: u64) -> io::Result<()> {
        if !self.root.exists() {
            return Ok(());
        }
        self.remove_if(Found::is_abandoned)?;
        let _lock = self.lock(true)?;
        let mut texts: Vec<Found> = self.files().into_iter().filter(Found::is_text).collect();
        texts.sort_by_key(|text| text.used);
        let mut bytes = self.bytes();
        let share = (self.free_at)(&self.root).map_or(u64::MAX, |free| bytes.saturating_add(free) / SHARE);
        for text in texts {
            if bytes <= most.min(share) {
                break;
            }
            gone(fs::remove_file(&text.path))?;
            self.sweep()?;
            bytes = self.bytes();
        }
        Ok(())
    }

    /// Removes the pages that no text names. The caller holds the lock.
    fn sweep(&self) -> io::Result<()> {
        let files = self.files();
        let texts = files.iter().filter(|file| file.is_text());
        let named: HashSet<PathBuf> = texts.flat_map(|text| text.pages().unwrap_or_default()).collect();
        let unnamed = files.iter().filter(|file| file.is_page() && !named.contains(&file.path));
        unnamed.into_iter().try_for_each(|page| gone(fs::remove_file(&page.path)))
    }

    fn files(&self) -> Vec<Found> {
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let models = entries(&self.root).map(|entry| entry.path());
        let folders = models.flat_map(|model| [model.join("p"), model.join("t")]);
        let files = folders.flat_map(|folder| entries(&folder).collect::<Vec<_>>());
        let found = files.filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Some(Found { path: entry.path(), bytes: metadata.len(), used })
        });
        found.collect()
    }

    /// Locks the folder, which must exist, for writing files (shared) or removing some.
    fn lock(&self, exclusive: bool) -> io::Result<File> {
        let lock = private::options().create(true).truncate(false).open(self.root.join("lock"))?;
        if exclusive { lock.lock() } else { lock.lock_shared() }?;
        Ok(lock)
    }
}

impl ModelContexts {
    /// Returns true if there is a file for this page.
    pub fn has_page(&self, page: &Hash) -> bool {
        self.page_path(page).is_file()
    }

    /// Saves a text: first those of its pages that have no file yet, of which `bytes_of` returns
    /// the bytes, then the text.
    ///
    /// # Errors
    /// Any reason why it could not be written; an earlier text of this name stays then.
    pub fn save(
        &self,
        name: &str,
        pages: &[Hash],
        bytes_of: &mut dyn FnMut(usize) -> Vec<u8>,
        text: &[u8],
    ) -> io::Result<()> {
        self.create()?;
        let _lock = self.contexts.lock(false)?;
        for (number, page) in pages.iter().enumerate() {
            match self.has_page(page) {
                true => touch(&self.page_path(page)),
                false => self.write(&self.page_path(page), page, &[], &bytes_of(number))?,
            }
        }
        self.write(&self.text_path(name), &name_hash(name), pages, text)
    }

    /// Reads a text: its pages' hashes, and its bytes.
    ///
    /// # Errors
    /// `ErrorKind::NotFound` without the text; any reason why it must not be used.
    pub fn text(&self, name: &str) -> io::Result<(Vec<Hash>, Vec<u8>)> {
        let read = self.read(&self.text_path(name), &name_hash(name), LARGEST_TEXT)?;
        touch(&self.text_path(name));
        Ok(read)
    }

    /// Reads a page of `length` bytes. A damaged one is removed, so that it is written again.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn page(&self, page: &Hash, length: usize) -> io::Result<Vec<u8>> {
        let path = self.page_path(page);
        let whole = |(_, bytes): (_, Vec<u8>)| {
            if bytes.len() == length { Ok(bytes) } else { Err(damaged("another length")) }
        };
        let read = self.read(&path, page, length).and_then(whole);
        if read.as_ref().is_err_and(is_damage) {
            let _ = fs::remove_file(&path);
        }
        read
    }

    fn page_path(&self, page: &Hash) -> PathBuf {
        self.folder.join("p").join(hex(page))
    }

    fn text_path(&self, name: &str) -> PathBuf {
        self.folder.join("t").join(name)
    }

    fn create(&self) -> io::Result<()> {
        private::create_folder(&self.folder.join("p"))?;
        private::create_folder(&self.folder.join("t"))?;
        let tag = self.contexts.root.join("CACHEDIR.TAG");
        if tag.exists() { Ok(()) } else { fs::write(tag, TAG) }
    }

    /// Writes a file beside its place and renames it, at most so fast that replies hardly notice.
    fn write(&self, path: &Path, name: &Hash, pages: &[Hash], bytes: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let started = Instant::now();
        let length = (HEADER + 32 * pages.len() + bytes.len()) as u64;
        if (self.contexts.free_at)(path).is_some_and(|free| free / ROOM < length) {
            return Err(io::Error::new(ErrorKind::StorageFull, "the disk is nearly full"));
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let part = path.with_extension(format!("{}-{number}.part", std::process::id()));
        let written = self.write_part(&part, name, pages, bytes).and_then(|()| fs::rename(&part, path));
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written?;
        sync_folder_of(path)?;
        self.contexts.pace.pause(length, started.elapsed());
        Ok(())
    }

    fn write_part(&self, part: &Path, name: &Hash, pages: &[Hash], bytes: &[u8]) -> io::Result<()> {
        let mut file = private::options().create_new(true).open(part)?;
        let mut head = Vec::with_capacity(HEADER + 32 * pages.len());
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&self.model);
        head.extend_from_slice(name);
        head.extend_from_slice(&(pages.len() as u64).to_le_bytes());
        head.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        let sum = checksum(&head, pages.as_flattened(), bytes);
        head.extend_from_slice(&sum);
        head.extend_from_slice(pages.as_flattened());
        file.write_all(&head)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Reads a file of at most `most` bytes beside its header.
    fn read(&self, path: &Path, name: &Hash, most: usize) -> io::Result<(Vec<Hash>, Vec<u8>)> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let head = read_head(&mut file, length)?;
        if head.model != self.model || head.name != *name {
            return Err(damaged("the file of something else"));
        }
        if head.length > most {
            return Err(damaged("another length"));
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(head.length)?;
        file.take(head.length as u64).read_to_end(&mut bytes)?;
        if bytes.len() != head.length || checksum(&head.bytes, head.pages.as_flattened(), &bytes) != head.sum
        {
            return Err(damaged("another checksum"));
        }
        Ok((head.pages, bytes))
    }
}

/// A file in the folder.
struct Found {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Found {
    fn is_part(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "part")
    }

    /// Returns true for an unfinished file that no program writes any more.
    fn is_abandoned(&self) -> bool {
        self.is_part() && self.used.elapsed().is_ok_and(|age| age > ABANDONED)
    }

    fn is_in(&self, folder: &str) -> bool {
        !self.is_part() && self.path.parent().is_some_and(|parent| parent.ends_with(folder))
    }

    fn is_page(&self) -> bool {
        self.is_in("p")
    }

    fn is_text(&self) -> bool {
        self.is_in("t")
    }

    /// Paths of the pages that a text names.
    fn pages(&self) -> io::Result<Vec<PathBuf>> {
        let head = read_head(&mut File::open(&self.path)?, self.bytes)?;
        let folder = self.path.parent().and_then(Path::parent).unwrap_or(Path::new("")).join("p");
        Ok(head.pages.iter().map(|page| folder.join(hex(page))).collect())
    }
}

/// Header of a file, with the pages that follow it.
struct Head {
    /// The part of the header that the checksum covers.
    bytes: Vec<u8>,
    model: Hash,
    name: Hash,
    length: usize,
    sum: Hash,
    pages: Vec<Hash>,
}

/// Reads the header of a file of `file_length` bytes.
fn read_head(file: &mut impl Read, file_length: u64) -> io::Result<Head> {
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    let (magic, rest) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(damaged("another format"));
    }
    let hash = |at: usize| -> Hash { std::array::from_fn(|index| rest[at + index]) };
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| rest[at + index]));
    let (count, length) = (number(64), number(72));
    let whole = count.checked_mul(32).and_then(|pages| pages.checked_add(length)?.checked_add(HEADER as u64));
    if whole != Some(file_length) {
        return Err(damaged("another length"));
    }
    let mut pages = Vec::new();
    pages.try_reserve_exact(count as usize)?;
    for _ in 0..count {
        let mut page = [0; 32];
        file.read_exact(&mut page)?;
        pages.push(page);
    }
    let bytes = header[..HEADER - 32].to_vec();
    Ok(Head { bytes, model: hash(0), name: hash(32), length: length as usize, sum: hash(80), pages })
}

fn checksum(head: &[u8], pages: &[u8], bytes: &[u8]) -> Hash {
    *Hasher::new().update(head).update(pages).update(bytes).finalize().as_bytes()
}

fn name_hash(name: &str) -> Hash {
    *blake3::hash(name.as_bytes()).as_bytes()
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("it has {what}"))
}

fn is_damage(error: &io::Error) -> bool {
    [ErrorKind::InvalidData, ErrorKind::UnexpectedEof].contains(&error.kind())
}

/// Treats a file that is gone already as removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Sets the time of the last use; a failure makes the file older than it is.
fn touch(path: &Path) {
    let file = OpenOptions::new().append(true).open(path);
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: Hash = [7; 32];

    fn contexts() -> (tempfile::TempDir, Contexts) {
        let folder = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(&Folders::at(folder.path()));
        (folder, contexts)
    }

    fn page(number: u8) -> Vec<u8> {
        vec![number; 1000]
    }

    /// Saves a text with these pages.
    fn save(contexts: &Contexts, name: &str, pages: &[u8]) {
        let hashes: Vec<Hash> = pages.iter().map(|&page| [page; 32]).collect();
        let mut bytes_of = |number: usize| page(pages[number]);
        contexts.of_model(MODEL).save(name, &hashes, &mut bytes_of, name.as_bytes()).unwrap();
    }

    /// Names of all files that are left.
    fn names(contexts: &Contexts) -> Vec<String> {
        let name = |file: &Found| file.path.file_name().unwrap().to_string_lossy()[..1].to_owned();
        let mut names: Vec<String> = contexts.files().iter().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_text_and_its_pages_are_read_as_they_were_saved() {
        let (_folder, contexts) = contexts();
        let model = contexts.of_model(MODEL);
        assert_eq!(model.text("x").unwrap_err().kind(), ErrorKind::NotFound);
        save(&contexts, "x", &[1, 2]);
        assert_eq!(model.text("x").unwrap(), (vec![[1; 32], [2; 32]], b"x".to_vec()));
        assert_eq!(model.page(&[2; 32], 1000).unwrap(), page(2));
        assert!(contexts.root.join("CACHEDIR.TAG").exists());
        // A page that is there is not written again.
        let mut never = |_: usize| -> Vec<u8> { panic!() };
        model.save("y", &[[1; 32]], &mut never, b"y").unwrap();
    }

    #[test]
    fn a_file_that_is_changed_cut_or_in_anothers_place_is_not_read() {
        let (_folder, contexts) = contexts();
        let model = contexts.of_model(MODEL);
        save(&contexts, "x", &[1, 2]);
        let path = model.text_path("x");
        let whole = fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            model.text("x").is_err()
        };
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 4;
            assert!(refused(&changed), "byte {at}");
            assert!(refused(&whole[..at]), "{at} bytes");
        }
        assert!(refused(&[&whole[..], &[0]].concat()));
        assert!(!refused(&whole));
        fs::copy(model.page_path(&[1; 32]), model.page_path(&[2; 32])).unwrap();
        assert!(model.page(&[2; 32], 1000).is_err() && model.page(&[1; 32], 999).is_err());
        fs::copy(&path, model.text_path("y")).unwrap();
        assert!(model.text("y").is_err());
        // The folder's name has half of a model's hash.
        let other: Hash = std::array::from_fn(|index| if index < 16 { 7 } else { 8 });
        assert!(contexts.of_model(other).text("x").is_err());
    }

    #[test]
    fn a_damaged_page_is_written_again_by_the_next_text_that_names_it() {
        let (_folder, contexts) = contexts();
        let model = contexts.of_model(MODEL);
        for length in [10, HEADER, HEADER + 999] {
            save(&contexts, "x", &[1]);
            let path = model.page_path(&[1; 32]);
            File::options().write(true).open(&path).unwrap().set_len(length as u64).unwrap();
            assert!(model.page(&[1; 32], 1000).is_err(), "{length}");
            save(&contexts, "x", &[1]);
            assert_eq!(model.page(&[1; 32], 1000).unwrap(), page(1), "{length}");
        }
    }

    #[test]
    fn a_removed_text_takes_the_pages_with_it_that_no_other_names() {
        let (_folder, contexts) = contexts();
        contexts.remove("x").unwrap();
        save(&contexts, "x", &[1, 2]);
        save(&contexts, "y", &[1, 3]);
        contexts.remove("x").unwrap();
        assert_eq!(names(&contexts), ["0", "0", "y"]);
        assert!(contexts.of_model(MODEL).page(&[3; 32], 1000).is_ok());
        contexts.clear().unwrap();
        assert_eq!(names(&contexts), [""; 0]);
    }

    #[test]
    fn a_text_of_one_model_can_replace_those_of_others() {
        let (_folder, contexts) = contexts();
        save(&contexts, "x", &[1]);
        save(&contexts, "y", &[2]);
        let other = contexts.of_model([8; 32]);
        other.save("x", &[[3; 32]], &mut |_| page(3), b"x").unwrap();
        contexts.remove_of_others("x", [8; 32]).unwrap();
        assert_eq!(names(&contexts), ["0", "0", "x", "y"]);
        assert!(other.text("x").is_ok() && other.page(&[3; 32], 1000).is_ok());
    }

    #[test]
    fn the_texts_used_least_recently_are_dropped_first_and_abandoned_files_always() {
        let (_folder, contexts) = contexts();
        let model = contexts.of_model(MODEL);
        let aged = |path: &Path, seconds: u64| {
            let file = OpenOptions::new().append(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        };
        for (name, seconds) in [("x", 30), ("y", 20), ("z", 10)] {
            save(&contexts, name, &[name.as_bytes()[0]]);
            aged(&model.text_path(name), seconds);
        }
        let parts = [("young", 0), ("old", 100)].map(|(name, seconds)| {
            let path = model.folder.join("p").join(name).with_extension("1-1.part");
            fs::write(&path, [0; 10]).unwrap();
            aged(&path, seconds);
            path
        });
        let of_one = contexts.bytes() / 3;
        // Reading one makes it the latest.
        model.text("x").unwrap();
        contexts.tidy(2 * of_one).unwrap();
        assert!(model.text("y").is_err() && model.text("x").is_ok() && model.text("z").is_ok());
        assert_eq!(parts.map(|part| part.exists()), [true, false]);
        contexts.tidy(of_one).unwrap();
        assert!(model.text("z").is_err() || model.text("x").is_err());
        assert!(contexts.bytes() <= of_one + 10);
    }

    #[test]
    fn a_disk_that_fills_up_keeps_room() {
        let (_folder, mut contexts) = contexts();
        for name in ["x", "y"] {
            save(&contexts, name, &[name.as_bytes()[0]]);
        }
        contexts.free_at = |_| Some(15_000);
        let mut bytes_of = |_: usize| page(3);
        let full = contexts.of_model(MODEL).save("z", &[[3; 32]], &mut bytes_of, b"z").unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        assert_eq!(contexts.files().len(), 4);
        let of_one = contexts.bytes() / 2;
        contexts.tidy(u64::MAX).unwrap();
        assert_eq!(contexts.files().len(), 4);
        // Two take more than a quarter of 5,000 and their own bytes; one does not.
        contexts.free_at = |_| Some(5_000);
        contexts.tidy(u64::MAX).unwrap();
        assert_eq!(contexts.bytes(), of_one);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_contexts_and_a_folder_that_cannot_be_written_is_an_error() {
        use std::os::unix::fs::PermissionsExt;

        let (folder, contexts) = contexts();
        save(&contexts, "x", &[1]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert!(contexts.files().iter().all(|file| mode(&file.path) == 0o600));
        let model = contexts.of_model(MODEL);
        assert_eq!([mode(&contexts.root), mode(&model.folder), mode(&model.folder.join("p"))], [0o700; 3]);
        let blocked = Contexts::new(&Folders::at(folder.path().join("file")));
        fs::write(folder.path().join("file"), []).unwrap();
        let mut bytes_of = |_: usize| page(1);
        assert!(blocked.of_model(MODEL).save("x", &[[1; 32]], &mut bytes_of, b"x").is_err());
        assert!(blocked.of_model(MODEL).text("x").is_err());
    }

    /// Runs in a process of its own, which is killed.
    #[test]
    fn writes_contexts_until_it_is_killed() {
        let Ok(folder) = std::env::var("FORETOKEN_TEST_CONTEXTS") else { return };
        let contexts = Contexts::new(&Folders::at(folder));
        for round in 0u64.. {
            let byte = (2 + round % 200) as u8;
            let hashes = [[1; 32], [byte; 32]];
            let mut bytes_of = |number: usize| if number == 0 { page(1) } else { vec![byte; 20_000] };
            contexts.of_model(MODEL).save("x", &hashes, &mut bytes_of, &[byte; 500]).unwrap();
        }
    }

    #[test]
    fn a_killed_program_leaves_whole_files_or_none() {
        let (folder, contexts) = contexts();
        let model = contexts.of_model(MODEL);
        let kills = if std::env::var_os("FORETOKEN_NIGHTLY").is_some() { 200 } else { 20 };
        for kill in 0..kills {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "contexts::tests::writes_contexts_until_it_is_killed"])
                .env("FORETOKEN_TEST_CONTEXTS", folder.path())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(10 + kill * 37 % 60));
            child.kill().unwrap();
            child.wait().unwrap();
            match model.text("x") {
                Ok((pages, text)) => {
                    assert_eq!(text, [pages[1][0]; 500], "kill {kill}");
                    assert_eq!(model.page(&pages[0], 1000).unwrap(), page(1));
                    assert_eq!(model.page(&pages[1], 20_000).unwrap(), vec![pages[1][0]; 20_000]);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "kill {kill}: {error}"),
            }
        }
        for part in contexts.files().iter().filter(|file| file.is_part()) {
            let old = SystemTime::now() - 2 * ABANDONED;
            OpenOptions::new().append(true).open(&part.path).unwrap().set_modified(old).unwrap();
        }
        contexts.tidy(u64::MAX).unwrap();
        let pages = model.text("x").unwrap().0.len();
        assert_eq!(contexts.files().len(), pages + 1);
    }
}
