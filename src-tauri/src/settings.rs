//! The settings' defaults, their limits, and where they are kept.

use std::collections::BTreeMap;
use std::path::Path;

use foretoken_engine::device::DeviceChoice;
use foretoken_engine::speculation::Speculation;
use foretoken_library::STARTER;
use foretoken_store::Store;

use crate::error::{Result, bad_setting};
use crate::ipc::{Appearance, Settings, Theme};

impl Default for Settings {
    fn default() -> Self {
        Self {
            target: STARTER.to_owned(),
            drafts: BTreeMap::new(),
            device: DeviceChoice::Auto,
            draft_device: DeviceChoice::Auto,
            speculation: Speculation::default(),
            learn_from_earlier: false,
            sampling: Default::default(),
            max_tokens: 0,
            system_prompt: String::new(),
            appearance: Appearance::default(),
            keep_traces: true,
            added_models: Vec::new(),
        }
    }
}

impl Default for Appearance {
    fn default() -> Self {
        Self {
            theme: Theme::System,
            reduced_motion: false,
            text_size: 100,
            sidebar_open: true,
            inspector_open: true,
        }
    }
}

impl Settings {
    /// The stored settings. What cannot be read any more falls back to the defaults; it is kept in
    /// the store until the settings are saved again.
    pub fn load(store: &Store) -> Result<Self> {
        let Some(json) = store.settings()? else { return Ok(Self::default()) };
        Ok(serde_json::from_str(&json).unwrap_or_else(|error| {
            tracing::warn!(%error, "the stored settings cannot be read; using the defaults");
            Self::default()
        }))
    }

    pub fn save(&self, store: &Store) -> Result<()> {
        Ok(store.save_settings(&serde_json::to_string(self)?)?)
    }

    /// Forgets what drafted for models that are gone, and models that are gone as drafts. One whose folder is not
    /// there either may be on a disk that is back the next time.
    pub fn forget_gone_models(&mut self) {
        let gone = |id: &str| {
            let path = Path::new(id);
            path.is_absolute() && !path.exists() && path.parent().is_some_and(Path::exists)
        };
        self.drafts.retain(|target, draft| !gone(target) && !gone(draft));
    }

    /// # Errors
    /// `BadSetting` naming the first value out of its range.
    pub fn validate(&self) -> Result<()> {
        self.sampling.validate()?;
        self.speculation.validate()?;
        if !(80..=160).contains(&self.appearance.text_size) {
            return Err(bad_setting("text size", "80 to 160 percent", self.appearance.text_size));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use foretoken_engine::speculation::{DraftLength, Threshold, Tree};

    use super::*;
    use crate::ipc::ErrorCode;

    #[test]
    fn settings_survive_the_store_and_unknown_ones_fall_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("foretoken.db")).unwrap();
        assert_eq!(Settings::load(&store).unwrap(), Settings::default());
        let changed = Settings {
            speculation: Speculation::fixed(7),
            system_prompt: "Be brief.".into(),
            drafts: [(STARTER.to_owned(), "ngram".to_owned())].into(),
            device: DeviceChoice::Cuda,
            draft_device: DeviceChoice::Cpu,
            ..Settings::default()
        };
        changed.save(&store).unwrap();
        assert_eq!(Settings::load(&store).unwrap(), changed);
        store.save_settings(r#"{"max_tokens": 3, "from_the_future": true}"#).unwrap();
        assert_eq!(Settings::load(&store).unwrap(), Settings { max_tokens: 3, ..Settings::default() });
        store.save_settings(r#"{"device": "abacus"}"#).unwrap();
        assert_eq!(Settings::load(&store).unwrap(), Settings::default());
        store.save_settings(r#"{"max_tokens": "many"}"#).unwrap();
        assert_eq!(Settings::load(&store).unwrap(), Settings::default());
    }

    #[test]
    fn models_that_are_gone_are_forgotten_and_those_on_a_disk_that_is_away_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let [here, gone] = ["here.gguf", "gone.gguf"].map(|name| folder.path().join(name));
        std::fs::write(&here, "").unwrap();
        let away = folder.path().join("disk/away.gguf");
        let [here, gone, away] = [here, gone, away].map(|path| path.display().to_string());
        let chosen = [("starter", &here), ("smaller", &gone), (&gone, &here), (&here, &away), (&away, &here)];
        let drafts = chosen.map(|(target, draft)| (target.to_owned(), draft.clone())).into();
        let mut settings = Settings { drafts, ..Settings::default() };
        settings.forget_gone_models();
        let kept = [("starter", &here), (&here, &away), (&away, &here)];
        assert_eq!(settings.drafts, kept.map(|(target, draft)| (target.to_owned(), draft.clone())).into());
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        let refused = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            let error = settings.validate().unwrap_err();
            assert_eq!(error.code, ErrorCode::BadSetting);
            error.message
        };
        let message = refused(|s| s.speculation.length = DraftLength::Fixed(10_000));
        assert_eq!(message, "draft length: expected 0 to 16, or auto, found 10000.");
        assert!(refused(|s| s.speculation.threshold = Threshold::Fixed(1.5)).contains("threshold"));
        assert!(refused(|s| s.speculation.threshold = Threshold::Fixed(f32::NAN)).contains("threshold"));
        assert!(refused(|s| s.speculation.tree = Tree::Width(0)).contains("tree width"));
        assert!(refused(|s| s.appearance.text_size = 500).contains("text size"));
        assert!(refused(|s| s.sampling.temperature = f32::NAN).contains("temperature"));
        assert!(refused(|s| s.sampling.top_p = 0.0).contains("top-p"));
        assert_eq!(Settings::default().validate(), Ok(()));
    }
}
