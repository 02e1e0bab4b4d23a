//! Messages: questions of a person and replies of a model. A reply begins empty, grows with its
//! rounds ([`Store::append_rounds`]) and ends once. Ids order a conversation, because clocks can go
//! back.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::conversations::{self, missing};
use crate::rounds;
use crate::{Attached, Attachment, Call, Error, Result, Store, attachments, branches, calls, title_from};

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
}

impl FromSql for Role {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "user" => Ok(Self::User),
            "assistant" => Ok(Self::Assistant),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

/// A message; the fields from `finish` to `problem` are `None` for a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: i64,
    pub conversation: i64,
    pub role: Role,
    pub text: String,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Reason why the reply ended; `None` while it is being written, and for good if it failed or
    /// the program was killed.
    pub finish: Option<String>,
    /// Statistics of the reply, as JSON.
    pub summary: Option<String>,
    /// Labels of the target and the draft that wrote the reply.
    pub target: Option<String>,
    pub draft: Option<String>,
    /// Reason why the reply failed.
    pub problem: Option<String>,
    /// Message before this one; `None` for the first of a conversation.
    pub parent: Option<i64>,
    /// Messages with the same parent, this one included, oldest first.
    pub siblings: Vec<i64>,
    /// First message in the model's context when it wrote the reply; `None` if it had all.
    pub seen_from: Option<i64>,
    /// Attachments of a question.
    pub attachments: Vec<Attachment>,
    /// Excerpts of documents that a question's prompt contains, as JSON.
    pub excerpts: Option<String>,
    /// Calls of a reply.
    pub calls: Vec<Call>,
}

/// A question with its attachments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewQuestion<'a> {
    pub text: &'a str,
    /// Attachments, with their texts.
    pub attached: &'a [Attached],
    /// Excerpts of documents for the prompt, as JSON; other text is refused.
    pub excerpts: Option<&'a str>,
    /// Folder of a new conversation; one that does not exist is ignored.
    pub folder: Option<i64>,
}

impl<'a> From<&'a str> for NewQuestion<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, attached: &[], excerpts: None, folder: None }
    }
}

impl NewQuestion<'_> {
    /// Title of a conversation that begins with this question.
    fn title(&self) -> String {
        match self.attached.first() {
            Some(file) if self.text.trim().is_empty() => title_from(&file.name),
            _ => title_from(self.text),
        }
    }
}

impl Message {
    const COLUMNS: &str = "id, conversation, role, text, created_at, finish, summary, target, draft, \
                                      problem, seen_from, parent, excerpts, (SELECT group_concat(sibling.id) \
                                      FROM messages AS sibling WHERE sibling.conversation = messages.conversation \
                                      AND sibling.parent IS messages.parent AND sibling.deleted_with IS NULL)";

    /// Reads a message without its attachments and calls, which have rows of their own.
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            conversation: row.get(1)?,
            role: row.get(2)?,
            text: row.get(3)?,
            created_at: row.get(4)?,
            finish: row.get(5)?,
            summary: row.get(6)?,
            target: row.get(7)?,
            draft: row.get(8)?,
            problem: row.get(9)?,
            seen_from: row.get(10)?,
            parent: row.get(11)?,
            excerpts: row.get(12)?,
            siblings: ids(row.get::<_, Option<String>>(13)?.as_deref()),
            attachments: Vec::new(),
            calls: Vec::new(),
        })
    }
}

/// Final state of a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ending<'a> {
    pub text: &'a str,
    /// Reason as one word; `None` for a reply that failed.
    pub finish: Option<&'a str>,
    /// Statistics as JSON; other text is refused.
    pub summary: Option<&'a str>,
    /// Reason why the reply failed.
    pub problem: Option<&'a str>,
}

