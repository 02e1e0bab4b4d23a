//! Calls of tools in replies with their results, and what a person decided about tools. Arguments
//! and results are opaque texts.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{Error, Result, Store};

/// State of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum CallState {
    /// Waits for a person's decision.
    Asked,
    Running,
    /// With a result, which may be an error of the tool.
    Done,
    /// Without a result; `result` says why.
    Failed,
    /// A person did not allow it.
    Refused,
    /// A person stopped it.
    Stopped,
    /// The program ended before it did.
    Lost,
}

const STATES: [(CallState, &str); 7] = [
    (CallState::Asked, "asked"),
    (CallState::Running, "running"),
    (CallState::Done, "done"),
    (CallState::Failed, "failed"),
    (CallState::Refused, "refused"),
    (CallState::Stopped, "stopped"),
    (CallState::Lost, "lost"),
];

impl CallState {
    /// Returns the state with this name.
    pub fn named(name: &str) -> Option<Self> {
        STATES.iter().find(|(_, other)| *other == name).map(|(state, _)| *state)
    }

    pub fn name(self) -> &'static str {
        STATES.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }
}

impl FromSql for CallState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Self::named(value.as_str()?).ok_or(FromSqlError::InvalidType)
    }
}

impl ToSql for CallState {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.name().into())
    }
}

/// Number of tokens in which a model wrote a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CallTokens {
    pub written: u32,
    /// Accepted tokens of drafters, and of the grammar, which forced them.
    pub drafted: u32,
    pub forced: u32,
}

/// A call that a reply makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCall {
    /// Offset in the reply's text where its calls begin, in bytes.
    pub text_start: i64,
    /// Server of the tool; `None` for a built-in one.
    pub server: Option<String>,
    /// The tool's own name, and the name that the model used.
    pub tool: String,
    pub name: String,
    /// JSON object.
    pub arguments: String,
    pub state: CallState,
    /// Result, or why there is none; empty before the end.
    pub result: String,
    /// `true` if the tool reports an error.
    pub is_error: bool,
    pub took_ms: Option<i64>,
    /// `None` if they were not counted.
    pub tokens: Option<CallTokens>,
}

/// A stored call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub id: i64,
    pub message: i64,
    pub call: NewCall,
}

/// End of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEnd<'a> {
    pub state: CallState,
    pub result: &'a str,
    pub is_error: bool,
    pub took_ms: Option<i64>,
}

impl Call {
    const COLUMNS: &str = "id, message, text_start, server, tool, name, arguments, state, result, is_error, took_ms, \
                           tokens, drafted, forced";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let call = NewCall {
            text_start: row.get(2)?,
            server: row.get(3)?,
            tool: row.get(4)?,
            name: row.get(5)?,
            arguments: row.get(6)?,
            state: row.get(7)?,
            result: row.get(8)?,
            is_error: row.get(9)?,
            took_ms: row.get(10)?,
            tokens: match row.get(11)? {
                Some(written) => Some(CallTokens { written, drafted: row.get(12)?, forced: row.get(13)? }),
                None => None,
            },
        };
        Ok(Self { id: row.get(0)?, message: row.get(1)?, call })
    }
}

impl Store {
    /// Stores the calls of a reply, in order.
    pub fn add_calls(&mut self, reply: i64, calls: &[NewCall]) -> Result<Vec<Call>> {
        let transaction = self.writing()?;
        add(&transaction, reply, calls)?;
        transaction.commit()?;
        self.calls(reply)
    }

    /// Returns the calls of a reply, in order.
    pub fn calls(&self, reply: i64) -> Result<Vec<Call>> {
        Ok(listed(&self.connection, reply)?)
    }

    /// Returns the call with this id.
    pub fn call(&self, id: i64) -> Result<Call> {
        let sql = format!("SELECT {} FROM calls WHERE id = ?1", Call::COLUMNS);
        let found = self.connection.prepare_cached(&sql)?.query_row([id], Call::read).optional()?;
        found.ok_or(Error::NotFound { what: "call", id })
    }

    /// Sets the state and the result of a call; returns the call.
    pub fn set_call(&mut self, id: i64, end: CallEnd<'_>) -> Result<Call> {
        let CallEnd { state, result, is_error, took_ms } = end;
        let sql = "UPDATE calls SET state = ?2, result = ?3, is_error = ?4, took_ms = ?5 WHERE id = ?1";
        match self.connection.execute(sql, params![id, state, result, is_error, took_ms])? {
            0 => Err(Error::NotFound { what: "call", id }),
            _ => self.call(id),
        }
    }

    /// Marks the calls as lost that had not ended when the program did.
    pub fn lose_calls(&mut self) -> Result<()> {
        let sql = "UPDATE calls SET state = 'lost' WHERE state IN ('asked', 'running')";
        self.connection.execute(sql, [])?;
        Ok(())
    }

    /// Returns the decision about a tool: that for this conversation, else that for all.
    pub fn approval(
        &self,
        server: Option<&str>,
        digest: &str,
        conversation: Option<i64>,
    ) -> Result<Option<String>> {
        let sql = "SELECT decision FROM approvals WHERE server = ?1 AND digest = ?2
                   AND (conversation IS NULL OR conversation = ?3) ORDER BY conversation IS NULL LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let server = server.unwrap_or_default();
        Ok(statement.query_row(params![server, digest, conversation], |row| row.get(0)).optional()?)
    }

