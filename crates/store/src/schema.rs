//! Database schema and its migrations. A released migration is never edited: each change appends a
//! new one.

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::{Error, Result};

/// All migrations in order; `user_version` is the number of those already applied.
const MIGRATIONS: &[&str] = &[
    CONVERSATIONS,
    TRACES_AND_ARENAS,
    SECURE_DELETE,
    ALTERNATIVES_AND_CONTEXT_START,
    BRANCHES,
    NAMES,
    SETUP,
    ATTACHMENTS,
    PREFIXES,
    VIEW_STATE,
    UNSENT,
    UNSENT_FILES_AND_EDITS,
    CALLS,
    PICTURES,
    CALL_TOKENS,
    TOOL_SETS,
    SEARCH_WITHOUT_CALLS,
    EXCERPTS,
    FOLDERS,
];

/// Ids are never reused (AUTOINCREMENT), so a page that holds the id of a deleted row can only
/// miss, never hit another row.
///
/// `messages_text` is the full-text index. A reply that is being written stays out of it (`indexed
/// = 0`): reindexing it each round would take time quadratic in its length.
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

/// `traces` holds the packed rounds of ended replies (see `rounds.rs`).
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

/// `deleted_at` is in the store's own clock from now on (see `age.rs`); `seen` is the computer's
/// time at the last opening. The full-text index now erases deleted text; the merge erases what was
/// deleted before. `settings_before` holds the settings replaced by a version without the
/// unreadable values.
const SECURE_DELETE: &str = "
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

/// A message with `instead_of` is an alternative to that message: kept, but not part of the
/// conversation. `conversations.seen_from` is the first message in the model's context (NULL: all
/// of them), and `messages.seen_from` is its value when a reply was written.
const ALTERNATIVES_AND_CONTEXT_START: &str = "
    ALTER TABLE messages ADD COLUMN instead_of INTEGER REFERENCES messages (id) ON DELETE CASCADE;
    CREATE INDEX messages_instead_of ON messages (instead_of) WHERE instead_of IS NOT NULL;
    ALTER TABLE messages ADD COLUMN seen_from INTEGER;
    ALTER TABLE conversations ADD COLUMN seen_from INTEGER;
";

/// Each message has a `parent`: a conversation is a tree, and the branch that ends with
/// `conversations.leaf` is shown. Alternatives become branches. Deletes do not cascade along
/// `parent`, because SQLite follows no chain of more than 1,000; code that deletes a message
/// deletes its descendants. `deleted_with` of a deleted row is the id of the message that was
/// deleted, itself or an ancestor.
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

/// `named` marks conversations titled by a person or a model; other titles are the first words of
/// the question. Older conversations count as named, so their titles stay.
const NAMES: &str = "
    ALTER TABLE conversations ADD COLUMN named INTEGER NOT NULL DEFAULT 1 CHECK (named IN (0, 1));
";

/// `conversations.setup` holds the conversation's own settings; NULL before its first reply.
const SETUP: &str = "
    ALTER TABLE conversations ADD COLUMN setup TEXT CHECK (json_valid(setup));
";

/// Attachments of a message, as text. Search does not cover them: an index would be as large as the
/// texts.
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

/// One-letter prefixes get an index: without it, typing the first letter merges all words that
/// begin with it. Takes five seconds for 100,000 messages of 100 words, once.
const PREFIXES: &str = "
    DROP TABLE messages_text;
    CREATE VIRTUAL TABLE messages_text USING fts5 (
        text, content = 'messages', content_rowid = 'id', prefix = 1, tokenize = 'unicode61 remove_diacritics 2'
    );
    INSERT INTO messages_text (rowid, text) SELECT id, text FROM messages WHERE indexed;
    INSERT INTO messages_text (messages_text, rank) VALUES ('secure-delete', 1);
    INSERT INTO messages_text (messages_text) VALUES ('optimize');
";

