//! Messages that were written but not sent: a text and files per conversation, a text and files for
//! a new conversation, and edits of stored questions.

use rusqlite::params;

use crate::{Attached, Result, Store};

/// A stored question as a person changed it, before it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsentEdit {
    /// The question's id.
    pub message: i64,
    pub text: String,
    /// Ids of the attachments to keep, as a JSON array.
    pub kept: String,
}

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

    /// Returns the unsent files of a conversation with their ids, in the order they were added.
    pub fn unsent_files(&self, conversation: Option<i64>) -> Result<Vec<(i64, Attached)>> {
        let mut statement = self
            .connection
            .prepare("SELECT name, kind, text, id FROM unsent_files WHERE conversation IS ?1 ORDER BY id")?;
        let rows = statement.query_map([conversation], |row| Ok((row.get(3)?, Attached::read(row)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Adds an unsent file to a conversation and returns its id. Fails if the conversation does not
    /// exist.
    pub fn add_unsent_file(&self, conversation: Option<i64>, file: &Attached) -> Result<i64> {
        let insert = "INSERT INTO unsent_files (conversation, name, kind, text) VALUES (?1, ?2, ?3, ?4)";
        self.connection.execute(insert, params![conversation, file.name, file.kind, file.text])?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Removes unsent files; missing ones are ignored.
    pub fn remove_unsent_files(&mut self, ids: &[i64]) -> Result<()> {
        let transaction = self.writing()?;
        for id in ids {
            transaction.execute("DELETE FROM unsent_files WHERE id = ?1", [id])?;
        }
        Ok(transaction.commit()?)
    }

    /// Returns every unsent edit of a question.
    pub fn unsent_edits(&self) -> Result<Vec<UnsentEdit>> {
        let mut statement = self.connection.prepare("SELECT message, text, kept FROM unsent_edits")?;
        let rows = statement.query_map([], |row| {
            Ok(UnsentEdit { message: row.get(0)?, text: row.get(1)?, kept: row.get(2)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Replaces the unsent edit of a question. Fails if the question does not exist.
    pub fn save_unsent_edit(&self, edit: &UnsentEdit) -> Result<()> {
        let insert = "INSERT OR REPLACE INTO unsent_edits (message, text, kept) VALUES (?1, ?2, ?3)";
        self.connection.execute(insert, params![edit.message, edit.text, edit.kept])?;
        Ok(())
    }

    /// Removes the unsent edit of a question, if there is one.
    pub fn remove_unsent_edit(&self, message: i64) -> Result<()> {
        self.connection.execute("DELETE FROM unsent_edits WHERE message = ?1", [message])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AttachmentKind;
    use crate::store::tests::Fixture;

    fn file(name: &str) -> Attached {
        Attached { name: name.to_owned(), kind: AttachmentKind::Pdf, text: format!("{name}'s text") }
    }

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

    #[test]
    fn unsent_files_belong_to_one_conversation_and_survive_a_restart_in_order() {
        let mut fixture = Fixture::new();
        let id = fixture.store.create_conversation("c").unwrap().id;
        let store = &mut fixture.store;
        let add = |conversation, name| store.add_unsent_file(conversation, &file(name)).unwrap();
        let (first, removed, last) = (add(Some(id), "z"), add(Some(id), "b"), add(Some(id), "a"));
        let new = add(None, "n");
        store.remove_unsent_files(&[removed, 99]).unwrap();
        let fixture = fixture.reopen(0);
        assert_eq!(fixture.store.unsent_files(Some(id)).unwrap(), [(first, file("z")), (last, file("a"))]);
        assert_eq!(fixture.store.unsent_files(None).unwrap(), [(new, file("n"))]);
    }

    #[test]
    fn unsent_files_are_purged_with_their_conversation() {
        let fixture = Fixture::new();
        let id = fixture.store.create_conversation("c").unwrap().id;
        fixture.store.add_unsent_file(Some(id), &file("a")).unwrap();
        fixture.store.delete_conversation(id).unwrap();
        assert_eq!(fixture.store.unsent_files(Some(id)).unwrap().len(), 1, "still restorable");
        let fixture = fixture.reopen_for_a_day();
        assert_eq!(fixture.store.unsent_files(Some(id)).unwrap(), []);
        fixture.store.add_unsent_file(Some(id), &file("late")).unwrap_err();
    }

    #[test]
    fn an_edit_is_kept_until_it_is_replaced_or_removed_or_its_question_is_purged() {
        let mut fixture = Fixture::new();
        let ask = |fixture: &mut Fixture| fixture.store.ask(None, "Why?", "Starter", None).unwrap().0.id;
        let [kept, removed, purged] = [ask(&mut fixture), ask(&mut fixture), ask(&mut fixture)];
        let edit =
            |message, text: &str| UnsentEdit { message, text: text.to_owned(), kept: "[7]".to_owned() };
        for message in [kept, removed, purged] {
            fixture.store.save_unsent_edit(&edit(message, "Why n")).unwrap();
        }
        fixture.store.save_unsent_edit(&edit(kept, "Why not?")).unwrap();
        fixture.store.remove_unsent_edit(removed).unwrap();
        fixture.store.delete_message(purged).unwrap();
        let fixture = fixture.reopen_for_a_day();
        assert_eq!(fixture.store.unsent_edits().unwrap(), [edit(kept, "Why not?")]);
        fixture.store.save_unsent_edit(&edit(99, "late")).unwrap_err();
    }
}
