//! Trace of a reply: its rounds as JSON, appended while the reply is written. A round is stored
//! together with the text it led to, so both agree whenever the process ends. When the reply ends
//! its rounds are packed: lines of JSON, deflated as one, because consecutive lines are similar.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rusqlite::{Connection, OptionalExtension, params};

use crate::{Error, Result, Store};

/// Disk space taken by all traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceStorage {
    pub bytes: u64,
    /// Number of replies with a trace.
    pub replies: u64,
}

impl Store {
    /// Appends `(index, json)` rounds to a reply that is being written, and sets its text up to and
    /// including them. All or nothing: an existing index or text that is not JSON refuses the whole
    /// call.
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

    /// Returns the JSON of a reply's rounds in order; empty for a message without a trace.
    pub fn rounds(&self, message: i64) -> Result<Vec<String>> {
        self.message(message)?;
        all(&self.connection, message)
    }

    /// Returns the disk space that traces of ended replies take.
    pub fn trace_storage(&self) -> Result<TraceStorage> {
        Ok(self.connection.query_row(
            "SELECT coalesce(sum(length(packed)), 0), count(*) FROM traces",
            [],
            |row| {
                Ok(TraceStorage {
                    bytes: row.get::<_, i64>(0)? as u64,
                    replies: row.get::<_, i64>(1)? as u64,
                })
            },
        )?)
    }

    /// Deletes the traces of ended replies begun before `before`, or of all with `None`; texts and
    /// statistics stay. The freed pages are reused by later writes.
    pub fn delete_traces(&self, before: Option<i64>) -> Result<()> {
        self.connection.execute(
            "DELETE FROM traces WHERE message IN (SELECT id FROM messages WHERE ?1 IS NULL OR created_at < ?1)",
            [before],
        )?;
        Ok(())
    }

    /// Packs the rounds of all replies, which must have ended, and returns the number of replies.
    pub(crate) fn pack_all(&mut self) -> Result<usize> {
        let transaction = self.writing()?;
        let messages: Vec<i64> = transaction
            .prepare("SELECT DISTINCT message FROM rounds")?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for &message in &messages {
            pack(&transaction, message)?;
        }
        transaction.commit()?;
        Ok(messages.len())
    }
}

/// Packs the rounds of an ended reply. If another program opened the store meanwhile, the reply may
/// still grow; then it is packed again at its end.
pub(crate) fn pack(connection: &Connection, message: i64) -> Result<()> {
    let rounds = all(connection, message)?;
    if rounds.is_empty() {
        return Ok(());
    }
    keep(connection, message, &rounds)?;
    connection.execute("DELETE FROM rounds WHERE message = ?1", [message])?;
    Ok(())
}

/// Replaces the packed rounds of a reply.
pub(crate) fn keep(connection: &Connection, message: i64, rounds: &[String]) -> Result<()> {
    let packed = packed_lines(rounds).map_err(|error| Error::Damaged(error.to_string()))?;
    connection.execute("REPLACE INTO traces (message, packed) VALUES (?1, ?2)", params![message, packed])?;
    Ok(())
}

/// Returns the packed rounds and those appended since.
fn all(connection: &Connection, message: i64) -> Result<Vec<String>> {
    let packed = packed(connection, message)?;
    let mut rounds = packed.as_deref().map(unpacked).transpose()?.unwrap_or_default();
    rounds.extend(under_way(connection, message)?);
    Ok(rounds)
}

fn packed_lines(rounds: &[String]) -> std::io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    for round in rounds {
        encoder.write_all(round.as_bytes())?;
        encoder.write_all(b"\n")?;
    }
    encoder.finish()
}

fn packed(connection: &Connection, message: i64) -> Result<Option<Vec<u8>>> {
    let mut statement = connection.prepare_cached("SELECT packed FROM traces WHERE message = ?1")?;
    Ok(statement.query_row([message], |row| row.get(0)).optional()?)
}

fn unpacked(packed: &[u8]) -> Result<Vec<String>> {
    let mut lines = String::new();
    ZlibDecoder::new(packed)
        .read_to_string(&mut lines)
        .map_err(|error| Error::Damaged(format!("a trace cannot be unpacked: {error}")))?;
    Ok(lines.lines().map(str::to_owned).collect())
}

