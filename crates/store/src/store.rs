//! The open database: opening it, its clock, and the clean-up at each start.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::{Error, Result, aside, private, schema};

/// Time to wait for another program's write before an operation fails with [`Error::Busy`].
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Time during which a deleted conversation can be restored, in milliseconds of the store's own
/// clock (see `age.rs`).
const UNDO_WINDOW: i64 = 24 * 60 * 60 * 1000;

/// Option that keeps the write-ahead log when the database is closed. It is on until the database
/// was found intact: a log merged into a damaged or unrelated database would be lost.
const KEEP_LOG: DbConfig = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;

/// Database of one person: conversations, messages, traces and settings.
///
/// One thread at a time (`Send`, not `Sync`); share it in a `Mutex`. Several stores may be open on
/// one file: readers never wait, writers wait for each other.
pub struct Store {
    pub(crate) connection: Connection,
    clock: Box<dyn Fn() -> i64 + Send>,
}

impl Store {
    /// Opens the database at `path`: creates it with its folders if missing, upgrades it if older.
    /// New files are readable by their owner only. Conversations deleted more than a day ago are
    /// purged, and their text is overwritten.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with_clock(path, system_clock)
    }

    /// Opens the database like [`Store::open`], with another clock (milliseconds since 1970).
    pub fn open_with_clock(path: &Path, clock: impl Fn() -> i64 + Send + 'static) -> Result<Self> {
        if let Some(folder) = path.parent() {
            private::create_folder(folder)
                .map_err(|source| Error::Folder { path: folder.to_path_buf(), source })?;
        }
        aside::refuse_log_alone(path)?;
        private::create_file(path);
        let open = || -> Result<Self> {
            let connection = connect(path)?;
            let mut store = Self { connection, clock: Box::new(clock) };
            schema::migrate(&mut store.connection)?;
            // Every start reads these.
            store.settings().and_then(|_| store.conversations()).map_err(schema::as_damaged)?;
            Ok(store)
        };
        let mut store =
            open().map_err(|source| Error::Open { path: path.to_path_buf(), source: Box::new(source) })?;
        match store.clean_up() {
            Err(source @ Error::Damaged(_)) => {
                return Err(Error::Open { path: path.to_path_buf(), source: Box::new(source) });
            }
            // A full disk must not keep anybody from reading existing data.
            Err(error) => tracing::warn!("{}: clean-up failed: {error}", path.display()),
            Ok(()) => (),
        }
        store.connection.set_db_config(KEEP_LOG, false)?;
        Ok(store)
    }

    /// Purges what can no longer be restored, indexes the replies that were interrupted by a kill,
    /// and packs their rounds. Afterwards no file contains purged text.
    fn clean_up(&mut self) -> Result<()> {
        let over = self.count_opening()? - UNDO_WINDOW;
        let purged = self.connection.execute("DELETE FROM conversations WHERE deleted_at <= ?1", [over])?;
        let folders = self.connection.execute("DELETE FROM folders WHERE deleted_at <= ?1", [over])?;
        let removed = self.connection.execute("DELETE FROM messages WHERE deleted_at <= ?1", [over])?;
        let ended = self
            .connection
            .execute("UPDATE messages SET indexed = 1 WHERE indexed = 0 AND deleted_with IS NULL", [])?;
        let empty = self.remove_empty_replies()?;
        let packed = self.pack_all()?;
        // The log still has the old pages. It cannot be emptied while another program reads.
        let busy: bool =
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy {
            tracing::info!("another program reads; the log is emptied at a later start");
        }
        tracing::debug!(purged, folders, removed, ended, empty, packed, "store opened");
        Ok(())
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        (self.clock)()
    }

    /// Begins a transaction that holds the write lock from its start, so it cannot fail half-way
    /// because another program wrote in between.
    pub(crate) fn writing(&mut self) -> Result<Transaction<'_>> {
        Ok(self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
    }
}

