//! Defaults, limits and storage of the settings; [`presets`]: named values for replies.

pub mod presets;

use std::collections::BTreeMap;
use std::path::Path;

use foretoken_engine::session::TextBudget;
use foretoken_engine::speculation::Speculation;
use foretoken_forward::device::DeviceChoice;
use foretoken_library::{Library, SMOLLM2};
use foretoken_model::KvDtype;
use foretoken_model::sampling::Sampling;
use foretoken_server::address::{DEFAULT_PORT, LOOPBACK};
use foretoken_store::Store;
use serde_json::{Map, Value, json};

use crate::error::{Result, bad_setting};
use crate::ipc::{
    Appearance, ContextOverflow, Language, MIN_CONTEXT, SendKey, ServerSettings, Settings, TEXT_SIZE, Theme,
    ToolMode,
};

/// Default length of the longest reply in tokens; longer replies can be continued.
const MAX_TOKENS: u32 = 2048;

/// Default disk space for contexts of conversations, in GB.
const CONTEXT_DISK_GB: u32 = 8;

/// Most characters of an unreadable value in a notice.
const MAX_QUOTED: usize = 60;

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
            thinking: None,
            max_tokens: MAX_TOKENS,
            stop: Vec::new(),
            word_bias: Vec::new(),
            context_overflow: ContextOverflow::default(),
            context_lengths: BTreeMap::new(),
            int8_kv_caches: Vec::new(),
            context_memory_mb: None,
            context_disk_gb: CONTEXT_DISK_GB,
            system_prompt: String::new(),
            presets: Vec::new(),
            hidden_presets: Vec::new(),
            model_presets: BTreeMap::new(),
            appearance: Appearance::default(),
            notifications: true,
            start_at_login: false,
            tray_icon: false,
            keep_in_tray: false,
            quick_shortcut: String::new(),
            check_for_updates: false,
            write_titles: true,
            keep_traces: true,
            added_models: Vec::new(),
            server: ServerSettings::default(),
            tools: ToolMode::Off,
            tool_servers: BTreeMap::new(),
            builtin_tools: Vec::new(),
            search_service: None,
            searxng_address: String::new(),
            embedding_model: String::new(),
            hub_address: String::new(),
            remote_servers: Vec::new(),
        }
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { enabled: false, host: LOOPBACK.to_owned(), port: DEFAULT_PORT, key: String::new() }
    }
}

impl Default for Appearance {
    fn default() -> Self {
        Self {
            theme: Theme::System,
            language: Language::System,
            reduced_motion: false,
            text_size: 100,
            wide_chat: false,
            send_key: SendKey::Enter,
            sidebar_open: true,
            inspector_open: true,
        }
    }
}

impl Settings {
    /// Settings of the first launch. SmolLM2 starts with its makers' sampling: with the general
    /// one, replies of such a small model drift off.
    pub fn first() -> Self {
        Self {
            model_presets: [(SMOLLM2.to_owned(), presets::RECOMMENDED.to_owned())].into(),
            ..Self::default()
        }
    }

    /// Loads the stored settings, and the names of unreadable ones, which have their defaults.
    /// Without a chosen target, the default of `library` is chosen.
    pub fn load(store: &Store, library: &Library) -> Result<(Self, Vec<String>)> {
        let defaults = Self { target: library.default_target().to_owned(), ..Self::default() };
        let Some(json) = store.settings()? else {
            return Ok((Self { target: defaults.target, ..Self::first() }, Vec::new()));
        };
        let Read { settings, unreadable, .. } = Read::of(&json, &defaults)?;
        if !unreadable.is_empty() {
            tracing::warn!("unreadable settings were reset to their defaults: {}", unreadable.join(", "));
        }
        Ok((settings, unreadable))
    }

    /// Stores the settings. Values of a newer version stay; a document with unreadable values is
    /// kept before it is replaced.
    pub fn save(&self, store: &mut Store) -> Result<()> {
        let Some(json) = store.settings()? else {
            return Ok(store.save_settings(&serde_json::to_string(self)?)?);
        };
        let Read { mut document, unreadable, .. } = Read::of(&json, &Self::default())?;
        lay_over(&mut document, serde_json::to_value(self)?, &serde_json::to_value(Self::default())?);
        let json = document.to_string();
        if unreadable.is_empty() {
            store.save_settings(&json)?;
        } else {
            store.save_settings_and_keep_the_old(&json)?;
        }
        Ok(())
    }

