//! Attachments: files added to a question, as text; pictures as data URLs. A message lists its
//! attachments; their text is read only when someone opens one or a model needs it.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use crate::{Error, Result, Store};

/// Kind of file that the text was extracted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentKind {
    Text,
    Pdf,
    /// A picture, whose text is the file as a data URL.
    Picture,
}

impl FromSql for AttachmentKind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "text" => Ok(Self::Text),
            "pdf" => Ok(Self::Pdf),
            "picture" => Ok(Self::Picture),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

impl ToSql for AttachmentKind {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Text => "text",
            Self::Pdf => "pdf",
            Self::Picture => "picture",
        }
        .into())
    }
}

/// An attachment as its message lists it, without the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    pub id: i64,
    pub name: String,
    pub kind: AttachmentKind,
    /// Size of the text in bytes.
    pub bytes: i64,
}

/// An attachment with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    pub name: String,
    pub kind: AttachmentKind,
    pub text: String,
}

impl Attached {
    /// Reads name, kind and text from the first three columns.
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { name: row.get(0)?, kind: row.get(1)?, text: row.get(2)? })
    }
}

impl Store {
    /// Returns the attachment with this id.
    pub fn attachment(&self, id: i64) -> Result<Attached> {
        let mut statement =
            self.connection.prepare_cached("SELECT name, kind, text FROM attachments WHERE id = ?1")?;
        let found = statement.query_row([id], Attached::read).optional()?;
        found.ok_or(Error::NotFound { what: "attachment", id })
    }

    /// Returns the attachments of a message with their texts, in order.
    pub fn attached(&self, message: i64) -> Result<Vec<Attached>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT name, kind, text FROM attachments WHERE message = ?1 ORDER BY position",
        )?;
        Ok(statement.query_map([message], Attached::read)?.collect::<rusqlite::Result<_>>()?)
    }
}

/// Adds attachments to a message that has none.
pub(crate) fn add(connection: &Connection, message: i64, attached: &[Attached]) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO attachments (message, position, name, kind, text) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (position, Attached { name, kind, text }) in attached.iter().enumerate() {
        statement.execute(params![message, position as i64, name, kind, text])?;
    }
    Ok(())
}

/// Lists the attachments of a message without their texts, in order.
pub(crate) fn listed(connection: &Connection, message: i64) -> rusqlite::Result<Vec<Attachment>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, name, kind, octet_length(text) FROM attachments WHERE message = ?1 ORDER BY position",
    )?;
    let read = |row: &Row<'_>| {
        Ok(Attachment { id: row.get(0)?, name: row.get(1)?, kind: row.get(2)?, bytes: row.get(3)? })
    };
    statement.query_map([message], read)?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewQuestion;
    use crate::store::tests::Fixture;

    fn file(name: &str, kind: AttachmentKind, text: &str) -> Attached {
        Attached { name: name.to_owned(), kind, text: text.to_owned() }
    }

    fn files() -> [Attached; 2] {
        [file("a.txt", AttachmentKind::Text, "Füchse"), file("a.txt", AttachmentKind::Pdf, "a lantern\0")]
    }

    fn rows(fixture: &Fixture) -> i64 {
        let count = "SELECT count(*) FROM attachments";
        fixture.store.connection.query_row(count, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn attachments_come_back_in_order_and_belong_to_one_message() {
        let mut fixture = Fixture::new();
        let asked = NewQuestion { text: "Why?", attached: &files(), ..NewQuestion::from("") };
        let (question, reply) = fixture.store.ask(None, asked, "Starter", None).unwrap();
        let fixture = fixture.reopen(0);
        let store = &fixture.store;
        let listed = store.messages(question.conversation).unwrap();
        assert_eq!(listed[0], question);
        let facts: Vec<_> = listed[0].attachments.iter().map(|it| (&*it.name, it.kind, it.bytes)).collect();
        assert_eq!(facts, [("a.txt", AttachmentKind::Text, 7), ("a.txt", AttachmentKind::Pdf, 10)]);
        assert_eq!(listed[1].attachments, []);
        assert_eq!(store.attached(question.id).unwrap(), files());
        assert_eq!(store.attached(reply.id).unwrap(), []);
        assert_eq!(store.attachment(listed[0].attachments[1].id).unwrap(), files()[1]);
        assert!(matches!(store.attachment(99), Err(Error::NotFound { what: "attachment", id: 99 })));
    }

    #[test]
    fn a_question_without_text_names_its_conversation_after_the_first_attachment() {
        let mut fixture = Fixture::new();
        let asked = NewQuestion { text: "", attached: &files(), ..NewQuestion::from("") };
        let (question, _) = fixture.store.ask(None, asked, "Starter", None).unwrap();
        assert_eq!(fixture.store.conversation(question.conversation).unwrap().title, "a.txt");
    }

    #[test]
    fn a_question_whose_attachments_cannot_be_stored_is_not_stored() {
        let mut fixture = Fixture::new();
        let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON attachments WHEN new.kind = 'pdf'
                      BEGIN SELECT RAISE(ABORT, 'no'); END";
        fixture.store.connection.execute_batch(refuse).unwrap();
        let asked = NewQuestion { text: "Why?", attached: &files(), ..NewQuestion::from("") };
        fixture.store.ask(None, asked, "Starter", None).unwrap_err();
        assert!(fixture.store.conversations().unwrap().is_empty());
        assert_eq!(rows(&fixture), 0);
    }

    #[test]
    fn attachments_of_a_deleted_question_stay_until_it_is_purged() {
        let mut fixture = Fixture::new();
        let asked = NewQuestion { text: "Why?", attached: &files(), ..NewQuestion::from("") };
        let (question, _) = fixture.store.ask(None, asked, "Starter", None).unwrap();
        let (other, _) = fixture.store.ask_instead(question.id, "Why not?", "Starter", None).unwrap();
        assert_eq!(other.attachments, []);
        fixture.store.delete_message(question.id).unwrap();
        fixture.store.restore_message(question.id).unwrap();
        assert_eq!(fixture.store.message(question.id).unwrap().attachments, question.attachments);
        fixture.store.delete_message(question.id).unwrap();
        let fixture = fixture.reopen_for_a_day();
        assert_eq!(rows(&fixture), 0);
    }
}
