//! A conversation's own settings: one JSON document each. The application defines its content.

use rusqlite::{OptionalExtension, params};

use crate::{Error, Result, Store};

/// Methods return [`Error::NotFound`] for a conversation that does not exist or is deleted.
impl Store {
    /// Returns the stored document; `None` if none was ever saved for this conversation.
    pub fn setup(&self, conversation: i64) -> Result<Option<String>> {
        let stored = "SELECT setup FROM conversations WHERE id = ?1 AND deleted_at IS NULL";
        let mut statement = self.connection.prepare_cached(stored)?;
        let found = statement.query_row([conversation], |row| row.get(0)).optional()?;
        found.ok_or(Error::NotFound { what: "conversation", id: conversation })
    }

    /// Replaces the document, or removes it with `None`; text that is not JSON is refused.
    pub fn save_setup(&self, conversation: i64, json: Option<&str>) -> Result<()> {
        let changed = self.connection.execute(
            "UPDATE conversations SET setup = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            params![conversation, json],
        )?;
        if changed == 0 { Err(Error::NotFound { what: "conversation", id: conversation }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Fixture;

    #[test]
    fn a_conversations_settings_apply_to_it_alone() {
        let fixture = Fixture::new();
        let [mine, other] = ["a", "b"].map(|title| fixture.store.create_conversation(title).unwrap());
        assert_eq!(fixture.store.setup(mine.id).unwrap(), None);
        fixture.store.save_setup(mine.id, Some(r#"{"target":"starter"}"#)).unwrap();
        fixture.store.save_setup(mine.id, Some("{")).unwrap_err();
        let fixture = fixture.reopen(0);
        assert_eq!(fixture.store.setup(mine.id).unwrap().as_deref(), Some(r#"{"target":"starter"}"#));
        assert_eq!(fixture.store.setup(other.id).unwrap(), None);
        assert_eq!(fixture.store.conversation(mine.id).unwrap(), mine, "nothing else changes");
        fixture.store.save_setup(mine.id, None).unwrap();
        assert_eq!(fixture.store.setup(mine.id).unwrap(), None);
    }

    #[test]
    fn a_deleted_conversation_has_no_settings() {
        let fixture = Fixture::new();
        let id = fixture.store.create_conversation("c").unwrap().id;
        fixture.store.delete_conversation(id).unwrap();
        for id in [id, 99] {
            assert!(matches!(fixture.store.setup(id), Err(Error::NotFound { .. })));
            assert!(matches!(fixture.store.save_setup(id, Some("{}")), Err(Error::NotFound { .. })));
        }
    }
}
