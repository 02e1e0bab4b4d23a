//! Tools that replies were offered, as opaque JSON, for checks. Replies with the same tools share a
//! row, which is deleted with the last of them (a trigger in `schema.rs`).

use rusqlite::{Connection, OptionalExtension, params};

use crate::{Error, Result, Store};

impl Store {
    /// Stores the tools of a reply; text that is not JSON is refused.
    pub fn set_tools(&mut self, reply: i64, json: &str) -> Result<()> {
        let transaction = self.writing()?;
        let set = find_or_add(&transaction, json)?;
        let changed =
            transaction.execute("UPDATE messages SET tool_set = ?2 WHERE id = ?1", params![reply, set])?;
        if changed == 0 {
            return Err(Error::NotFound { what: "reply", id: reply });
        }
        Ok(transaction.commit()?)
    }

    /// Returns the tools of a reply; `None` if it had none.
    pub fn tools_of(&self, reply: i64) -> Result<Option<String>> {
        let sql =
            "SELECT json FROM tool_sets JOIN messages ON tool_set = tool_sets.id WHERE messages.id = ?1";
        Ok(self.connection.prepare_cached(sql)?.query_row([reply], |row| row.get(0)).optional()?)
    }
}

/// Returns the id of a set of tools, which is added unless it is there.
pub(crate) fn find_or_add(connection: &Connection, json: &str) -> Result<i64> {
    let sql = "SELECT id FROM tool_sets WHERE json = ?1";
    let found = connection.prepare_cached(sql)?.query_row([json], |row| row.get(0)).optional()?;
    if let Some(id) = found {
        return Ok(id);
    }
    connection.execute("INSERT INTO tool_sets (json) VALUES (?1)", [json])?;
    Ok(connection.last_insert_rowid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Fixture;

    fn sets(store: &Store) -> i64 {
        store.connection.query_row("SELECT count(*) FROM tool_sets", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn replies_share_their_tools_and_the_last_of_them_takes_these_along() {
        let mut fixture = Fixture::new();
        let store = &mut fixture.store;
        let (_, first) = store.ask(None, "Why?", "Target", None).unwrap();
        let (_, second) = store.ask(None, "And?", "Target", None).unwrap();
        assert_eq!(store.tools_of(first.id).unwrap(), None);
        for reply in [first.id, second.id] {
            store.set_tools(reply, "[1]").unwrap();
        }
        assert!(store.set_tools(first.id, "[").is_err());
        assert!(matches!(store.set_tools(99, "[1]"), Err(Error::NotFound { .. })));
        let copy = store.copy_conversation(first.conversation, None, "Copy").unwrap();
        let copied = store.messages(copy.id).unwrap()[1].id;
        assert_eq!(store.tools_of(copied).unwrap().as_deref(), Some("[1]"));
        assert_eq!(sets(store), 1);
        for conversation in [first.conversation, copy.id] {
            store.connection.execute("DELETE FROM conversations WHERE id = ?1", [conversation]).unwrap();
            assert_eq!(store.tools_of(second.id).unwrap().as_deref(), Some("[1]"));
        }
        store.connection.execute("DELETE FROM conversations WHERE id = ?1", [second.conversation]).unwrap();
        assert_eq!(sets(store), 0);
    }
}
