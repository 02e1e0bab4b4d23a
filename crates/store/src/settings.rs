//! The settings: one JSON document, replaced as a whole. What is in it is the shell's business.

use rusqlite::OptionalExtension;

use crate::{Result, Store};

const REPLACE: &str = "REPLACE INTO settings (id, json) VALUES (1, ?1)";

impl Store {
    /// The stored document; `None` when nothing was ever saved.
    pub fn settings(&self) -> Result<Option<String>> {
        Ok(self.connection.query_row("SELECT json FROM settings", [], |row| row.get(0)).optional()?)
    }

    /// Replaces the document; text that is not JSON is refused.
    pub fn save_settings(&self, json: &str) -> Result<()> {
        self.connection.execute(REPLACE, [json])?;
        Ok(())
    }

    /// As [`Store::save_settings`], and keeps the document as it was: both or neither.
    pub fn save_settings_and_keep_the_old(&mut self, json: &str) -> Result<()> {
        let transaction = self.writing()?;
        transaction.execute("REPLACE INTO settings_before (id, json) SELECT id, json FROM settings", [])?;
        transaction.execute(REPLACE, [json])?;
        Ok(transaction.commit()?)
    }

    /// The document that was kept last.
    pub fn settings_before(&self) -> Result<Option<String>> {
        let kept = "SELECT json FROM settings_before";
        Ok(self.connection.query_row(kept, [], |row| row.get(0)).optional()?)
    }
}

#[cfg(test)]
mod tests {
    use crate::store::tests::Fixture;

    #[test]
    fn settings_are_replaced_as_a_whole_and_survive_a_restart() {
        let fixture = Fixture::new();
        assert_eq!(fixture.store.settings().unwrap(), None);
        fixture.store.save_settings(r#"{"draft":"ngram"}"#).unwrap();
        fixture.store.save_settings(r#"{"target":"starter"}"#).unwrap();
        assert_eq!(fixture.reopen(0).store.settings().unwrap().unwrap(), r#"{"target":"starter"}"#);
    }

    #[test]
    fn settings_that_are_no_json_are_refused_and_the_old_ones_stay() {
        let fixture = Fixture::new();
        fixture.store.save_settings("{}").unwrap();
        fixture.store.save_settings("{").unwrap_err();
        assert_eq!(fixture.store.settings().unwrap().unwrap(), "{}");
    }

    #[test]
    fn settings_that_are_replaced_can_be_kept_and_are_when_the_new_ones_are() {
        let mut fixture = Fixture::new();
        fixture.store.save_settings_and_keep_the_old("{}").unwrap();
        assert_eq!(fixture.store.settings_before().unwrap(), None, "there were none");
        fixture.store.save_settings_and_keep_the_old("{").unwrap_err();
        assert_eq!(fixture.store.settings_before().unwrap(), None);
        fixture.store.save_settings_and_keep_the_old("[]").unwrap();
        fixture.store.save_settings("[1]").unwrap();
        assert_eq!(fixture.store.settings_before().unwrap().as_deref(), Some("{}"));
    }
}