/// Display choices of the window that are not settings.
const VIEW_STATE: &str = "
    CREATE TABLE view_state (
        id   INTEGER PRIMARY KEY CHECK (id = 1),
        json TEXT    NOT NULL CHECK (json_valid(json))
    ) STRICT;
";

/// `unsent` holds texts that were typed but not sent; `conversation` is NULL for a new
/// conversation.
const UNSENT: &str = "
    CREATE TABLE unsent (
        id           INTEGER PRIMARY KEY,
        conversation INTEGER UNIQUE REFERENCES conversations (id) ON DELETE CASCADE,
        text         TEXT    NOT NULL
    ) STRICT;
";

/// `unsent_files` holds files that were attached but not sent, in the order of their ids;
/// `unsent_edits` holds changes of stored questions, with the attachments to keep as a JSON array
/// of ids.
const UNSENT_FILES_AND_EDITS: &str = "
    CREATE TABLE unsent_files (
        id           INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER REFERENCES conversations (id) ON DELETE CASCADE,
        name         TEXT    NOT NULL,
        kind         TEXT    NOT NULL CHECK (kind IN ('text', 'pdf')),
        text         TEXT    NOT NULL
    ) STRICT;
    CREATE INDEX unsent_files_of_conversation ON unsent_files (conversation);

    CREATE TABLE unsent_edits (
        message INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
        text    TEXT    NOT NULL,
        kept    TEXT    NOT NULL CHECK (json_valid(kept))
    ) STRICT;
";

/// Calls of tools with their results, and decisions about tools: `digest` is the hash of what a
/// person decided about, `server` is empty for built-in tools, and `conversation` NULL for all.
const CALLS: &str = "
    CREATE TABLE calls (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        message    INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        text_start INTEGER NOT NULL,
        server     TEXT,
        tool       TEXT    NOT NULL,
        name       TEXT    NOT NULL,
        arguments  TEXT    NOT NULL CHECK (json_valid(arguments)),
        state      TEXT    NOT NULL,
        result     TEXT    NOT NULL,
        is_error   INTEGER NOT NULL CHECK (is_error IN (0, 1)),
        took_ms    INTEGER
    ) STRICT;
    CREATE INDEX calls_of_message ON calls (message);

    CREATE TABLE approvals (
        server       TEXT    NOT NULL,
        digest       TEXT    NOT NULL,
        conversation INTEGER REFERENCES conversations (id) ON DELETE CASCADE,
        decision     TEXT    NOT NULL
    ) STRICT;
    CREATE INDEX approvals_of_tool ON approvals (server, digest);
";

/// Attachments may be pictures. Their tables are made again, since a check cannot be changed.
const PICTURES: &str = "
    CREATE TABLE attachments_with_pictures (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        message  INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        name     TEXT    NOT NULL,
        kind     TEXT    NOT NULL CHECK (kind IN ('text', 'pdf', 'picture')),
        text     TEXT    NOT NULL,
        UNIQUE (message, position)
    ) STRICT;
    INSERT INTO attachments_with_pictures SELECT id, message, position, name, kind, text FROM attachments;
    DROP TABLE attachments;
    ALTER TABLE attachments_with_pictures RENAME TO attachments;

    CREATE TABLE unsent_files_with_pictures (
        id           INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER REFERENCES conversations (id) ON DELETE CASCADE,
        name         TEXT    NOT NULL,
        kind         TEXT    NOT NULL CHECK (kind IN ('text', 'pdf', 'picture')),
        text         TEXT    NOT NULL
    ) STRICT;
    INSERT INTO unsent_files_with_pictures SELECT id, conversation, name, kind, text FROM unsent_files;
    DROP TABLE unsent_files;
    ALTER TABLE unsent_files_with_pictures RENAME TO unsent_files;
    CREATE INDEX unsent_files_of_conversation ON unsent_files (conversation);
";

/// Tokens of calls; NULL for calls that are older or were imported without them.
const CALL_TOKENS: &str = "
    ALTER TABLE calls ADD COLUMN tokens INTEGER;
    ALTER TABLE calls ADD COLUMN drafted INTEGER;
    ALTER TABLE calls ADD COLUMN forced INTEGER;
