//! Results of arenas, one JSON document each.

use rusqlite::params;

use crate::{Error, Result, Store};

/// A stored arena.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arena {
    pub id: i64,
    /// Milliseconds since 1970.
    pub created_at: i64,
    pub json: String,
}

impl Store {
    /// Stores an arena; text that is not JSON is refused.
    pub fn add_arena(&self, json: &str) -> Result<Arena> {
        let created_at = self.now();
        self.connection
            .execute("INSERT INTO arenas (created_at, json) VALUES (?1, ?2)", params![created_at, json])?;
        Ok(Arena { id: self.connection.last_insert_rowid(), created_at, json: json.to_owned() })
    }

    /// Returns all arenas, newest first.
    pub fn arenas(&self) -> Result<Vec<Arena>> {
        let mut statement =
            self.connection.prepare_cached("SELECT id, created_at, json FROM arenas ORDER BY id DESC")?;
        let arenas = statement
            .query_map([], |row| Ok(Arena { id: row.get(0)?, created_at: row.get(1)?, json: row.get(2)? }))?;
        Ok(arenas.collect::<rusqlite::Result<_>>()?)
    }

    pub fn delete_arena(&self, id: i64) -> Result<()> {
        match self.connection.execute("DELETE FROM arenas WHERE id = ?1", [id])? {
            0 => Err(Error::NotFound { what: "arena", id }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Fixture;

    #[test]
    fn arenas_are_listed_newest_first_until_they_are_deleted() {
        let fixture = Fixture::new();
        let first = fixture.store.add_arena("[1]").unwrap();
        let second = fixture.store.add_arena("[2]").unwrap();
        assert_eq!(fixture.store.arenas().unwrap(), [second.clone(), first.clone()]);
        fixture.store.delete_arena(second.id).unwrap();
        assert_eq!(fixture.store.arenas().unwrap(), [first]);
        assert!(matches!(fixture.store.delete_arena(second.id), Err(Error::NotFound { what: "arena", .. })));
        fixture.store.add_arena("no JSON").unwrap_err();
    }
}
