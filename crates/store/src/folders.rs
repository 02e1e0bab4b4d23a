//! Folders of conversations: create, rename, delete with undo. A conversation is in one folder or
//! in none.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::conversations::missing as missing_conversation;
use crate::{Conversation, Error, Result, Store};

/// Longest name of a folder, in characters.
pub const LONGEST_FOLDER_NAME: usize = 100;

/// Most folders: more cannot be found in a menu.
const MOST_FOLDERS: usize = 500;

/// A folder of conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    pub id: i64,
    pub name: String,
}

impl Folder {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { id: row.get(0)?, name: row.get(1)? })
    }
}

/// Names are unique among the folders that are not deleted, without regard to case. Methods that
/// take a name return [`Error::FolderName`] if it is empty, too long or taken; those that take an
/// id return [`Error::NotFound`] if the folder does not exist or is deleted.
impl Store {
    /// Returns all folders, in the order they were created.
    pub fn folders(&self) -> Result<Vec<Folder>> {
        folders(&self.connection)
    }

    pub fn create_folder(&mut self, name: &str) -> Result<Folder> {
        let transaction = self.writing()?;
        let folder = create(&transaction, name)?;
        transaction.commit()?;
        Ok(folder)
    }

    pub fn rename_folder(&mut self, id: i64, name: &str) -> Result<Folder> {
        let transaction = self.writing()?;
        check_name(&transaction, Some(id), name)?;
        transaction.execute(
            "UPDATE folders SET name = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            params![id, name],
        )?;
        let renamed = folder(&transaction, id)?;
        transaction.commit()?;
        Ok(renamed)
    }

    /// Hides a folder, so that its conversations are in none. [`Store::restore_folder`] undoes this
    /// for a day of the store's own clock.
    pub fn delete_folder(&self, id: i64) -> Result<()> {
        let deleted = self.connection.execute(
            "UPDATE folders SET deleted_at = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            params![id, self.age()?],
        )?;
        if deleted == 0 { Err(missing(id)) } else { Ok(()) }
    }

    /// Restores a deleted folder with those of its conversations that were not moved since. If its
    /// name was taken meanwhile, it gets a number.
    pub fn restore_folder(&mut self, id: i64) -> Result<Folder> {
        let transaction = self.writing()?;
        let sql = "SELECT name FROM folders WHERE id = ?1 AND deleted_at IS NOT NULL";
        let name: Option<String> = transaction.query_row(sql, [id], |row| row.get(0)).optional()?;
        if let Some(name) = name {
            let name = free_name(&transaction, &name)?;
            transaction.execute(
                "UPDATE folders SET deleted_at = NULL, name = ?2 WHERE id = ?1",
                params![id, name],
            )?;
        }
        let restored = folder(&transaction, id)?;
        transaction.commit()?;
        Ok(restored)
    }

    /// Moves a conversation into a folder, or out of its folder for `None`.
    pub fn move_conversation(&mut self, id: i64, folder: Option<i64>) -> Result<Conversation> {
        let transaction = self.writing()?;
        if let Some(folder) = folder {
            self::folder(&transaction, folder)?;
        }
        let moved = transaction.execute(
            "UPDATE conversations SET folder = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            params![id, folder],
        )?;
        if moved == 0 {
            return Err(missing_conversation(id));
        }
        transaction.commit()?;
        self.conversation(id)
    }
}

/// Puts a conversation into the folder of this name, which is created if necessary. Nothing changes
/// without room for another folder, or with a name that no folder can have.
pub(crate) fn file_under(connection: &Connection, conversation: i64, name: &str) -> Result<()> {
    let known = folders(connection)?.into_iter().find(|folder| same(&folder.name, name));
    let folder = match known.map_or_else(|| create(connection, name), Ok) {
        Err(Error::FolderName) => return Ok(()),
        folder => folder?,
    };
    let sql = "UPDATE conversations SET folder = ?2 WHERE id = ?1";
    connection.execute(sql, params![conversation, folder.id])?;
    Ok(())
}

/// Name of a conversation's folder; `None` in no folder.
pub(crate) fn name_of(connection: &Connection, conversation: i64) -> Result<Option<String>> {
    let sql = "SELECT name FROM folders JOIN conversations ON conversations.folder = folders.id
               WHERE conversations.id = ?1 AND folders.deleted_at IS NULL";
    Ok(connection.prepare_cached(sql)?.query_row([conversation], |row| row.get(0)).optional()?)
}