";

/// Tools that replies were offered. Replies with the same tools share a row.
const TOOL_SETS: &str = "
    CREATE TABLE tool_sets (
        id   INTEGER PRIMARY KEY AUTOINCREMENT,
        json TEXT    NOT NULL CHECK (json_valid(json))
    ) STRICT;
    ALTER TABLE messages ADD COLUMN tool_set INTEGER REFERENCES tool_sets (id);
    CREATE INDEX messages_by_tool_set ON messages (tool_set) WHERE tool_set IS NOT NULL;
    CREATE TRIGGER tools_removed AFTER DELETE ON messages WHEN old.tool_set IS NOT NULL BEGIN
        DELETE FROM tool_sets WHERE id = old.tool_set
            AND NOT EXISTS (SELECT 1 FROM messages WHERE tool_set = old.tool_set);
    END;
";

/// Search leaves out the text of calls: `prose` is the text before them, and `calls_start` its
/// length in bytes (NULL without calls).
const SEARCH_WITHOUT_CALLS: &str = "
    DROP TRIGGER messages_added;
    DROP TRIGGER messages_removed;
    DROP TRIGGER messages_changed;
    DROP TABLE messages_text;
    ALTER TABLE messages ADD COLUMN calls_start INTEGER;
    ALTER TABLE messages ADD COLUMN prose TEXT AS (
        CASE WHEN calls_start IS NULL THEN text
             ELSE CAST(substr(CAST(text AS BLOB), 1, calls_start) AS TEXT) END
    ) VIRTUAL;
    UPDATE messages SET calls_start = (SELECT min(text_start) FROM calls WHERE message = messages.id)
        WHERE id IN (SELECT message FROM calls);
    CREATE VIRTUAL TABLE messages_text USING fts5 (
        prose, content = 'messages', content_rowid = 'id', prefix = 1, tokenize = 'unicode61 remove_diacritics 2'
    );
    INSERT INTO messages_text (rowid, prose) SELECT id, prose FROM messages WHERE indexed;
    INSERT INTO messages_text (messages_text, rank) VALUES ('secure-delete', 1);
    INSERT INTO messages_text (messages_text) VALUES ('optimize');
    CREATE TRIGGER messages_added AFTER INSERT ON messages WHEN new.indexed BEGIN
        INSERT INTO messages_text (rowid, prose) VALUES (new.id, new.prose);
    END;
    CREATE TRIGGER messages_removed AFTER DELETE ON messages WHEN old.indexed BEGIN
        INSERT INTO messages_text (messages_text, rowid, prose) VALUES ('delete', old.id, old.prose);
    END;
    CREATE TRIGGER messages_changed AFTER UPDATE OF text, indexed, calls_start ON messages BEGIN
        INSERT INTO messages_text (messages_text, rowid, prose) SELECT 'delete', old.id, old.prose WHERE old.indexed;
        INSERT INTO messages_text (rowid, prose) SELECT new.id, new.prose WHERE new.indexed;
    END;
";

/// Excerpts of long documents that the prompt of a question contains.
const EXCERPTS: &str = "ALTER TABLE messages ADD COLUMN excerpts TEXT CHECK (json_valid(excerpts))";

/// Folders of conversations. A deleted folder keeps its conversations until it is purged, so that
/// it can be restored with them.
const FOLDERS: &str = "
    CREATE TABLE folders (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        name       TEXT    NOT NULL,
        deleted_at INTEGER
    ) STRICT;
    ALTER TABLE conversations ADD COLUMN folder INTEGER REFERENCES folders (id) ON DELETE SET NULL;
    CREATE INDEX conversations_by_folder ON conversations (folder) WHERE folder IS NOT NULL;
";