fn under_way(connection: &Connection, message: i64) -> Result<Vec<String>> {
    let mut statement =
        connection.prepare_cached("SELECT json FROM rounds WHERE message = ?1 ORDER BY idx")?;
    Ok(statement.query_map([message], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ending;
    use crate::store::tests::Fixture;

    fn reply_under_way() -> (Fixture, i64) {
        let mut fixture = Fixture::new();
        let conversation = fixture.store.create_conversation("c").unwrap().id;
        let reply = fixture.store.begin_reply(conversation, "Starter", None).unwrap().id;
        (fixture, reply)
    }

    #[test]
    fn rounds_are_returned_in_order_with_the_text_they_led_to() {
        let (mut fixture, reply) = reply_under_way();
        fixture.store.append_rounds(reply, "one", &[(1, "[1]"), (0, "[0]")]).unwrap();
        let later: Vec<(u32, String)> = (2..12).map(|index| (index, format!("[{index}]"))).collect();
        fixture.store.append_rounds(reply, "one two", &later).unwrap();
        let expected: Vec<_> = (0..12).map(|index| format!("[{index}]")).collect();
        assert_eq!(fixture.store.rounds(reply).unwrap(), expected);
        assert_eq!(fixture.store.message(reply).unwrap().text, "one two");
    }

    #[test]
    fn a_failed_append_changes_neither_rounds_nor_text() {
        let (mut fixture, reply) = reply_under_way();
        fixture.store.append_rounds(reply, "one", &[(0, "[0]")]).unwrap();
        fixture.store.append_rounds(reply, "two", &[(1, "[1]"), (0, "[0]")]).unwrap_err();
        fixture.store.append_rounds(reply, "two", &[(1, "[1]"), (2, "[")]).unwrap_err();
        assert_eq!(fixture.store.rounds(reply).unwrap(), ["[0]"]);
        assert_eq!(fixture.store.message(reply).unwrap().text, "one");
    }

    #[test]
    fn a_reply_continues_while_its_conversation_is_deleted() {
        let (mut fixture, reply) = reply_under_way();
        let conversation = fixture.store.message(reply).unwrap().conversation;
        fixture.store.delete_conversation(conversation).unwrap();
        fixture.store.append_rounds(reply, "one", &[(0, "[0]")]).unwrap();
        fixture.store.restore_conversation(conversation).unwrap();
        assert_eq!(fixture.store.messages(conversation).unwrap()[0].text, "one");
    }

    #[test]
    fn a_message_that_does_not_exist_has_no_trace() {
        let (mut fixture, reply) = reply_under_way();
        assert!(matches!(fixture.store.rounds(reply + 1), Err(Error::NotFound { .. })));
        assert!(matches!(
            fixture.store.append_rounds(reply + 1, "", &[(0, "{}")]),
            Err(Error::NotFound { .. })
        ));
    }

    fn finished(fixture: &mut Fixture, conversation: i64, rounds: &[(u32, &str)]) -> i64 {
        let reply = fixture.store.begin_reply(conversation, "Starter", None).unwrap().id;
        fixture.store.append_rounds(reply, "text", rounds).unwrap();
        fixture.store.finish_reply(reply, Ending { text: "text", ..Ending::default() }).unwrap();
        reply
    }

    #[test]
    fn rounds_are_the_same_before_and_after_they_are_packed() {
        let (mut fixture, reply) = reply_under_way();
        let rounds: Vec<(u32, String)> =
            (0..500).map(|index| (index, format!(r#"{{"index":{index},"text":"a\\nb"}}"#))).collect();
        fixture.store.append_rounds(reply, "text", &rounds).unwrap();
        let before = fixture.store.rounds(reply).unwrap();
        assert_eq!(fixture.store.trace_storage().unwrap(), TraceStorage { bytes: 0, replies: 0 });
        fixture.store.finish_reply(reply, Ending { text: "text", ..Ending::default() }).unwrap();
        assert_eq!(fixture.store.rounds(reply).unwrap(), before);
        let TraceStorage { bytes, replies } = fixture.store.trace_storage().unwrap();
        assert_eq!(replies, 1);
        let plain: usize = before.iter().map(String::len).sum();
        assert!(bytes > 0 && bytes < plain as u64 / 4, "{bytes} of {plain} bytes");
    }

    #[test]
    fn rounds_left_by_a_killed_program_are_packed_at_the_next_start() {
        let (mut fixture, reply) = reply_under_way();
        fixture.store.append_rounds(reply, "one", &[(0, "[0]"), (1, "[1]")]).unwrap();
        let fixture = fixture.reopen(1);
        assert_eq!(fixture.store.trace_storage().unwrap().replies, 1);
        assert_eq!(fixture.store.rounds(reply).unwrap(), ["[0]", "[1]"]);
    }

    #[test]
    fn traces_are_deleted_by_age_or_completely_and_texts_stay() {
        let mut fixture = Fixture::new();
        let conversation = fixture.store.create_conversation("c").unwrap().id;
        let old = finished(&mut fixture, conversation, &[(0, "[0]")]);
        fixture.wait(1_000);
        let new = finished(&mut fixture, conversation, &[(0, "[1]")]);
        let between = fixture.store.message(new).unwrap().created_at;
        fixture.store.delete_traces(Some(between)).unwrap();
        assert!(fixture.store.rounds(old).unwrap().is_empty());
        assert_eq!(fixture.store.rounds(new).unwrap(), ["[1]"]);
        fixture.store.delete_traces(None).unwrap();
        assert_eq!(fixture.store.trace_storage().unwrap(), TraceStorage { bytes: 0, replies: 0 });
        assert_eq!(fixture.store.message(old).unwrap().text, "text");
    }

    #[test]
    fn a_trace_that_cannot_be_unpacked_is_reported_as_damaged() {
        let mut fixture = Fixture::new();
        let conversation = fixture.store.create_conversation("c").unwrap().id;
        let reply = finished(&mut fixture, conversation, &[(0, "[0]")]);
        fixture.store.connection.execute("UPDATE traces SET packed = x'00112233'", []).unwrap();
        let error = fixture.store.rounds(reply).unwrap_err();
        assert!(matches!(&error, Error::Damaged(reason) if reason.contains("unpacked")), "{error}");
    }
}