impl Store {
    /// Stores a question and an empty reply by the models with these labels, at the end of the
    /// shown branch or in a new conversation named after the question. Either both are stored or
    /// neither.
    pub fn ask<'a>(
        &mut self,
        conversation: Option<i64>,
        asked: impl Into<NewQuestion<'a>>,
        target: &str,
        draft: Option<&str>,
    ) -> Result<(Message, Message)> {
        let (now, asked) = (self.now(), asked.into());
        let transaction = self.writing()?;
        let conversation = match conversation {
            Some(id) => id,
            None => {
                let id = conversations::insert(&transaction, &asked.title(), false, now)?;
                let live = "SELECT id FROM folders WHERE id = ?2 AND deleted_at IS NULL";
                let sql = format!("UPDATE conversations SET folder = ({live}) WHERE id = ?1");
                transaction.execute(&sql, params![id, asked.folder])?;
                id
            }
        };
        let parent = branches::leaf(&transaction, conversation)?;
        let both = add_both(&transaction, conversation, parent, asked, Models { target, draft }, now)?;
        transaction.commit()?;
        Ok(both)
    }

    /// Stores a question at the end of the shown branch.
    pub fn add_user_message(&mut self, conversation: i64, text: &str) -> Result<Message> {
        let now = self.now();
        let transaction = self.writing()?;
        let parent = branches::leaf(&transaction, conversation)?;
        let question = add_question(&transaction, conversation, parent, text.into(), now)?;
        transaction.commit()?;
        Ok(question)
    }

    /// Stores an empty reply by the models with these labels at the end of the shown branch.
    pub fn begin_reply(&mut self, conversation: i64, target: &str, draft: Option<&str>) -> Result<Message> {
        let now = self.now();
        let transaction = self.writing()?;
        let parent = branches::leaf(&transaction, conversation)?;
        let reply = add_reply(&transaction, conversation, parent, Models { target, draft }, now)?;
        transaction.commit()?;
        Ok(reply)
    }

    /// Ends a reply: its rounds are packed, and search finds it from now on. An empty reply is
    /// removed if something else can be shown: another reply to the same question, or the reply it
    /// continues. Returns the message that is shown then.
    pub fn finish_reply(&mut self, reply: i64, ending: Ending<'_>) -> Result<Message> {
        let transaction = self.writing()?;
        let finished = transaction.execute(
            "UPDATE messages SET text = ?2, finish = ?3, summary = ?4, problem = ?5, indexed = deleted_with IS NULL
             WHERE id = ?1 AND role = 'assistant'",
            params![reply, ending.text, ending.finish, ending.summary, ending.problem],
        )?;
        if finished == 0 {
            return Err(Error::NotFound { what: "reply", id: reply });
        }
        rounds::pack(&transaction, reply)?;
        let is_empty = ending.text.is_empty() && ending.problem.is_none();
        let instead = if is_empty { branches::remove_empty_reply(&transaction, reply)? } else { None };
        let message = find(&transaction, instead.unwrap_or(reply))?;
        transaction.commit()?;
        Ok(message)
    }

    pub fn message(&self, id: i64) -> Result<Message> {
        find(&self.connection, id)
    }

    /// Returns the texts of the newest messages of all conversations, newest first.
    pub fn latest_texts(&self, most: u32) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT text FROM messages JOIN conversations ON conversations.id = conversation
             WHERE conversations.deleted_at IS NULL AND deleted_with IS NULL AND text <> '' ORDER BY messages.id DESC LIMIT ?1",
        )?;
        Ok(statement.query_map([most], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the messages of the shown branch, oldest first.
    pub fn messages(&self, conversation: i64) -> Result<Vec<Message>> {
        match branches::leaf(&self.connection, conversation)? {
            Some(leaf) => self.messages_up_to(leaf),
            None => Ok(Vec::new()),
        }
    }

    /// Returns a message and its ancestors, oldest first.
    pub fn messages_up_to(&self, message: i64) -> Result<Vec<Message>> {
        let mut statement = self.connection.prepare_cached(&format!(
            "WITH RECURSIVE branch (id, parent) AS (
                 SELECT id, parent FROM messages WHERE id = ?1
                 UNION ALL
                 SELECT messages.id, messages.parent FROM branch JOIN messages ON messages.id = branch.parent
             )
             SELECT {} FROM messages WHERE id IN (SELECT id FROM branch) ORDER BY id",
            Message::COLUMNS
        ))?;
        let messages = statement.query_map([message], Message::read)?;
        let listed = messages.map(|message| with_parts(&self.connection, message?));
        Ok(listed.collect::<rusqlite::Result<_>>()?)
    }
}

