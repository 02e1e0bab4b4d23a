//! Conversations: create, list, rename, pin, delete with undo. Their contents are
//! [`crate::messages`].

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{Error, Result, Store};

/// A conversation as the sidebar shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    pub id: i64,
    pub title: String,
    pub pinned: bool,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When a message was last added, in milliseconds since 1970.
    pub updated_at: i64,
    /// First message in the model's context; `None` if it has all messages.
    pub seen_from: Option<i64>,
    /// Its folder; `None` if it is in none.
    pub folder: Option<i64>,
}

impl Conversation {
    /// Columns that [`Conversation::read`] expects of a query on `conversations`.
    pub(crate) const COLUMNS: &str =
        "conversations.id, title, pinned, conversations.created_at, updated_at, conversations.seen_from,
         (SELECT folders.id FROM folders WHERE folders.id = conversations.folder AND folders.deleted_at IS NULL)";
    /// Number of columns in [`Conversation::COLUMNS`].
    pub(crate) const WIDTH: usize = 7;

    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            title: row.get(1)?,
            pinned: row.get(2)?,
            created_at: row.get(3)?,
            updated_at: row.get(4)?,
            seen_from: row.get(5)?,
            folder: row.get(6)?,
        })
    }
}

/// Methods that take a conversation's id return [`Error::NotFound`] if it does not exist or is
/// deleted.
impl Store {
    pub fn create_conversation(&self, title: &str) -> Result<Conversation> {
        self.conversation(insert(&self.connection, title, true, self.now())?)
    }

    /// Returns all conversations, pinned ones first, then the newest.
    pub fn conversations(&self) -> Result<Vec<Conversation>> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {} FROM conversations WHERE deleted_at IS NULL ORDER BY pinned DESC, updated_at DESC, id DESC",
            Conversation::COLUMNS
        ))?;
        Ok(statement.query_map([], Conversation::read)?.collect::<rusqlite::Result<_>>()?)
    }

    pub fn conversation(&self, id: i64) -> Result<Conversation> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {} FROM conversations WHERE id = ?1 AND deleted_at IS NULL",
            Conversation::COLUMNS
        ))?;
        statement.query_row([id], Conversation::read).optional()?.ok_or(missing(id))
    }

    pub fn rename_conversation(&self, id: i64, title: &str) -> Result<Conversation> {
        self.connection.execute(
            "UPDATE conversations SET title = ?2, named = 1 WHERE id = ?1 AND deleted_at IS NULL",
            params![id, title],
        )?;
        self.conversation(id)
    }

    /// Returns whether a person or a model titled the conversation; otherwise its title is its
    /// first words.
    pub fn is_named(&self, id: i64) -> Result<bool> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT named FROM conversations WHERE id = ?1 AND deleted_at IS NULL")?;
        statement.query_row([id], |row| row.get(0)).optional()?.ok_or(missing(id))
    }

    /// Sets a title that a model wrote; `None` keeps the first words for good. Nothing changes if
    /// the conversation [is named](Store::is_named) already.
    pub fn name_conversation(&self, id: i64, title: Option<&str>) -> Result<Conversation> {
        self.connection.execute(
            "UPDATE conversations SET title = coalesce(?2, title), named = 1
             WHERE id = ?1 AND NOT named AND deleted_at IS NULL",
            params![id, title],
        )?;
        self.conversation(id)
    }

    pub fn pin_conversation(&self, id: i64, pinned: bool) -> Result<Conversation> {
        self.connection.execute(
            "UPDATE conversations SET pinned = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            params![id, pinned],
        )?;
        self.conversation(id)
    }

    /// Starts the model's context at this message; `None` gives it the whole conversation.
    pub fn see_from(&self, id: i64, message: Option<i64>) -> Result<Conversation> {
        self.connection.execute(
            "UPDATE conversations SET seen_from = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            params![id, message],
        )?;
        self.conversation(id)
    }

    /// Hides a conversation; [`Store::restore_conversation`] undoes this for a day of the store's
    /// own clock.
    pub fn delete_conversation(&self, id: i64) -> Result<()> {
        let deleted = self.connection.execute(
            "UPDATE conversations SET deleted_at = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            params![id, self.age()?],
        )?;
        if deleted == 0 { Err(missing(id)) } else { Ok(()) }
    }

    /// Restores a deleted conversation with everything in it; nothing changes if it is not deleted.
    pub fn restore_conversation(&self, id: i64) -> Result<Conversation> {
        self.connection.execute("UPDATE conversations SET deleted_at = NULL WHERE id = ?1", [id])?;
        self.conversation(id)
    }
}

/// Inserts a conversation and returns its id. A model may title it later unless it is `named`.
pub(crate) fn insert(connection: &Connection, title: &str, named: bool, now: i64) -> Result<i64> {
    connection.execute(
        "INSERT INTO conversations (title, named, created_at, updated_at) VALUES (?1, ?2, ?3, ?3)",
        params![title, named, now],
    )?;
    Ok(connection.last_insert_rowid())
}

