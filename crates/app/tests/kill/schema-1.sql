-- The first version of the database, as it was released.
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
PRAGMA user_version = 1;