fn create(connection: &Connection, name: &str) -> Result<Folder> {
    check_name(connection, None, name)?;
    connection.execute("INSERT INTO folders (name) VALUES (?1)", [name])?;
    Ok(Folder { id: connection.last_insert_rowid(), name: name.to_owned() })
}

fn folders(connection: &Connection) -> Result<Vec<Folder>> {
    let mut statement =
        connection.prepare_cached("SELECT id, name FROM folders WHERE deleted_at IS NULL ORDER BY id")?;
    Ok(statement.query_map([], Folder::read)?.collect::<rusqlite::Result<_>>()?)
}

fn folder(connection: &Connection, id: i64) -> Result<Folder> {
    let sql = "SELECT id, name FROM folders WHERE id = ?1 AND deleted_at IS NULL";
    connection.query_row(sql, [id], Folder::read).optional()?.ok_or(missing(id))
}

/// # Errors
/// Returns [`Error::FolderName`] for a name that the folder `id`, or a new one, cannot have.
fn check_name(connection: &Connection, id: Option<i64>, name: &str) -> Result<()> {
    let others = folders(connection)?;
    let others: Vec<_> = others.iter().filter(|folder| Some(folder.id) != id).collect();
    let is_taken = others.iter().any(|folder| same(&folder.name, name));
    let is_long = name.chars().count() > LONGEST_FOLDER_NAME;
    if name.trim().is_empty() || is_long || is_taken || others.len() >= MOST_FOLDERS {
        return Err(Error::FolderName);
    }
    Ok(())
}

/// Returns whether two names differ at most in case.
fn same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Returns `name`, with the first number that makes it unlike all other folders' names.
fn free_name(connection: &Connection, name: &str) -> Result<String> {
    let others = folders(connection)?;
    let numbered = (2..).map(|number| {
        let end = format!(" ({number})");
        let begin: String = name.chars().take(LONGEST_FOLDER_NAME - end.len()).collect();
        begin + &end
    });
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let free = names.find(|name| !others.iter().any(|folder| same(&folder.name, name)));
    Ok(free.unwrap_or_default())
}