pub(crate) fn missing(id: i64) -> Error {
    Error::NotFound { what: "conversation", id }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Fixture;

    const HOUR: i64 = 60 * 60 * 1000;

    fn titles(store: &Store) -> Vec<String> {
        store.conversations().unwrap().into_iter().map(|conversation| conversation.title).collect()
    }

    #[test]
    fn conversations_are_listed_pinned_first_then_by_newest_message() {
        let mut fixture = Fixture::new();
        let ids: Vec<_> = ["a", "b", "c"]
            .map(|title| {
                fixture.wait(1);
                fixture.store.create_conversation(title).unwrap().id
            })
            .into();
        assert_eq!(titles(&fixture.store), ["c", "b", "a"]);
        fixture.wait(1);
        fixture.store.add_user_message(ids[1], "hello").unwrap();
        assert_eq!(titles(&fixture.store), ["b", "c", "a"]);
        assert!(fixture.store.pin_conversation(ids[0], true).unwrap().pinned);
        assert_eq!(titles(&fixture.store), ["a", "b", "c"]);
    }

    #[test]
    fn renaming_changes_the_title_but_not_the_order() {
        let fixture = Fixture::new();
        let first = fixture.store.create_conversation("first").unwrap();
        fixture.wait(1);
        fixture.store.create_conversation("second").unwrap();
        fixture.wait(1);
        let renamed = fixture.store.rename_conversation(first.id, "new").unwrap();
        assert_eq!(renamed, Conversation { title: "new".into(), ..first });
        assert_eq!(titles(&fixture.store), ["second", "new"]);
    }

    #[test]
    fn a_model_titles_a_conversation_once_and_never_replaces_a_persons_title() {
        let mut fixture = Fixture::new();
        let [first, second, third] = ["One?", "Two?", "Three?"]
            .map(|text| fixture.store.ask(None, text, "Starter", None).unwrap().0.conversation);
        let store = &fixture.store;
        assert!(!store.is_named(first).unwrap());
        assert_eq!(store.name_conversation(first, Some("Foxes")).unwrap().title, "Foxes");
        assert_eq!(store.name_conversation(first, Some("Hens")).unwrap().title, "Foxes");
        store.rename_conversation(second, "Mine").unwrap();
        assert_eq!(store.name_conversation(second, Some("Hens")).unwrap().title, "Mine");
        assert_eq!(store.name_conversation(third, None).unwrap().title, "Three?");
        assert!([first, second, third].iter().all(|&id| store.is_named(id).unwrap()));
        assert!(store.is_named(store.create_conversation("c").unwrap().id).unwrap());
        assert!(matches!(store.name_conversation(99, Some("x")), Err(Error::NotFound { .. })));
    }

    #[test]
    fn a_deleted_conversation_is_hidden_until_it_is_restored() {
        let mut fixture = Fixture::new();
        let id = fixture.store.create_conversation("c").unwrap().id;
        fixture.store.add_user_message(id, "hello").unwrap();
        let before = fixture.store.conversation(id).unwrap();
        fixture.store.delete_conversation(id).unwrap();

        let gone = |result: Result<()>| matches!(result, Err(Error::NotFound { what: "conversation", .. }));
        assert!(fixture.store.conversations().unwrap().is_empty());
        assert!(gone(fixture.store.conversation(id).map(drop)));
        assert!(gone(fixture.store.messages(id).map(drop)));
        assert!(gone(fixture.store.rename_conversation(id, "d").map(drop)));
        assert!(gone(fixture.store.pin_conversation(id, true).map(drop)));
        assert!(gone(fixture.store.add_user_message(id, "hello").map(drop)));
        assert!(gone(fixture.store.delete_conversation(id)));

        let mut fixture = fixture.reopen(23 * HOUR);
        assert_eq!(fixture.store.restore_conversation(id).unwrap(), before);
        assert_eq!(fixture.store.messages(id).unwrap().len(), 1);
        fixture.store.add_user_message(id, "again").unwrap();
    }

    #[test]
    fn a_conversation_deleted_for_more_than_a_day_is_purged_with_everything_in_it() {
        let mut fixture = Fixture::new();
        let kept = fixture.store.create_conversation("kept").unwrap().id;
        let id = fixture.store.create_conversation("c").unwrap().id;
        fixture.store.add_user_message(id, "fox").unwrap();
        let reply = fixture.store.begin_reply(id, "target", None).unwrap().id;
        fixture.store.append_rounds(reply, "fox", &[(0, "{}")]).unwrap();
        fixture.store.delete_conversation(id).unwrap();

        let fixture = fixture.reopen_for_a_day();
        assert!(matches!(fixture.store.restore_conversation(id), Err(Error::NotFound { .. })));
        for table in ["messages", "rounds", "messages_text('fox')"] {
            let left: i64 = fixture
                .store
                .connection
                .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
                .unwrap();
            assert_eq!(left, 0, "{table}");
        }
        assert_eq!(fixture.store.conversations().unwrap()[0].id, kept);
    }

    #[test]
    fn the_start_of_the_context_is_stored_with_the_conversation_and_each_reply() {
        let mut fixture = Fixture::new();
        let (first, before) = fixture.store.ask(None, "One?", "Starter", None).unwrap();
        let id = first.conversation;
        let (second, _) = fixture.store.ask(Some(id), "Two?", "Starter", None).unwrap();
        assert_eq!(fixture.store.see_from(id, Some(second.id)).unwrap().seen_from, Some(second.id));
        let mut fixture = fixture.reopen(0);
        assert_eq!(fixture.store.conversations().unwrap()[0].seen_from, Some(second.id));
        let (_, after) = fixture.store.ask(Some(id), "Three?", "Starter", None).unwrap();
        assert_eq!((before.seen_from, after.seen_from), (None, Some(second.id)));
        assert_eq!(fixture.store.see_from(id, None).unwrap().seen_from, None);
        assert_eq!(fixture.store.message(after.id).unwrap().seen_from, Some(second.id));
        assert!(matches!(fixture.store.see_from(99, None), Err(Error::NotFound { .. })));
    }

    #[test]
    fn ids_are_never_reused() {
        let fixture = Fixture::new();
        let first = fixture.store.create_conversation("c").unwrap().id;
        fixture.store.delete_conversation(first).unwrap();
        let fixture = fixture.reopen_for_a_day();
        assert!(fixture.store.create_conversation("c").unwrap().id > first);
    }
}