    /// Chosen context length of a target in tokens; `None` for the trained one.
    pub fn context_length(&self, target: &str) -> Option<usize> {
        self.context_lengths.get(target).map(|&length| length as usize)
    }

    /// Format of a target's KV cache on a CPU.
    pub fn kv_dtype(&self, target: &str) -> KvDtype {
        if self.int8_kv_caches.iter().any(|id| id == target) { KvDtype::Int8 } else { KvDtype::F16 }
    }

    /// Memory for contexts of other conversations.
    pub fn text_budget(&self) -> TextBudget {
        TextBudget::of_megabytes(self.context_memory_mb)
    }

    /// Removes models that no longer exist from drafts and presets. If the folder is missing too,
    /// the model may be on a disk that returns later.
    pub fn forget_gone_models(&mut self) {
        let gone = |id: &str| {
            let path = Path::new(id);
            path.is_absolute() && !path.exists() && path.parent().is_some_and(Path::exists)
        };
        self.drafts.retain(|target, draft| !gone(target) && !gone(draft));
        self.model_presets.retain(|target, _| !gone(target));
        self.context_lengths.retain(|target, _| !gone(target));
        self.int8_kv_caches.retain(|target| !gone(target));
    }

    /// # Errors
    /// Returns `BadSetting` naming the first value out of its range.
    pub fn validate(&self) -> Result<()> {
        self.values().validate()?;
        presets::validate(&self.presets)?;
        if !TEXT_SIZE.contains(&self.appearance.text_size) {
            return Err(bad_setting("text size", "80 to 160 percent", self.appearance.text_size));
        }
        if let Some(found) = self.context_lengths.values().find(|length| **length < MIN_CONTEXT) {
            return Err(bad_setting("context length", "at least 256 tokens", found));
        }
        if self.server.port == 0 {
            return Err(bad_setting("server port", "1 to 65535", self.server.port));
        }
        Ok(())
    }
}

/// Returns the notice about unreadable settings; `None` if all could be read.
pub(crate) fn notice(unreadable: &[String]) -> Option<String> {
    (!unreadable.is_empty()).then(|| {
        format!(
            "Some settings could not be read and were reset to their defaults: {}. Check them in the settings.",
            unreadable.join(", ")
        )
    })
}

/// A stored document with its readable settings.
struct Read {
    settings: Settings,
    /// The document in the current format, complete.
    document: Value,
    unreadable: Vec<String>,
}

impl Read {
    fn of(json: &str, defaults: &Settings) -> serde_json::Result<Self> {
        let settings = defaults.clone();
        let Ok(document @ Value::Object(_)) = serde_json::from_str(json) else {
            return Ok(Self { settings, document: json!({}), unreadable: vec!["all of them".to_owned()] });
        };
        let document = migrated(document, defaults);
        let mut overlay =
            Overlay { settings, whole: serde_json::to_value(defaults)?, unreadable: Vec::new() };
        overlay.take(&mut Vec::new(), &document);
        let Overlay { settings, unreadable, .. } = overlay;
        Ok(Self { settings, document, unreadable })
    }
}

/// Migrates penalties from before they could be automatic: "none" was the default rather than a
/// choice, and others covered the whole text.
fn migrate_penalties(sampling: Option<&mut Value>) {
    let Some(sampling) = sampling.and_then(Value::as_object_mut) else { return };
    let Some(penalty) = sampling.get("repetition_penalty").and_then(Value::as_f64) else { return };
    if !sampling.contains_key("automatic_penalties") {
        sampling.insert("automatic_penalties".to_owned(), (penalty == 1.0).into());
        sampling.insert("stop_loops".to_owned(), true.into());
        if penalty != 1.0 {
            sampling.insert("repeat_last_n".to_owned(), (-1).into());
        }
    }
}

