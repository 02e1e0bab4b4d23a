//! The settings' defaults, their limits, and where they are kept.

use std::collections::BTreeMap;
use std::path::Path;

use foretoken_engine::device::DeviceChoice;
use foretoken_engine::sampling::Sampling;
use foretoken_engine::speculation::Speculation;
use foretoken_library::{Library, SMOLLM2};
use foretoken_store::Store;
use serde_json::{Map, Value};

use crate::error::{Result, bad_setting};
use crate::ipc::{Appearance, Settings, TEXT_SIZE, Theme};

impl Default for Settings {
    fn default() -> Self {
        Self {
            target: SMOLLM2.to_owned(),
            drafts: BTreeMap::new(),
            device: DeviceChoice::Auto,
            draft_device: DeviceChoice::Auto,
            speculation: Speculation::default(),
            learn_from_earlier: false,
            sampling: Sampling::default(),
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
    /// The stored settings. Who chose no target has the one that `library` has for that. What cannot be read
    /// any more falls back to the defaults; it is kept in the store until the settings are saved again.
    pub fn load(store: &Store, library: &Library) -> Result<Self> {
        let json = store.settings()?.unwrap_or_else(|| "{}".to_owned());
        let target = library.default_target();
        Ok(Self::over_defaults(&json, target).unwrap_or_else(|error| {
            tracing::warn!(%error, "the stored settings cannot be read; using the defaults");
            Self { target: target.to_owned(), ..Self::default() }
        }))
    }

    fn over_defaults(json: &str, default_target: &str) -> serde_json::Result<Self> {
        let mut stored: Map<String, Value> = serde_json::from_str(json)?;
        let target = stored.entry("target").or_insert_with(|| default_target.into()).clone();
        // Once there was one draft for all targets.
        if let (Some(draft), Value::String(target)) = (stored.remove("draft"), target) {
            stored.entry("drafts").or_insert_with(|| Map::from_iter([(target, draft)]).into());
        }
        serde_json::from_value(stored.into())
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
        if !TEXT_SIZE.contains(&self.appearance.text_size) {
            return Err(bad_setting("text size", "80 to 160 percent", self.appearance.text_size));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use foretoken_engine::speculation::{DraftLength, Threshold, Tree};
    use foretoken_library::Folders;

    use super::*;
    use crate::ipc::ErrorCode;

    /// A library with a made-up SmolLM2.
    fn library(folder: &Path) -> Library {
        let resources = folder.join("resources");
        std::fs::create_dir_all(resources.join("smollm2")).unwrap();
        std::fs::write(resources.join("smollm2/SmolLM2-135M-Instruct-Q4_1.gguf"), "made up").unwrap();
        Library::new(&Folders::at(folder), Some(&resources))
    }

    #[test]
    fn settings_survive_the_store_and_unknown_ones_fall_back() {
        let folder = tempfile::tempdir().unwrap();
        let library = library(folder.path());
        let store = Store::open(&folder.path().join("foretoken.db")).unwrap();
        let load = || Settings::load(&store, &library).unwrap();
        assert_eq!(load(), Settings::default());
        let changed = Settings {
            speculation: Speculation::fixed(7),
            system_prompt: "Be brief.".into(),
            drafts: [(SMOLLM2.to_owned(), "ngram".to_owned())].into(),
            device: DeviceChoice::Cuda,
            draft_device: DeviceChoice::Cpu,
            ..Settings::default()
        };
        changed.save(&store).unwrap();
        assert_eq!(load(), changed);
        store.save_settings(r#"{"max_tokens": 3, "from_the_future": true}"#).unwrap();
        assert_eq!(load(), Settings { max_tokens: 3, ..Settings::default() });
        for unreadable in [r#"{"device": "abacus"}"#, r#"{"max_tokens": "many"}"#, r#"{"target": 7}"#, "[]"] {
            store.save_settings(unreadable).unwrap();
            assert_eq!(load(), Settings::default(), "{unreadable}");
        }
    }

    #[test]
    fn the_first_launch_is_with_smollm2_and_what_was_saved_stays() {
        let folder = tempfile::tempdir().unwrap();
        let library = library(folder.path());
        let store = Store::open(&folder.path().join("foretoken.db")).unwrap();
        let load = || Settings::load(&store, &library).unwrap();
        let chosen = |target: &str, drafts: &[(&str, &str)]| Settings {
            target: target.to_owned(),
            drafts: drafts.iter().map(|(target, draft)| (target.to_string(), draft.to_string())).collect(),
            ..Settings::default()
        };
        assert_eq!(load(), chosen("smollm2", &[]));
        store.save_settings(r#"{"target": "starter"}"#).unwrap();
        assert_eq!(load(), chosen("starter", &[]));
        store.save_settings(r#"{"target": "starter", "draft": "none"}"#).unwrap();
        assert_eq!(
            load(),
            chosen("starter", &[("starter", "none")]),
            "from before drafts were a target's own"
        );
        store.save_settings(r#"{"draft": "none", "drafts": {"a": "b"}}"#).unwrap();
        assert_eq!(load(), chosen("smollm2", &[("a", "b")]));
        // Where there is no SmolLM2.
        assert_eq!(Settings::over_defaults("{}", "starter").unwrap(), chosen("starter", &[]));
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
        assert_eq!(message, "draft length: expected 1 to 16, auto or off, found 10000.");
        assert!(refused(|s| s.speculation.threshold = Threshold::Fixed(1.5)).contains("threshold"));
        assert!(refused(|s| s.speculation.threshold = Threshold::Fixed(f32::NAN)).contains("threshold"));
        assert!(refused(|s| s.speculation.tree = Tree::Width(0)).contains("tree width"));
        assert!(refused(|s| s.appearance.text_size = 500).contains("text size"));
        assert!(refused(|s| s.sampling.temperature = f32::NAN).contains("temperature"));
        assert!(refused(|s| s.sampling.top_p = 0.0).contains("top-p"));
        assert_eq!(Settings::default().validate(), Ok(()));
    }
}