fn connect(path: &Path) -> Result<Connection> {
    // `Connection::open` would treat a path that begins with "file:" as a URI.
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Windows accepts more than 260 characters only in a full path; the standard library handles
    // that. The file may not exist yet, its folder does.
    let full = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let full = if cfg!(windows) { full() } else { None };
    let connection = Connection::open_with_flags(full.as_deref().unwrap_or(path), flags)?;
    connection.set_db_config(KEEP_LOG, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        tracing::warn!("{}: no write-ahead log on this file system ({mode})", path.display());
    }
    // With WAL a killed process loses nothing that was committed; a power cut may lose the last
    // moments but never damages the file.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Deleted text is overwritten, not only unlinked.
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    Ok(connection)
}

fn system_clock() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use tempfile::TempDir;

    use super::*;
    use crate::Ending;

    /// A store in its own folder, with a clock that stands still until it is moved.
    pub(crate) struct Fixture {
        pub(crate) store: Store,
        pub(crate) clock: Arc<AtomicI64>,
        pub(crate) folder: TempDir,
    }

    impl Fixture {
        pub(crate) fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let clock = Arc::new(AtomicI64::new(1_000));
            let store = open(folder.path(), &clock);
            Self { store, clock, folder }
        }

        /// Closes the store and reopens it `later` milliseconds later.
        pub(crate) fn reopen(self, later: i64) -> Self {
            let Self { store, clock, folder } = self;
            drop(store);
            clock.fetch_add(later, Ordering::Relaxed);
            let store = open(folder.path(), &clock);
            Self { store, clock, folder }
        }

        /// Reopens the store until nothing deleted can be restored any more.
        pub(crate) fn reopen_for_a_day(self) -> Self {
            (0..3).fold(self, |fixture, _| fixture.reopen(9 * 60 * 60 * 1000))
        }

        pub(crate) fn wait(&self, milliseconds: i64) {
            self.clock.fetch_add(milliseconds, Ordering::Relaxed);
        }
    }

    fn open(folder: &Path, clock: &Arc<AtomicI64>) -> Store {
        let clock = clock.clone();
        Store::open_with_clock(&folder.join("foretoken.db"), move || clock.load(Ordering::Relaxed)).unwrap()
    }

    #[test]
    fn a_store_can_be_shared_between_threads_behind_a_mutex() {
        fn shareable<T: Send + Sync>(_: T) {}
        shareable(std::sync::Mutex::new(Fixture::new().store));
    }

    #[test]
    fn opening_creates_missing_folders_and_keeps_existing_data() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/foretoken.db");
        let id = Store::open(&path).unwrap().create_conversation("kept").unwrap().id;
        assert_eq!(Store::open(&path).unwrap().conversation(id).unwrap().title, "kept");
    }

    #[test]
    fn a_long_path_with_spaces_and_umlauts_works() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Jürgen Groß ".repeat(9).trim_end());
        let path = path.join("größte Ordner ".repeat(9).trim_end()).join("foretoken.db");
        assert!(path.to_string_lossy().chars().count() > 240);
        let store = Store::open(&path).unwrap();
        let id = store.create_conversation("kept").unwrap().id;
        let beside = path.with_file_name("foretoken.db-wal");
        assert!(beside.metadata().unwrap().len() > 0, "the log is beside the database");
        drop(store);
        let aside = Store::set_aside(&path, "2026-11-24").unwrap();
        assert_eq!(Store::open(&aside).unwrap().conversation(id).unwrap().title, "kept");
    }

    #[test]
    fn the_write_ahead_log_and_foreign_keys_are_on() {
        let Fixture { store, folder: _folder, .. } = Fixture::new();
        let pragma = |name| {
            store
                .connection
                .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
                .unwrap()
        };
        assert_eq!(pragma("journal_mode"), "wal".to_string().into());
        assert_eq!(pragma("synchronous"), 1.into());
        assert_eq!(pragma("foreign_keys"), 1.into());
    }

    #[test]
    fn the_system_clock_counts_milliseconds_since_1970() {
        let year_2020 = 1_577_836_800_000;
        assert!((year_2020..year_2020 * 4).contains(&system_clock()));
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_reported_with_its_path_and_advice() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let error = Store::open(&folder.path().join("file/foretoken.db")).err().unwrap();
        assert!(matches!(error, Error::Folder { .. }), "{error}");
        assert!(error.to_string().contains("FORETOKEN_DATA_DIR"), "{error}");
    }

    #[test]
    fn a_path_that_is_a_folder_cannot_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let error = Store::open(folder.path()).err().unwrap();
        assert!(
            matches!(&error, Error::Open { source, .. } if matches!(**source, Error::CannotOpen(_))),
            "{error}"
        );
    }

    #[test]
    fn a_damaged_file_is_refused_with_its_path_and_left_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foretoken.db");
        let rubbish = "not a database, but long enough to be one. ".repeat(50);
        std::fs::write(&path, &rubbish).unwrap();
        let error = Store::open(&path).err().unwrap();
        assert!(
            matches!(&error, Error::Open { source, .. } if matches!(**source, Error::Damaged(_))),
            "{error}"
        );
        assert!(
            error.to_string().contains("foretoken.db") && error.to_string().contains("rename"),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), rubbish);
    }

    #[test]
    fn a_database_of_another_program_is_refused_whatever_its_version() {
        for version in [0, 1, 3] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("foretoken.db");
            let theirs = Connection::open(&path).unwrap();
            theirs.execute_batch("CREATE TABLE conversations (theirs TEXT)").unwrap();
            theirs.pragma_update(None, "user_version", version).unwrap();
            drop(theirs);
            let error = Store::open(&path).err().unwrap();
            let source = match &error {
                Error::Open { source, .. } => source,
                error => panic!("{error}"),
            };
            assert!(matches!(**source, Error::Damaged(_)), "{version}: {error}");
        }
    }

    #[test]
    fn a_write_on_a_full_disk_fails_and_keeps_everything_before_it() {
        let mut fixture = Fixture::new();
        let store = &mut fixture.store;
        let conversation = store.create_conversation("c").unwrap().id;
        let reply = store.begin_reply(conversation, "target", None).unwrap().id;
        store.append_rounds(reply, "before", &[(0, "{}")]).unwrap();
        let pages: i64 = store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        store.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();

        let long = "word ".repeat(20_000);
        let error = store.append_rounds(reply, &long, &[(1, "{}")]).unwrap_err();
        assert!(matches!(error, Error::DiskFull), "{error}");
        let ending = Ending { text: &long, finish: Some("stop"), ..Ending::default() };
        assert!(matches!(store.finish_reply(reply, ending), Err(Error::DiskFull)));

        let fixture = fixture.reopen(0);
        let messages = fixture.store.messages(conversation).unwrap();
        assert_eq!((messages[0].text.as_str(), messages[0].finish.as_deref()), ("before", None));
        assert_eq!(fixture.store.rounds(reply).unwrap(), ["{}"]);
    }

    #[test]
    fn a_read_only_database_can_be_read_and_explains_why_it_cannot_be_written() {
        let fixture = Fixture::new();
        let id = fixture.store.create_conversation("c").unwrap().id;
        fixture.store.connection.pragma_update(None, "query_only", true).unwrap();
        let error = fixture.store.rename_conversation(id, "d").unwrap_err();
        assert!(matches!(error, Error::ReadOnly), "{error}");
        assert_eq!(fixture.store.conversation(id).unwrap().title, "c");
    }

    #[test]
    fn a_writer_that_keeps_its_lock_is_reported_as_busy() {
        let mut fixture = Fixture::new();
        let other = open(fixture.folder.path(), &fixture.clock);
        other.connection.busy_timeout(Duration::from_millis(10)).unwrap();
        let held = fixture.store.writing().unwrap();
        let error = other.create_conversation("c").unwrap_err();
        assert!(matches!(error, Error::Busy), "{error}");
        drop(held);
        other.create_conversation("c").unwrap();
    }
}
