//! The trace of a reply: its rounds as JSON, appended while it is written. A round is stored with
//! the text it led to, so that the two never disagree, whenever the process ends.

use rusqlite::params;

use crate::{Error, Result, Store};

impl Store {
    /// Appends `(index, json)` rounds to a reply under way, and the text up to and including them.
    /// All or nothing: an index that is there already, or text that is not JSON, refuses the lot.
    pub fn append_rounds(&mut self, reply: i64, text: &str, rounds: &[(u32, impl AsRef<str>)]) -> Result<()> {
        let transaction = self.writing()?;
        let found = transaction
            .prepare_cached("UPDATE messages SET text = ?2 WHERE id = ?1 AND role = 'assistant'")?
            .execute(params![reply, text])?;
        if found == 0 {
            return Err(Error::NotFound { what: "reply", id: reply });
        }
        let mut insert =
            transaction.prepare_cached("INSERT INTO rounds (message, idx, json) VALUES (?1, ?2, ?3)")?;
        for (index, json) in rounds {
            insert.execute(params![reply, index, json.as_ref()])?;
        }
        drop(insert);
        Ok(transaction.commit()?)
    }

    /// The JSON of a reply's rounds, first to last; none for a message without a trace.
    pub fn rounds(&self, message: i64) -> Result<Vec<String>> {
        self.message(message)?;
        let mut statement =
            self.connection.prepare_cached("SELECT json FROM rounds WHERE message = ?1 ORDER BY idx")?;
        Ok(statement.query_map([message], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Fixture;

    fn reply_under_way() -> (Fixture, i64) {
        let mut fixture = Fixture::new();
        let conversation = fixture.store.create_conversation("c").unwrap().id;
        let reply = fixture.store.begin_reply(conversation, "Starter", None).unwrap().id;
        (fixture, reply)
    }

    #[test]
    fn rounds_come_back_by_index_with_the_text_they_led_to() {
        let (mut fixture, reply) = reply_under_way();
        fixture.store.append_rounds(reply, "one", &[(1, "[1]"), (0, "[0]")]).unwrap();
        let later: Vec<(u32, String)> = (2..12).map(|index| (index, format!("[{index}]"))).collect();
        fixture.store.append_rounds(reply, "one two", &later).unwrap();
        let expected: Vec<_> = (0..12).map(|index| format!("[{index}]")).collect();
        assert_eq!(fixture.store.rounds(reply).unwrap(), expected);
        assert_eq!(fixture.store.message(reply).unwrap().text, "one two");
    }

    #[test]
    fn an_append_that_fails_changes_neither_rounds_nor_text() {
        let (mut fixture, reply) = reply_under_way();
        fixture.store.append_rounds(reply, "one", &[(0, "[0]")]).unwrap();
        fixture.store.append_rounds(reply, "two", &[(1, "[1]"), (0, "[0]")]).unwrap_err();
        fixture.store.append_rounds(reply, "two", &[(1, "[1]"), (2, "[")]).unwrap_err();
        assert_eq!(fixture.store.rounds(reply).unwrap(), ["[0]"]);
        assert_eq!(fixture.store.message(reply).unwrap().text, "one");
    }

    #[test]
    fn a_reply_goes_on_while_its_conversation_is_deleted() {
        let (mut fixture, reply) = reply_under_way();
        let conversation = fixture.store.message(reply).unwrap().conversation;
        fixture.store.delete_conversation(conversation).unwrap();
        fixture.store.append_rounds(reply, "one", &[(0, "[0]")]).unwrap();
        fixture.store.restore_conversation(conversation).unwrap();
        assert_eq!(fixture.store.messages(conversation).unwrap()[0].text, "one");
    }

    #[test]
    fn a_message_that_does_not_exist_has_no_trace_to_read_or_append_to() {
        let (mut fixture, reply) = reply_under_way();
        assert!(matches!(fixture.store.rounds(reply + 1), Err(Error::NotFound { .. })));
        assert!(matches!(
            fixture.store.append_rounds(reply + 1, "", &[(0, "{}")]),
            Err(Error::NotFound { .. })
        ));
    }
}