/// Parses the ids that SQLite concatenated, sorted ascending.
fn ids(list: Option<&str>) -> Vec<i64> {
    let mut ids: Vec<i64> = list.unwrap_or_default().split(',').flat_map(str::parse).collect();
    ids.sort_unstable();
    ids
}

/// Labels of the models that write a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Models<'a> {
    pub target: &'a str,
    /// `None` if the reply is written without drafts.
    pub draft: Option<&'a str>,
}

/// Inserts a question below `parent`, and an empty reply to it.
pub(crate) fn add_both(
    connection: &Connection,
    conversation: i64,
    parent: Option<i64>,
    asked: NewQuestion<'_>,
    by: Models<'_>,
    now: i64,
) -> Result<(Message, Message)> {
    let question = add_question(connection, conversation, parent, asked, now)?;
    let reply = add_reply(connection, conversation, Some(question.id), by, now)?;
    Ok((question, reply))
}

fn add_question(
    connection: &Connection,
    conversation: i64,
    parent: Option<i64>,
    asked: NewQuestion<'_>,
    now: i64,
) -> Result<Message> {
    let question = add(
        connection,
        conversation,
        now,
        "INSERT INTO messages (conversation, created_at, parent, role, text, excerpts, indexed)
         VALUES (?1, ?2, ?3, 'user', ?4, ?5, 1)",
        &[&parent, &asked.text, &asked.excerpts],
    )?;
    attachments::add(connection, question.id, asked.attached)?;
    Ok(with_parts(connection, question)?)
}

/// Inserts an empty reply below `parent`.
pub(crate) fn add_reply(
    connection: &Connection,
    conversation: i64,
    parent: Option<i64>,
    Models { target, draft }: Models<'_>,
    now: i64,
) -> Result<Message> {
    add(
        connection,
        conversation,
        now,
        "INSERT INTO messages (conversation, created_at, parent, role, text, indexed, seen_from, target, draft)
         SELECT ?1, ?2, ?3, 'assistant', '', 0, seen_from, ?4, ?5 FROM conversations WHERE id = ?1",
        &[&parent, &target, &draft],
    )
}

/// Inserts a message with `sql`, which takes the conversation, the time and `values`, and shows the
/// branch that ends with it.
fn add(
    connection: &Connection,
    conversation: i64,
    now: i64,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<Message> {
    let touched = connection.execute(
        "UPDATE conversations SET updated_at = ?2 WHERE id = ?1 AND deleted_at IS NULL",
        params![conversation, now],
    )?;
    if touched == 0 {
        return Err(missing(conversation));
    }
    let values = [&[&conversation as &dyn rusqlite::ToSql, &now], values].concat();
    connection.execute(sql, values.as_slice())?;
    let id = connection.last_insert_rowid();
    branches::show(connection, conversation, Some(id))?;
    find(connection, id)
}

pub(crate) fn find(connection: &Connection, id: i64) -> Result<Message> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {} FROM messages WHERE id = ?1", Message::COLUMNS))?;
    let message = statement.query_row([id], Message::read).optional()?;
    let message = message.ok_or(Error::NotFound { what: "message", id })?;
    Ok(with_parts(connection, message)?)
}