/// Migrates a document: formerly there was one draft for all targets, and no automatic penalties.
fn migrated(mut document: Value, defaults: &Settings) -> Value {
    let target = document.get("target").and_then(Value::as_str).unwrap_or(&defaults.target).to_owned();
    if let Some(fields) = document.as_object_mut()
        && let Some(draft) = fields.remove("draft")
    {
        fields.entry("drafts").or_insert_with(|| Map::from_iter([(target, draft)]).into());
    }
    migrate_penalties(document.get_mut("sampling"));
    for preset in document.get_mut("presets").and_then(Value::as_array_mut).into_iter().flatten() {
        migrate_penalties(preset.pointer_mut("/values/sampling"));
    }
    document
}

/// Settings that a document's values are applied to one by one: each is accepted if the result can
/// be parsed.
struct Overlay {
    settings: Settings,
    /// The settings as a document.
    whole: Value,
    unreadable: Vec<String>,
}

impl Overlay {
    /// Applies the value at `path`: as a whole, or its parts one by one.
    fn take(&mut self, path: &mut Vec<String>, value: &Value) {
        let Some(before) = self.place(path).cloned() else { return };
        match value {
            Value::Object(fields) if is_group(&before) => {
                for (name, value) in fields {
                    path.push(name.clone());
                    self.take(path, value);
                    path.pop();
                }
            }
            _ if self.try_value(path, value.clone()) => (),
            Value::Object(entries) if before == json!({}) => {
                for (name, value) in entries {
                    let mut more = self.place(path).cloned().unwrap_or_default();
                    more[name] = value.clone();
                    if !self.try_value(path, more) {
                        self.unreadable.push(format!("{} {name}", words(path)));
                    }
                }
            }
            Value::Array(entries) if before.is_array() => {
                for value in entries {
                    let mut more = self.place(path).and_then(Value::as_array).cloned().unwrap_or_default();
                    more.push(value.clone());
                    if !self.try_value(path, more.into()) {
                        self.unreadable.push(format!("{} {}", words(path), beginning(value)));
                    }
                }
            }
            _ => self.unreadable.push(words(path)),
        }
    }

    /// Replaces the value at `path` and returns whether the settings can still be parsed; otherwise
    /// it stays.
    fn try_value(&mut self, path: &[String], value: Value) -> bool {
        let mut whole = self.whole.clone();
        let Some(place) = path.iter().try_fold(&mut whole, |place, name| place.get_mut(name)) else {
            return false;
        };
        *place = value;
        let read = serde_json::from_value::<Settings>(whole.clone());
        let Some(settings) = read.ok().filter(|settings| settings.validate().is_ok()) else { return false };
        (self.settings, self.whole) = (settings, whole);
        true
    }

    /// Returns the value at `path`; `None` if only a newer version has it.
    fn place(&self, path: &[String]) -> Option<&Value> {
        path.iter().try_fold(&self.whole, |place, name| place.get(name))
    }
}

/// Returns whether a value is a group of settings. A tagged choice is not; a table that users fill
/// is empty by default.
fn is_group(default: &Value) -> bool {
    default.as_object().is_some_and(|fields| !fields.is_empty() && !fields.contains_key("type"))
}

/// Merges `settings` into a document, whose unknown values stay.
fn lay_over(document: &mut Value, settings: Value, defaults: &Value) {
    match (document, settings) {
        (Value::Object(document), Value::Object(settings)) if is_group(defaults) => {
            for (name, value) in settings {
                lay_over(document.entry(&name).or_insert(Value::Null), value, &defaults[&name]);
            }
        }
        (document, settings) => *document = settings,
    }
}