fn missing(id: i64) -> Error {
    Error::NotFound { what: "folder", id }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewQuestion;
    use crate::store::tests::Fixture;

    fn names(store: &Store) -> Vec<String> {
        store.folders().unwrap().into_iter().map(|folder| folder.name).collect()
    }

    #[test]
    fn a_conversation_is_moved_into_a_folder_and_out_of_it_and_stays_over_a_restart() {
        let mut fixture = Fixture::new();
        let id = fixture.store.create_conversation("c").unwrap().id;
        let work = fixture.store.create_folder("Work").unwrap();
        let before = fixture.store.conversation(id).unwrap();
        let moved = fixture.store.move_conversation(id, Some(work.id)).unwrap();
        assert_eq!(moved, Conversation { folder: Some(work.id), ..before.clone() });
        let mut fixture = fixture.reopen(0);
        assert_eq!(fixture.store.conversations().unwrap(), [moved]);
        assert_eq!(fixture.store.move_conversation(id, None).unwrap(), before);
        for (conversation, folder) in [(99, None), (id, Some(99))] {
            let refused = fixture.store.move_conversation(conversation, folder);
            assert!(matches!(refused, Err(Error::NotFound { id: 99, .. })));
        }
    }

    #[test]
    fn names_are_unique_without_regard_to_case_and_neither_empty_nor_too_long() {
        let mut fixture = Fixture::new();
        let first = fixture.store.create_folder("Größe").unwrap().id;
        let second = fixture.store.create_folder("Work").unwrap().id;
        let long = "ü".repeat(LONGEST_FOLDER_NAME + 1);
        for name in ["", " \t", "GRÖßE", "work", long.as_str()] {
            assert!(matches!(fixture.store.create_folder(name), Err(Error::FolderName)), "{name}");
        }
        assert!(matches!(fixture.store.rename_folder(first, "WORK"), Err(Error::FolderName)));
        assert_eq!(fixture.store.rename_folder(second, "WORK").unwrap().name, "WORK");
        assert!(matches!(fixture.store.rename_folder(99, "x"), Err(Error::NotFound { .. })));
        let hostile = "'; DROP TABLE folders; --\u{0}\u{202e}";
        fixture.store.create_folder(hostile).unwrap();
        assert_eq!(names(&fixture.store), ["Größe", "WORK", hostile]);
    }

    #[test]
    fn there_is_a_limit_to_the_number_of_folders() {
        let mut fixture = Fixture::new();
        let id = fixture.store.create_conversation("c").unwrap().id;
        for number in 0..MOST_FOLDERS {
            fixture.store.create_folder(&number.to_string()).unwrap();
        }
        assert!(matches!(fixture.store.create_folder("more"), Err(Error::FolderName)));
        file_under(&fixture.store.connection, id, "more").unwrap();
        assert_eq!(fixture.store.conversation(id).unwrap().folder, None);
    }

    #[test]
    fn a_deleted_folder_leaves_its_conversations_and_is_restored_with_them() {
        let mut fixture = Fixture::new();
        let [kept, moved] = ["a", "b"].map(|title| fixture.store.create_conversation(title).unwrap().id);
        let [work, other] = ["Work", "Other"].map(|name| fixture.store.create_folder(name).unwrap().id);
        for id in [kept, moved] {
            fixture.store.move_conversation(id, Some(work)).unwrap();
        }
        fixture.store.delete_folder(work).unwrap();
        let folder_of = |store: &Store, id| store.conversation(id).unwrap().folder;
        assert_eq!([kept, moved].map(|id| folder_of(&fixture.store, id)), [None, None]);
        assert!(matches!(fixture.store.delete_folder(work), Err(Error::NotFound { .. })));
        fixture.store.move_conversation(moved, Some(other)).unwrap();
        fixture.store.create_folder("work").unwrap();

        let mut fixture = fixture.reopen(23 * 60 * 60 * 1000);
        assert_eq!(fixture.store.restore_folder(work).unwrap().name, "Work (2)");
        assert_eq!([kept, moved].map(|id| folder_of(&fixture.store, id)), [Some(work), Some(other)]);
        assert_eq!(fixture.store.restore_folder(work).unwrap().name, "Work (2)", "nothing to restore");
    }

    #[test]
    fn a_folder_deleted_for_more_than_a_day_is_purged_and_its_conversations_stay() {
        let mut fixture = Fixture::new();
        let id = fixture.store.create_conversation("c").unwrap().id;
        let work = fixture.store.create_folder("Work").unwrap().id;
        fixture.store.move_conversation(id, Some(work)).unwrap();
        fixture.store.delete_folder(work).unwrap();
        let mut fixture = fixture.reopen_for_a_day();
        assert!(matches!(fixture.store.restore_folder(work), Err(Error::NotFound { .. })));
        assert_eq!(fixture.store.conversation(id).unwrap().folder, None);
        assert!(fixture.store.create_folder("Work").unwrap().id > work, "ids are never reused");
    }

    #[test]
    fn a_deleted_conversation_returns_to_its_folder() {
        let mut fixture = Fixture::new();
        let id = fixture.store.create_conversation("c").unwrap().id;
        let work = fixture.store.create_folder("Work").unwrap().id;
        fixture.store.move_conversation(id, Some(work)).unwrap();
        fixture.store.delete_conversation(id).unwrap();
        assert!(matches!(fixture.store.move_conversation(id, None), Err(Error::NotFound { .. })));
        assert_eq!(fixture.store.restore_conversation(id).unwrap().folder, Some(work));
    }

    #[test]
    fn a_conversation_begins_in_a_folder_unless_that_is_gone() {
        let mut fixture = Fixture::new();
        let work = fixture.store.create_folder("Work").unwrap().id;
        let mut ask = |folder| {
            let asked = NewQuestion { folder, ..NewQuestion::from("Why?") };
            let (question, _) = fixture.store.ask(None, asked, "Starter", None).unwrap();
            fixture.store.conversation(question.conversation).unwrap().folder
        };
        assert_eq!((ask(Some(work)), ask(None), ask(Some(99))), (Some(work), None, None));
        fixture.store.delete_folder(work).unwrap();
        let asked = NewQuestion { folder: Some(work), ..NewQuestion::from("Why?") };
        fixture.store.ask(None, asked, "Starter", None).unwrap();
        assert_eq!(fixture.store.restore_folder(work).unwrap().id, work);
    }
}