/// Adds its attachments or its calls to a message.
fn with_parts(connection: &Connection, message: Message) -> rusqlite::Result<Message> {
    Ok(match message.role {
        Role::User => Message { attachments: attachments::listed(connection, message.id)?, ..message },
        Role::Assistant => Message { calls: calls::listed(connection, message.id)?, ..message },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Fixture;

    fn fixture() -> (Fixture, i64) {
        let fixture = Fixture::new();
        let conversation = fixture.store.create_conversation("c").unwrap().id;
        (fixture, conversation)
    }

    #[test]
    fn a_question_and_its_reply_are_read_as_they_were_stored() {
        let (mut fixture, conversation) = fixture();
        let question = fixture.store.add_user_message(conversation, "Why?\0 \u{1f98a}").unwrap();
        fixture.wait(5);
        let begun = fixture.store.begin_reply(conversation, "Starter", Some("Starter draft")).unwrap();
        assert_eq!((begun.text.as_str(), begun.role, begun.finish.clone()), ("", Role::Assistant, None));
        let ending = Ending {
            text: "Because.",
            finish: Some("stop"),
            summary: Some(r#"{"rounds":1}"#),
            problem: None,
        };
        let reply = fixture.store.finish_reply(begun.id, ending).unwrap();
        let expected = Message {
            text: "Because.".into(),
            finish: Some("stop".into()),
            summary: Some(r#"{"rounds":1}"#.into()),
            ..begun
        };
        assert_eq!(reply, expected);
        assert_eq!((question.created_at, reply.created_at), (1_000, 1_005));
        assert_eq!(
            (reply.target.as_deref(), reply.draft.as_deref()),
            (Some("Starter"), Some("Starter draft"))
        );

        let fixture = fixture.reopen(0);
        assert_eq!(fixture.store.messages(conversation).unwrap(), [question, reply]);
    }

    #[test]
    fn messages_keep_their_order_when_the_clock_goes_back() {
        let (mut fixture, conversation) = fixture();
        for text in ["first", "second", "third"] {
            fixture.wait(-10);
            fixture.store.add_user_message(conversation, text).unwrap();
        }
        let texts: Vec<_> =
            fixture.store.messages(conversation).unwrap().into_iter().map(|m| m.text).collect();
        assert_eq!(texts, ["first", "second", "third"]);
    }

    #[test]
    fn a_failed_reply_keeps_its_text_and_the_reason() {
        let (mut fixture, conversation) = fixture();
        let reply = fixture.store.begin_reply(conversation, "Starter", None).unwrap().id;
        let ending = Ending { text: "Once", problem: Some("the computation failed"), ..Ending::default() };
        fixture.store.finish_reply(reply, ending).unwrap();
        let reply = fixture.store.message(reply).unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.finish, reply.problem.as_deref(), reply.draft),
            ("Once", None, Some("the computation failed"), None)
        );
    }

    #[test]
    fn a_question_without_a_conversation_starts_one_named_after_it() {
        let mut fixture = Fixture::new();
        let (question, reply) = fixture.store.ask(None, "Why is that?", "Starter", None).unwrap();
        let conversation = fixture.store.conversation(question.conversation).unwrap();
        assert_eq!(conversation.title, "Why is that?");
        assert_eq!(fixture.store.messages(conversation.id).unwrap(), [question, reply]);
    }

    #[test]
    fn a_question_that_cannot_be_stored_completely_is_not_stored() {
        let mut fixture = Fixture::new();
        let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON messages WHEN new.role = 'assistant'
                      BEGIN SELECT RAISE(ABORT, 'no'); END";
        fixture.store.connection.execute_batch(refuse).unwrap();
        fixture.store.ask(None, "Why?", "Starter", None).unwrap_err();
        assert!(fixture.store.conversations().unwrap().is_empty());
        let messages: i64 = fixture
            .store
            .connection
            .query_row("SELECT count(*) FROM messages", [], |row| row.get(0))
            .unwrap();
        assert_eq!(messages, 0);
    }

    #[test]
    fn a_question_cannot_be_finished_or_extended_as_a_reply() {
        let (mut fixture, conversation) = fixture();
        let question = fixture.store.add_user_message(conversation, "Why?").unwrap();
        let not_found = |result: Result<()>| matches!(result, Err(Error::NotFound { what: "reply", .. }));
        assert!(not_found(fixture.store.begin_again(question.id, "Starter", None).map(drop)));
        assert!(not_found(fixture.store.finish_reply(question.id, Ending::default()).map(drop)));
        assert!(not_found(fixture.store.append_rounds(question.id, "x", &[(0, "{}")])));
        assert_eq!(fixture.store.messages(conversation).unwrap(), [question]);
    }

    #[test]
    fn a_summary_that_is_not_json_is_refused_and_the_reply_stays_open() {
        let (mut fixture, conversation) = fixture();
        let reply = fixture.store.begin_reply(conversation, "Starter", None).unwrap();
        let ending = Ending { text: "x", summary: Some("no"), ..Ending::default() };
        fixture.store.finish_reply(reply.id, ending).unwrap_err();
        assert_eq!(fixture.store.message(reply.id).unwrap(), reply);
    }
}
