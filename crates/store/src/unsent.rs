//! Texts that were typed but not sent: one per conversation, and one for a new conversation.

use rusqlite::params;

use crate::{Result, Store};

impl Store {
    /// Returns every unsent text with its conversation; `None` is a new conversation.
    pub fn unsent(&self) -> Result<Vec<(Option<i64>, String)>> {
        let mut statement = self.connection.prepare("SELECT conversation, text FROM unsent")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Replaces the unsent text of a conversation; an empty one is removed. Fails if the
    /// conversation does not exist.
    pub fn save_unsent(&mut self, conversation: Option<i64>, text: &str) -> Result<()> {
        let transaction = self.writing()?;
        transaction.execute("DELETE FROM unsent WHERE conversation IS ?1", [conversation])?;
        if !text.is_empty() {
            let insert = "INSERT INTO unsent (conversation, text) VALUES (?1, ?2)";
            transaction.execute(insert, params![conversation, text])?;
        }
        Ok(transaction.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use crate::store::tests::Fixture;

    #[test]
    fn each_conversation_and_a_new_one_keep_their_own_unsent_text_over_a_restart() {
        let mut fixture = Fixture::new();
        let [mine, other] = ["a", "b"].map(|title| fixture.store.create_conversation(title).unwrap().id);
        for text in ["half", "half a quest"] {
            fixture.store.save_unsent(Some(mine), text).unwrap();
            fixture.store.save_unsent(None, &text.to_uppercase()).unwrap();
        }
        fixture.store.save_unsent(Some(other), "gone").unwrap();
        fixture.store.save_unsent(Some(other), "").unwrap();
        let mut kept = fixture.reopen(0).store.unsent().unwrap();
        kept.sort();
        assert_eq!(kept, [(None, "HALF A QUEST".to_owned()), (Some(mine), "half a quest".to_owned())]);
    }

    #[test]
    fn an_unsent_text_is_purged_with_its_conversation() {
        let mut fixture = Fixture::new();
        let id = fixture.store.create_conversation("c").unwrap().id;
        fixture.store.save_unsent(Some(id), "secret").unwrap();
        fixture.store.delete_conversation(id).unwrap();
        assert_eq!(fixture.store.unsent().unwrap().len(), 1, "still restorable");
        let mut fixture = fixture.reopen_for_a_day();
        assert_eq!(fixture.store.unsent().unwrap(), []);
        fixture.store.save_unsent(Some(id), "late").unwrap_err();
    }
}
