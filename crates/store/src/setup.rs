//! What a conversation is written with: one JSON document each. What is in it is the application's business.

use rusqlite::{OptionalExtension, params};

use crate::{Error, Result, Store};

/// Fails with [`Error::NotFound`] for a conversation that is not there or deleted.
impl Store {
    /// The stored document; `None` when nothing was ever saved for this conversation.
    pub fn setup(&self, conversation: i64) -> Result<Option<String>> {
        let stored = "SELECT setup FROM conversations WHERE id = ?1 AND deleted_at IS NULL";
        let mut statement = self.connection.prepare_cached(stored)?;
        let found = statement.query_row([conversation], |row| row.get(0)).optional()?;
        found.ok_or(Error::NotFound { what: "conversation", id: conversation })
    }

    /// Replaces the document, or with `None` removes it; text that is not JSON is refused.
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
    fn a_conversation_keeps_its_setup_and_no_other_gets_it() {
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
    fn a_conversation_that_is_gone_has_no_setup() {
        let fixture = Fixture::new();
        let id = fixture.store.create_conversation("c").unwrap().id;
        fixture.store.delete_conversation(id).unwrap();
        for id in [id, 99] {
            assert!(matches!(fixture.store.setup(id), Err(Error::NotFound { .. })));
            assert!(matches!(fixture.store.save_setup(id, Some("{}")), Err(Error::NotFound { .. })));
        }
    }
}