/// Shortens a value for a notice: its name if it has one, and long values in part.
fn beginning(value: &Value) -> String {
    let named = value.get("name").filter(|name| name.is_string()).unwrap_or(value);
    let text = named.to_string();
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns a setting's name in words: "sampling top p", "theme".
fn words(path: &[String]) -> String {
    path.join(" ").replace('_', " ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use foretoken_engine::speculation::{DraftLength, Threshold, Tree};
    use foretoken_library::Folders;

    use super::*;
    use crate::ipc::ErrorCode;

    /// Creates a library with a fabricated SmolLM2.
    fn library(folder: &Path) -> Library {
        let resources = folder.join("resources");
        std::fs::create_dir_all(resources.join("smollm2")).unwrap();
        std::fs::write(resources.join("smollm2/SmolLM2-135M-Instruct-Q4_1.gguf"), "made up").unwrap();
        Library::new(&Folders::at(folder), Some(&resources))
    }

    #[test]
    fn stored_settings_are_loaded_and_missing_ones_have_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let library = library(folder.path());
        let mut store = Store::open(&folder.path().join("foretoken.db")).unwrap();
        let load = |store: &Store| Settings::load(store, &library).unwrap().0;
        assert_eq!(load(&store), Settings::first());
        let changed = Settings {
            speculation: Speculation::fixed(7),
            system_prompt: "Be brief.".into(),
            drafts: [(SMOLLM2.to_owned(), "ngram".to_owned())].into(),
            device: DeviceChoice::Cuda,
            draft_device: DeviceChoice::Cpu,
            ..Settings::default()
        };
        changed.save(&mut store).unwrap();
        assert_eq!(load(&store), changed);
        store.save_settings(r#"{"max_tokens": 3, "from_the_future": true}"#).unwrap();
        assert_eq!(load(&store), Settings { max_tokens: 3, ..Settings::default() });
        for unreadable in [r#"{"device": "abacus"}"#, r#"{"max_tokens": "many"}"#, r#"{"target": 7}"#, "[]"] {
            store.save_settings(unreadable).unwrap();
            assert_eq!(load(&store), Settings::default(), "{unreadable}");
        }
    }

    /// Settings that all differ from the default.
    fn all_changed() -> Value {
        let mut changed = json!({
            "target": "starter",
            "drafts": { "starter": "ngram" },
            "device": "cuda",
            "draft_device": "cpu",
            "speculation": {
                "drafter": "ngram",
                "length": { "type": "fixed", "tokens": 7 },
                "threshold": { "type": "fixed", "chance": 0.5 },
                "tree": { "type": "width", "guesses": 2 },
                "staged": "on",
                "verification": "token"
            },
            "learn_from_earlier": true,
            "sampling": {
                "temperature": 0.5,
                "top_k": 5,
                "top_p": 0.5,
                "min_p": 0.25,
                "automatic_penalties": false,
                "repetition_penalty": 1.5,
                "repeat_last_n": 32,
                "presence_penalty": 0.5,
                "frequency_penalty": -0.5,
                "dry_multiplier": 0.5,
                "dry_base": 2.0,
                "dry_allowed_length": 5,
                "dry_penalty_last_n": 512,
                "dry_sequence_breakers": ["!"],
                "stop_loops": false,
                "seed": 7,
                "mode": "reproducible"
            },
            "max_tokens": 3,
            "stop": ["User:"],
            "word_bias": [{ "word": "fox", "bias": -5.0 }],
            "context_overflow": "stop",
            "context_lengths": { "starter": 512 },
            "int8_kv_caches": ["starter"],
            "context_memory_mb": 4000,
            "context_disk_gb": 2,
            "system_prompt": "Be brief.",
            "presets": [{ "id": "a", "name": "Mine", "values": { "max_tokens": 3 } }],
            "thinking": true,
            "hidden_presets": ["precise"],
            "model_presets": { "starter": "a" },
            "appearance": {
                "theme": "dark",
                "language": "de",
                "reduced_motion": true,
                "text_size": 120,
                "wide_chat": true,
                "send_key": "command_enter",
                "sidebar_open": false,
                "inspector_open": false
            },
            "notifications": false,
            "write_titles": false,
            "keep_traces": false,
            "added_models": ["/a.gguf"],
            "server": { "enabled": true, "host": "0.0.0.0", "port": 7, "key": "secret" },
            "tools": "auto",
            "tool_servers": { "files": "a1b2" },
            "builtin_tools": ["now"],
            "search_service": "brave",
            "searxng_address": "http://localhost:8080",
            "hub_address": "https://mirror.example",
            "remote_servers": [{ "name": "gpu", "address": "http://gpu:8000/v1", "models": [{ "id": "m", "context": 7 }] }]
        });
        // The macro has a limit of fields.
        changed["check_for_updates"] = true.into();
        changed["start_at_login"] = true.into();
        changed["tray_icon"] = true.into();
        changed["keep_in_tray"] = true.into();
        changed["quick_shortcut"] = "control+Space".into();
        changed["embedding_model"] = "/embedder".into();
        changed
    }

    /// Returns the paths of all settings in a document, without groups.
    fn paths(document: &Value) -> Vec<Vec<String>> {
        let Some(fields) = document.as_object().filter(|_| is_group(document)) else { return vec![vec![]] };
        let below = |(name, value): (&String, &Value)| {
            let name = name.clone();
            paths(value).into_iter().map(move |path| [vec![name.clone()], path].concat())
        };
        fields.iter().flat_map(below).collect()
    }

    fn place<'a>(document: &'a mut Value, path: &[String]) -> &'a mut Value {
        path.iter().fold(document, |place, name| &mut place[name])
    }

    #[test]
    fn penalties_chosen_before_automatic_ones_stay_and_none_becomes_automatic() {
        let folder = tempfile::tempdir().unwrap();
        let library = library(folder.path());
        let store = Store::open(&folder.path().join("foretoken.db")).unwrap();
        let read = |penalty: f64| {
            let old = json!({
                "sampling": { "repetition_penalty": penalty },
                "presets": [{ "id": "a", "name": "Mine", "values": { "sampling": { "repetition_penalty": penalty } } }],
            });
            store.save_settings(&old.to_string()).unwrap();
            let settings = Settings::load(&store, &library).unwrap().0;
            let preset = settings.presets[0].values.sampling.clone();
            let found = |sampling: Sampling| (sampling.automatic_penalties, sampling.repeat_last_n);
            (found(settings.sampling), found(preset))
        };
        assert_eq!(read(1.5), ((false, -1), (false, -1)));
        let (settings, preset) = read(1.0);
        assert!(settings.0 && preset.0);
    }

    #[test]
    fn one_unreadable_value_resets_only_its_own_setting() {
        let mut defaults = serde_json::to_value(Settings::default()).unwrap();
        let all = paths(&defaults);
        assert_eq!(paths(&all_changed()).len(), all.len());
        for path in all {
            let mut stored = all_changed();
            assert_ne!(*place(&mut stored, &path), *place(&mut defaults, &path), "{path:?} is not changed");
            let mut expected = stored.clone();
            *place(&mut expected, &path) = place(&mut defaults, &path).clone();
            let expected: Settings = serde_json::from_value(expected).unwrap();
            let future = json!({ "type": "from_the_future", "value": [1] });
            // A table is read entry by entry.
            let unreadable =
                if ["drafts", "model_presets", "context_lengths", "tool_servers"].contains(&&*path[0]) {
                    json!({ "a": future })
                } else {
                    future
                };
            *place(&mut stored, &path) = unreadable;
            let read = Read::of(&stored.to_string(), &Settings::default()).unwrap();
            assert_eq!(read.settings, expected, "{path:?}");
            let name = path.join(" ").replace('_', " ");
            assert!(
                matches!(&read.unreadable[..], [only] if only.starts_with(&name)),
                "{:?}",
                read.unreadable
            );
        }
    }

    #[test]
    fn a_value_out_of_range_resets_only_its_own_setting() {
        let cases = [
            ("speculation", "length", json!({ "type": "fixed", "tokens": 99 })),
            ("speculation", "threshold", json!({ "type": "fixed", "chance": 2 })),
            ("speculation", "tree", json!({ "type": "width", "guesses": 0 })),
            ("sampling", "temperature", json!(-1)),
            ("sampling", "top_p", json!(0)),
            ("appearance", "text_size", json!(5)),
            ("server", "port", json!(0)),
        ];
        for (group, name, value) in cases {
            let mut stored = all_changed();
            let mut expected = stored.clone();
            expected[group][name] = serde_json::to_value(Settings::default()).unwrap()[group][name].clone();
            stored[group][name] = value;
            let read = Read::of(&stored.to_string(), &Settings::default()).unwrap();
            assert_eq!(read.settings, serde_json::from_value(expected).unwrap(), "{group} {name}");
            assert_eq!(read.unreadable, [format!("{group} {}", name.replace('_', " "))]);
        }
    }

    #[test]
    fn readable_entries_of_lists_and_tables_stay() {
        let stored = r#"{"drafts": {"a": "ngram", "b": 7}, "added_models": [1, "/a.gguf", null, "/b.gguf"]}"#;
        let read = Read::of(stored, &Settings::default()).unwrap();
        assert_eq!(read.settings.drafts, [("a".to_owned(), "ngram".to_owned())].into());
        assert_eq!(read.settings.added_models, ["/a.gguf", "/b.gguf"]);
        assert_eq!(read.unreadable, ["drafts b", "added models 1", "added models null"]);
    }

    #[test]
    fn a_document_with_unreadable_values_is_kept_before_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let library = library(folder.path());
        let mut store = Store::open(&folder.path().join("foretoken.db")).unwrap();
        let strange = r#"{"device": "abacus", "max_tokens": 3}"#;
        store.save_settings(strange).unwrap();
        let (settings, unreadable) = Settings::load(&store, &library).unwrap();
        assert_eq!((settings.max_tokens, &unreadable[..]), (3, &["device".to_owned()][..]));
        assert_eq!(store.settings().unwrap().as_deref(), Some(strange), "reading changes nothing");
        settings.save(&mut store).unwrap();
        Settings { max_tokens: 4, ..settings }.save(&mut store).unwrap();
        assert_eq!(store.settings_before().unwrap().as_deref(), Some(strange));
        let (settings, unreadable) = Settings::load(&store, &library).unwrap();
        assert_eq!((settings.max_tokens, unreadable.len()), (4, 0));
    }

    #[test]
    fn values_of_a_newer_version_stay() {
        let folder = tempfile::tempdir().unwrap();
        let library = library(folder.path());
        let mut store = Store::open(&folder.path().join("foretoken.db")).unwrap();
        let newer =
            r#"{"hats": [1], "sampling": {"wild": true, "top_k": 3}, "drafts": {"a": "b", "c": "d"}}"#;
        store.save_settings(newer).unwrap();
        let (mut settings, unreadable) = Settings::load(&store, &library).unwrap();
        assert_eq!(unreadable, [""; 0]);
        settings.drafts.remove("a");
        settings.sampling.top_k = 4;
        settings.save(&mut store).unwrap();
        let stored: Value = serde_json::from_str(&store.settings().unwrap().unwrap()).unwrap();
        assert_eq!((&stored["hats"], &stored["sampling"]["wild"]), (&json!([1]), &json!(true)));
        assert_eq!((&stored["drafts"], &stored["sampling"]["top_k"]), (&json!({ "c": "d" }), &json!(4)));
        assert_eq!(store.settings_before().unwrap(), None);
    }

    #[test]
    fn the_first_launch_uses_smollm2_and_a_stored_target_stays() {
        let folder = tempfile::tempdir().unwrap();
        let library = library(folder.path());
        let store = Store::open(&folder.path().join("foretoken.db")).unwrap();
        let load = || Settings::load(&store, &library).unwrap().0;
        let chosen = |target: &str, drafts: &[(&str, &str)]| Settings {
            target: target.to_owned(),
            drafts: drafts.iter().map(|(target, draft)| (target.to_string(), draft.to_string())).collect(),
            ..Settings::default()
        };
        assert_eq!(load(), Settings { target: "smollm2".to_owned(), ..Settings::first() });
        store.save_settings(r#"{"target": "starter"}"#).unwrap();
        assert_eq!(load(), chosen("starter", &[]));
        store.save_settings(r#"{"target": "starter", "draft": "none"}"#).unwrap();
        assert_eq!(
            load(),
            chosen("starter", &[("starter", "none")]),
            "from before each target had its own draft"
        );
        store.save_settings(r#"{"draft": "none", "drafts": {"a": "b"}}"#).unwrap();
        assert_eq!(load(), chosen("smollm2", &[("a", "b")]));
        // Without SmolLM2.
        let starter = chosen("starter", &[]);
        assert_eq!(Read::of("{}", &starter).unwrap().settings, starter);
    }

    #[test]
    fn missing_models_are_removed_but_not_those_on_an_absent_disk() {
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
        assert_eq!(refused(|s| s.server.port = 0), "server port: expected 1 to 65535, found 0.");
        assert!(refused(|s| s.sampling.temperature = f32::NAN).contains("temperature"));
        assert!(refused(|s| s.sampling.top_p = 0.0).contains("top-p"));
        assert_eq!(Settings::default().validate(), Ok(()));
    }
}