    /// Stores a decision about a tool, for all conversations or one, in place of the one before;
    /// `None` removes it.
    pub fn set_approval(
        &mut self,
        server: Option<&str>,
        digest: &str,
        conversation: Option<i64>,
        decision: Option<&str>,
    ) -> Result<()> {
        let transaction = self.writing()?;
        let server = server.unwrap_or_default();
        transaction.execute(
            "DELETE FROM approvals WHERE server = ?1 AND digest = ?2 AND conversation IS ?3",
            params![server, digest, conversation],
        )?;
        if let Some(decision) = decision {
            transaction.execute(
                "INSERT INTO approvals (server, digest, conversation, decision) VALUES (?1, ?2, ?3, ?4)",
                params![server, digest, conversation, decision],
            )?;
        }
        Ok(transaction.commit()?)
    }
}

/// Adds calls to a reply, whose text search finds up to them.
pub(crate) fn add(connection: &Connection, reply: i64, calls: &[NewCall]) -> Result<()> {
    let Some(start) = calls.iter().map(|call| call.text_start).min() else { return Ok(()) };
    connection
        .prepare_cached("UPDATE messages SET calls_start = ?2 WHERE id = ?1")?
        .execute(params![reply, start])?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO calls (message, text_start, server, tool, name, arguments, state, result, is_error,
                            took_ms, tokens, drafted, forced)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?;
    for call in calls {
        let NewCall { text_start, server, tool, name, arguments, state, result, is_error, .. } = call;
        statement.execute(params![
            reply,
            text_start,
            server,
            tool,
            name,
            arguments,
            state,
            result,
            is_error,
            call.took_ms,
            call.tokens.map(|tokens| tokens.written),
            call.tokens.map(|tokens| tokens.drafted),
            call.tokens.map(|tokens| tokens.forced),
        ])?;
    }
    Ok(())
}

pub(crate) fn listed(connection: &Connection, reply: i64) -> rusqlite::Result<Vec<Call>> {
    let sql = format!("SELECT {} FROM calls WHERE message = ?1 ORDER BY id", Call::COLUMNS);
    connection.prepare_cached(&sql)?.query_map([reply], Call::read)?.collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::store::tests::Fixture;

    pub(crate) fn call(tool: &str) -> NewCall {
        NewCall {
            text_start: 3,
            server: Some("files".to_owned()),
            tool: tool.to_owned(),
            name: format!("files__{tool}"),
            arguments: "{\"path\":\"a\"}".to_owned(),
            state: CallState::Asked,
            result: String::new(),
            is_error: false,
            took_ms: None,
            tokens: Some(CallTokens { written: 20, drafted: 4, forced: 9 }),
        }
    }

    #[test]
    fn calls_are_read_with_their_message_copied_with_it_and_deleted_with_it() {
        let mut fixture = Fixture::new();
        let store = &mut fixture.store;
        let (_, reply) = store.ask(None, "Why?", "Target", None).unwrap();
        let added = store.add_calls(reply.id, &[call("read"), call("list")]).unwrap();
        let end = CallEnd { state: CallState::Done, result: "Fox", is_error: false, took_ms: Some(7) };
        let done = store.set_call(added[0].id, end).unwrap();
        assert_eq!((done.call.result.as_str(), done.call.took_ms), ("Fox", Some(7)));
        let message = store.message(reply.id).unwrap();
        assert_eq!(message.calls, [done.clone(), added[1].clone()]);
        let copy = store.copy_conversation(reply.conversation, None, "Copy").unwrap();
        let copied = store.messages(copy.id).unwrap()[1].calls.clone();
        assert_eq!(copied.iter().map(|call| &call.call).collect::<Vec<_>>(), [&done.call, &added[1].call]);
        store.connection.execute("DELETE FROM conversations WHERE id = ?1", [reply.conversation]).unwrap();
        assert!(matches!(store.call(done.id), Err(Error::NotFound { .. })));
        assert!(store.set_call(done.id, end).is_err());
    }

    #[test]
    fn calls_that_had_not_ended_are_lost_with_the_program() {
        let mut fixture = Fixture::new();
        let (_, reply) = fixture.store.ask(None, "Why?", "Target", None).unwrap();
        let refused = NewCall { state: CallState::Refused, ..call("list") };
        fixture.store.add_calls(reply.id, &[call("read"), refused]).unwrap();
        fixture.store.lose_calls().unwrap();
        let states = fixture.store.calls(reply.id).unwrap().into_iter().map(|call| call.call.state);
        assert_eq!(states.collect::<Vec<_>>(), [CallState::Lost, CallState::Refused]);
    }

    #[test]
    fn a_decision_holds_for_its_conversation_or_for_all_and_for_no_other_digest() {
        let mut fixture = Fixture::new();
        let store = &mut fixture.store;
        let here = store.create_conversation("here").unwrap().id;
        let of = |store: &Store, digest: &str, conversation| {
            store.approval(Some("files"), digest, conversation).unwrap()
        };
        store.set_approval(Some("files"), "d1", None, Some("never")).unwrap();
        store.set_approval(Some("files"), "d1", Some(here), Some("always")).unwrap();
        assert_eq!(of(store, "d1", Some(here)).as_deref(), Some("always"));
        assert_eq!((of(store, "d1", None).as_deref(), of(store, "d2", Some(here))), (Some("never"), None));
        assert_eq!(store.approval(None, "d1", None).unwrap(), None);
        store.set_approval(Some("files"), "d1", None, None).unwrap();
        assert_eq!(of(store, "d1", None), None);
    }
}
