//! View state of the window: one JSON document, replaced as a whole. The application defines its
//! content.

use rusqlite::OptionalExtension;

use crate::{Result, Store};

impl Store {
    /// Returns the stored document; `None` if none was ever saved.
    pub fn view_state(&self) -> Result<Option<String>> {
        Ok(self.connection.query_row("SELECT json FROM view_state", [], |row| row.get(0)).optional()?)
    }

    /// Replaces the document; text that is not JSON is refused.
    pub fn save_view_state(&self, json: &str) -> Result<()> {
        self.connection.execute("REPLACE INTO view_state (id, json) VALUES (1, ?1)", [json])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::store::tests::Fixture;

    #[test]
    fn the_view_state_is_replaced_as_a_whole_and_survives_a_restart() {
        let fixture = Fixture::new();
        assert_eq!(fixture.store.view_state().unwrap(), None);
        fixture.store.save_view_state(r#"{"wraps_code":true}"#).unwrap();
        fixture.store.save_view_state(r#"{"reply_view":"text"}"#).unwrap();
        fixture.store.save_view_state("{").unwrap_err();
        assert_eq!(fixture.reopen(0).store.view_state().unwrap().unwrap(), r#"{"reply_view":"text"}"#);
    }
}
