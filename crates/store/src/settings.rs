//! The settings: one JSON document, replaced as a whole. The application defines its content.

use rusqlite::OptionalExtension;

use crate::{Result, Store};

const REPLACE: &str = "REPLACE INTO settings (id, json) VALUES (1, ?1)";

impl Store {
    /// Returns the stored document; `None` if none was ever saved.
    pub fn settings(&self) -> Result<Option<String>> {
        Ok(self.connection.query_row("SELECT json FROM settings", [], |row| row.get(0)).optional()?)
    }

    /// Replaces the document; text that is not JSON is refused.
    pub fn save_settings(&self, json: &str) -> Result<()> {
        self.connection.execute(REPLACE, [json])?;
        Ok(())
    }

    /// Replaces the document like [`Store::save_settings`] and keeps the previous one: both or
    /// neither.
    pub fn save_settings_and_keep_the_old(&mut self, json: &str) -> Result<()> {
        let transaction = self.writing()?;
        transaction.execute("REPLACE INTO settings_before (id, json) SELECT id, json FROM settings", [])?;
        transaction.execute(REPLACE, [json])?;
        Ok(transaction.commit()?)
    }

    /// Returns the document kept by the last [`Store::save_settings_and_keep_the_old`].
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
    fn settings_that_are_not_json_are_refused_and_the_old_ones_stay() {
        let fixture = Fixture::new();
        fixture.store.save_settings("{}").unwrap();
        fixture.store.save_settings("{").unwrap_err();
        assert_eq!(fixture.store.settings().unwrap().unwrap(), "{}");
    }

    #[test]
    fn replaced_settings_can_be_kept_if_the_new_ones_are_stored() {
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