/// Upgrades a database to this program's version, completely or not at all.
pub(crate) fn migrate(connection: &mut Connection) -> Result<()> {
    if version(connection)? == MIGRATIONS.len() as i64 {
        return Ok(());
    }
    // Two copies of the program may start at once: only a version read under the lock counts.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    let known = MIGRATIONS.len() as i64;
    if !(0..=known).contains(&found) {
        return Err(Error::Newer { found, known });
    }
    for migration in &MIGRATIONS[found as usize..] {
        transaction.execute_batch(migration).map_err(|error| as_damaged(error.into()))?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    Ok(transaction.commit()?)
}

/// Turns SQL errors that mean "not a database of this program" into [`Error::Damaged`].
pub(crate) fn as_damaged(error: Error) -> Error {
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
    fn a_database_from_a_newer_program_is_refused_and_left_unchanged() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", 20).unwrap();
        let error = migrate(&mut connection).unwrap_err();
        assert!(matches!(error, Error::Newer { found: 20, known: 19 }), "{error}");
        assert!(error.to_string().contains("Update Foretoken"), "{error}");
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!((tables, version(&connection).unwrap()), (0, 20));
    }

    #[test]
    fn a_failed_migration_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE settings (something_else TEXT)").unwrap();
        let error = migrate(&mut connection).unwrap_err();
        assert!(matches!(error, Error::Damaged(_)), "{error}");
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!((tables, version(&connection).unwrap()), (1, 0));
    }

    #[test]
    fn migrating_twice_equals_migrating_once() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(version(&connection).unwrap(), MIGRATIONS.len() as i64);
    }

    #[test]
    fn search_finds_the_same_after_its_index_was_rebuilt() {
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
        assert_eq!((found("fox"), found("f*"), found("half")), (1, 1, 0), "an unfinished reply stays out");
        let secure: i64 = connection
            .query_row("SELECT v FROM messages_text_config WHERE k = 'secure-delete'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(secure, 1);
    }

    #[test]
    fn search_finds_no_more_of_calls_that_were_stored_before() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&MIGRATIONS[..13].concat()).unwrap();
        connection
            .execute_batch(
                "INSERT INTO conversations (title, created_at, updated_at) VALUES ('c', 1, 2);
                 INSERT INTO messages (conversation, role, text, created_at, indexed)
                 VALUES (1, 'assistant', 'ä fox <call> wolf', 1, 1);
                 INSERT INTO calls (message, text_start, tool, name, arguments, state, result, is_error)
                 VALUES (1, 6, 'read', 'read', '{}', 'done', '', 0);
                 PRAGMA user_version = 13;",
            )
            .unwrap();
        migrate(&mut connection).unwrap();
        let found = |word: &str| -> i64 {
            let sql = "SELECT count(*) FROM messages_text(?1)";
            connection.query_row(sql, [word], |row| row.get(0)).unwrap()
        };
        assert_eq!((found("fox"), found("wolf")), (1, 0));
    }

    #[test]
    fn conversations_from_before_folders_are_in_none() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&MIGRATIONS[..18].concat()).unwrap();
        connection.pragma_update(None, "foreign_keys", true).unwrap();
        connection
            .execute_batch(
                "INSERT INTO conversations (title, pinned, created_at, updated_at, deleted_at)
                 VALUES ('c', 1, 1, 2, NULL), ('deleted', 0, 1, 2, 3);
                 PRAGMA user_version = 18;",
            )
            .unwrap();
        migrate(&mut connection).unwrap();
        let filed: i64 = connection
            .query_row("SELECT count(*) FROM conversations WHERE folder IS NULL", [], |row| row.get(0))
            .unwrap();
        assert_eq!(filed, 2);
        let missing = connection.execute("UPDATE conversations SET folder = 7", []);
        assert!(missing.is_err(), "a folder exists before it is used");
    }

    #[test]
    fn a_database_from_before_branches_keeps_all_its_messages() {
        let mut connection = Connection::open_in_memory().unwrap();
        let before =
            [CONVERSATIONS, TRACES_AND_ARENAS, SECURE_DELETE, ALTERNATIVES_AND_CONTEXT_START].concat();
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
