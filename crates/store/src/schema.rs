//! What the database looks like and how older ones become newer ones. A migration that was released
//! is never edited: a change is one more at the end of the list.

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::{Error, Result};

/// `user_version` counts how many of these a database has been through.
const MIGRATIONS: &[&str] = &[
    CONVERSATIONS,
    TRACES_AND_ARENAS,
    NOTHING_LEFT,
    ALTERNATIVES_AND_SIGHT,
    BRANCHES,
    NAMES,
    SETUP,
    ATTACHMENTS,
    PREFIXES,
    VIEW_STATE,
    UNSENT,
];

/// Ids are never used twice (AUTOINCREMENT), so that a page holding the id of something deleted can
/// only miss, never hit something else.
///
/// `messages_text` is the full-text index. A reply under way stays out of it (`indexed = 0`):
/// indexing it anew each round would cost the square of its length.
const CONVERSATIONS: &str = "
    CREATE TABLE conversations (
        id          INTEGER PRIMARY KEY AUTOINCREMENT,
        title       TEXT    NOT NULL,
        pinned      INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
        created_at  INTEGER NOT NULL,
        updated_at  INTEGER NOT NULL,
        deleted_at  INTEGER
    ) STRICT;

    CREATE TABLE messages (
        id           INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        role         TEXT    NOT NULL CHECK (role IN ('user', 'assistant')),
        text         TEXT    NOT NULL,
        created_at   INTEGER NOT NULL,
        finish       TEXT,
        summary      TEXT    CHECK (json_valid(summary)),
        target       TEXT,
        draft        TEXT,
        problem      TEXT,
        indexed      INTEGER NOT NULL CHECK (indexed IN (0, 1))
    ) STRICT;
    CREATE INDEX messages_of_conversation ON messages (conversation);
    CREATE INDEX messages_not_indexed ON messages (indexed) WHERE indexed = 0;

    CREATE TABLE rounds (
        message INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        idx     INTEGER NOT NULL,
        json    TEXT    NOT NULL CHECK (json_valid(json)),
        PRIMARY KEY (message, idx)
    ) STRICT;

    CREATE TABLE settings (
        id   INTEGER PRIMARY KEY CHECK (id = 1),
        json TEXT    NOT NULL CHECK (json_valid(json))
    ) STRICT;

    CREATE VIRTUAL TABLE messages_text USING fts5 (
        text, content = 'messages', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TRIGGER messages_added AFTER INSERT ON messages WHEN new.indexed BEGIN
        INSERT INTO messages_text (rowid, text) VALUES (new.id, new.text);
    END;
    CREATE TRIGGER messages_removed AFTER DELETE ON messages WHEN old.indexed BEGIN
        INSERT INTO messages_text (messages_text, rowid, text) VALUES ('delete', old.id, old.text);
    END;
    CREATE TRIGGER messages_changed AFTER UPDATE OF text, indexed ON messages BEGIN
        INSERT INTO messages_text (messages_text, rowid, text) SELECT 'delete', old.id, old.text WHERE old.indexed;
        INSERT INTO messages_text (rowid, text) SELECT new.id, new.text WHERE new.indexed;
    END;
";

/// `traces` holds what `rounds` held of replies that are over, packed (see `rounds.rs`).
const TRACES_AND_ARENAS: &str = "
    CREATE TABLE traces (
        message INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
        packed  BLOB NOT NULL
    ) STRICT;

    CREATE TABLE arenas (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        created_at INTEGER NOT NULL,
        json       TEXT    NOT NULL CHECK (json_valid(json))
    ) STRICT;
";

/// `deleted_at` is in the store's own time from now on (see `age.rs`); `seen` is what the clock showed when the store
/// was opened last. Full-text search forgets what is deleted for good; what was deleted before goes with the merge.
/// `settings_before` holds the settings that were replaced by some that lack what could not be read.
const NOTHING_LEFT: &str = "
    CREATE TABLE age (
        id           INTEGER PRIMARY KEY CHECK (id = 1),
        milliseconds INTEGER NOT NULL,
        seen         INTEGER NOT NULL
    ) STRICT;
    INSERT INTO age (id, milliseconds, seen) VALUES (1, 0, 0);
    UPDATE conversations SET deleted_at = 0 WHERE deleted_at IS NOT NULL;

    INSERT INTO messages_text (messages_text, rank) VALUES ('secure-delete', 1);
    INSERT INTO messages_text (messages_text) VALUES ('optimize');

    CREATE TABLE settings_before (
        id   INTEGER PRIMARY KEY CHECK (id = 1),
        json TEXT    NOT NULL
    ) STRICT;
";

/// A message with `instead_of` is an alternative to that one: kept, and no part of the conversation.
/// `conversations.seen_from` is the first message that the model still sees (NULL: all of them), and
/// `messages.seen_from` what it was when a reply was written.
const ALTERNATIVES_AND_SIGHT: &str = "
    ALTER TABLE messages ADD COLUMN instead_of INTEGER REFERENCES messages (id) ON DELETE CASCADE;
    CREATE INDEX messages_instead_of ON messages (instead_of) WHERE instead_of IS NOT NULL;
    ALTER TABLE messages ADD COLUMN seen_from INTEGER;
    ALTER TABLE conversations ADD COLUMN seen_from INTEGER;
";

/// What follows a message has it as its `parent`: a conversation is a tree, of which the branch that ends with
/// `conversations.leaf` is shown. What was an alternative becomes a branch. Deleting does not cascade along `parent`,
/// since SQLite follows no chain of more than 1,000; whoever deletes a message deletes what follows it.
/// What is deleted has the number of the message that was deleted, itself or one before it, in `deleted_with`.
const BRANCHES: &str = "
    ALTER TABLE messages ADD COLUMN parent INTEGER REFERENCES messages (id);
    ALTER TABLE messages ADD COLUMN deleted_with INTEGER;
    ALTER TABLE messages ADD COLUMN deleted_at INTEGER;
    ALTER TABLE conversations ADD COLUMN leaf INTEGER REFERENCES messages (id);
    UPDATE messages SET parent = (
        SELECT max(earlier.id) FROM messages AS earlier
        WHERE earlier.conversation = messages.conversation AND earlier.instead_of IS NULL
          AND earlier.id < coalesce(messages.instead_of, messages.id)
    );
    UPDATE conversations SET leaf = (
        SELECT max(id) FROM messages WHERE conversation = conversations.id AND instead_of IS NULL
    );
    UPDATE messages SET indexed = 1 WHERE indexed = 0;
    DROP INDEX messages_instead_of;
    ALTER TABLE messages DROP COLUMN instead_of;
    CREATE INDEX messages_by_parent ON messages (parent, conversation);
    CREATE INDEX conversations_by_leaf ON conversations (leaf);
    CREATE INDEX messages_deleted ON messages (deleted_at) WHERE deleted_at IS NOT NULL;
";

/// A conversation that is `named` has a title that a person or a model gave it; else those are the first words of what
/// was asked. Of older ones it is not known, so that their titles stay.
const NAMES: &str = "
    ALTER TABLE conversations ADD COLUMN named INTEGER NOT NULL DEFAULT 1 CHECK (named IN (0, 1));
";

/// `conversations.setup` is what a conversation is written with; NULL before a reply was.
const SETUP: &str = "
    ALTER TABLE conversations ADD COLUMN setup TEXT CHECK (json_valid(setup));
";

/// Files beside a message, as text. Search does not look into them: an index would be as large as they are.
const ATTACHMENTS: &str = "
    CREATE TABLE attachments (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        message  INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        name     TEXT    NOT NULL,
        kind     TEXT    NOT NULL CHECK (kind IN ('text', 'pdf')),
        text     TEXT    NOT NULL,
        UNIQUE (message, position)
    ) STRICT;
";

/// The first letters of words have an index of their own: without it, all words that begin with a letter are merged when
/// one was typed. Takes five seconds for 100,000 messages of 100 words, once.
const PREFIXES: &str = "
    DROP TABLE messages_text;
    CREATE VIRTUAL TABLE messages_text USING fts5 (
        text, content = 'messages', content_rowid = 'id', prefix = 1, tokenize = 'unicode61 remove_diacritics 2'
    );
    INSERT INTO messages_text (rowid, text) SELECT id, text FROM messages WHERE indexed;
    INSERT INTO messages_text (messages_text, rank) VALUES ('secure-delete', 1);
    INSERT INTO messages_text (messages_text) VALUES ('optimize');
";

/// View choices of the window that are no settings.
const VIEW_STATE: &str = "
    CREATE TABLE view_state (
        id   INTEGER PRIMARY KEY CHECK (id = 1),
        json TEXT    NOT NULL CHECK (json_valid(json))
    ) STRICT;
";

/// `unsent` is what was typed and not sent; `conversation` is NULL for one that is to come.
const UNSENT: &str = "
    CREATE TABLE unsent (
        id           INTEGER PRIMARY KEY,
        conversation INTEGER UNIQUE REFERENCES conversations (id) ON DELETE CASCADE,
        text         TEXT    NOT NULL
    ) STRICT;
";

/// Brings a database up to this program's version, all of the way or not at all.
pub(crate) fn migrate(connection: &mut Connection) -> Result<()> {
    if version(connection)? == MIGRATIONS.len() as i64 {
        return Ok(());
    }
    // Two copies of the program may start at once: the version counts only once the lock is held.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    let known = MIGRATIONS.len() as i64;
    if !(0..=known).contains(&found) {
        return Err(Error::Newer { found, known });
    }
    for migration in &MIGRATIONS[found as usize..] {
        transaction.execute_batch(migration).map_err(|error| not_ours(error.into()))?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    Ok(transaction.commit()?)
}

/// Says that a database is none of this program's where something else stands in it.
pub(crate) fn not_ours(error: Error) -> Error {
    match error {
        Error::Database(rusqlite::Error::SqlInputError { msg, .. }) => Error::Damaged(msg),
        Error::Database(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {
            Error::Damaged(error.to_string())
        }
        error => error,
    }
}

fn version(connection: &Connection) -> Result<i64> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_from_a_newer_program_is_refused_and_left_as_it_is() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", 12).unwrap();
        let error = migrate(&mut connection).unwrap_err();
        assert!(matches!(error, Error::Newer { found: 12, known: 11 }), "{error}");
        assert!(error.to_string().contains("Update Foretoken"), "{error}");
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!((tables, version(&connection).unwrap()), (0, 12));
    }

    #[test]
    fn a_migration_that_fails_leaves_nothing_behind() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE settings (something_else TEXT)").unwrap();
        let error = migrate(&mut connection).unwrap_err();
        assert!(matches!(error, Error::Damaged(_)), "{error}");
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!((tables, version(&connection).unwrap()), (1, 0));
    }

    #[test]
    fn migrating_twice_is_the_same_as_once() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(version(&connection).unwrap(), MIGRATIONS.len() as i64);
    }

    #[test]
    fn search_finds_the_same_after_its_index_was_made_anew() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&MIGRATIONS[..8].concat()).unwrap();
        connection
            .execute_batch(
                "INSERT INTO conversations (title, created_at, updated_at) VALUES ('c', 1, 2);
                 INSERT INTO messages (conversation, role, text, created_at, indexed)
                 VALUES (1, 'user', 'fox', 1, 1), (1, 'assistant', 'half a fox', 3, 0);
                 PRAGMA user_version = 8;",
            )
            .unwrap();
        migrate(&mut connection).unwrap();
        let found = |word: &str| -> i64 {
            let sql = "SELECT count(*) FROM messages_text(?1)";
            connection.query_row(sql, [word], |row| row.get(0)).unwrap()
        };
        assert_eq!((found("fox"), found("f*"), found("half")), (1, 1, 0), "a reply under way stays out");
        let secure: i64 = connection
            .query_row("SELECT v FROM messages_text_config WHERE k = 'secure-delete'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(secure, 1);
    }

    #[test]
    fn a_database_from_before_branches_keeps_all_that_is_in_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        let before = [CONVERSATIONS, TRACES_AND_ARENAS, NOTHING_LEFT, ALTERNATIVES_AND_SIGHT].concat();
        connection.execute_batch(&before).unwrap();
        connection.pragma_update(None, "foreign_keys", true).unwrap();
        connection
            .execute_batch(
                "INSERT INTO conversations (title, created_at, updated_at) VALUES ('c', 1, 2), ('empty', 1, 2);
                 INSERT INTO messages (conversation, role, text, created_at, indexed, instead_of)
                 VALUES (1, 'user', 'fox', 1, 1, NULL), (1, 'assistant', 'a fox', 2, 1, NULL),
                        (1, 'assistant', 'half a fox', 3, 0, 2), (1, 'user', 'and?', 4, 1, NULL);
                 PRAGMA user_version = 4;",
            )
            .unwrap();
        migrate(&mut connection).unwrap();
        let column = |sql: &str| -> Vec<Option<i64>> {
            let mut statement = connection.prepare(sql).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
        };
        assert_eq!(column("SELECT parent FROM messages ORDER BY id"), [None, Some(1), Some(1), Some(2)]);
        assert_eq!(column("SELECT leaf FROM conversations ORDER BY id"), [Some(4), None]);
        assert_eq!(column("SELECT rowid FROM messages_text('fox')").len(), 3);
        assert_eq!(version(&connection).unwrap(), MIGRATIONS.len() as i64);
    }
}
