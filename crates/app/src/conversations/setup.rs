//! A conversation's own settings: those of the application until values are chosen for it, which
//! are then stored with it. A new conversation starts with its target's preset, if there is one.
//! The models are the window's: those of the last reply are stored too, but the user decides
//! whether to load them again.

use foretoken_store::Store;

use crate::app::{App, OpenConversation, earlier};
use crate::engine::word_tokens;
use crate::error::Result;
use crate::ipc::{BIASED_WORD_BYTES, ConversationSetup, ModelEntry, Preset, PresetValues, Settings};
use crate::lock::lock;

impl App {
    /// Makes this conversation, or a new one, the active one and returns its settings. Loads no
    /// model.
    ///
    /// # Errors
    /// Returns `NotFound` if the conversation does not exist.
    pub fn open_setup(&self, conversation: Option<i64>) -> Result<ConversationSetup> {
        let setup = self.open(conversation)?;
        match conversation {
            Some(id) => self.engine.restore(id, self.seen(id)?, setup.values.clone()),
            None => self.engine.stop_restoring(),
        }
        Ok(setup)
    }

    /// Chooses values for the conversation, or a new one, from its next reply on; `None` follows
    /// the settings again. `preset` is the id of the preset with these values, if there is one.
    ///
    /// # Errors
    /// Returns `BadSetting` naming the first value out of its range; `NotFound`.
    pub fn save_setup(
        &self,
        conversation: Option<i64>,
        preset: Option<String>,
        values: Option<PresetValues>,
    ) -> Result<ConversationSetup> {
        values.as_ref().map_or(Ok(()), PresetValues::validate)?;
        let before = self.setup_of(conversation)?;
        let setup = ConversationSetup {
            own: values.is_some(),
            preset: preset.filter(|_| values.is_some()),
            values: values.unwrap_or_else(|| self.settings().values()),
            ..before
        };
        if let Some(id) = conversation {
            write(&self.store(), id, &setup)?;
        }
        let mut open = lock(&self.open);
        let is_active = open.conversation == conversation;
        if is_active {
            open.setup = setup;
        } else if conversation.is_none() {
            open.new = setup;
        }
        drop(open);
        if is_active { self.open(conversation) } else { self.setup_of(conversation) }
    }

    /// Returns the texts of the target's tokens that are `word`, with or without a space before it;
    /// none if it is several tokens, or without a target on this computer.
    pub fn word_tokens(&self, word: &str) -> Vec<String> {
        let Some(tokenizer) = self.engine.tokenizer() else { return Vec::new() };
        let word: String = word.chars().take(BIASED_WORD_BYTES).collect();
        word_tokens(&tokenizer, &word).into_iter().map(|token| tokenizer.piece(token)).collect()
    }

    /// Returns the built-in presets for the settings and the target.
    pub fn built_in_presets(&self) -> Vec<Preset> {
        let settings = self.settings();
        settings.built_in_presets(self.target_of(&settings).as_ref())
    }

    /// Opens this conversation and returns its settings.
    pub(crate) fn open(&self, conversation: Option<i64>) -> Result<ConversationSetup> {
        let _saving = lock(&self.saving);
        let mut open = lock(&self.open);
        if open.conversation != conversation {
            let setup = match conversation {
                Some(id) => read(&self.store(), id)?.unwrap_or_default(),
                None => std::mem::take(&mut open.new),
            };
            let before = std::mem::replace(&mut open.setup, setup);
            if open.conversation.is_none() {
                open.new = before;
            }
            open.conversation = conversation;
        }
        self.apply(&mut open, false)
    }

    /// Applies the open conversation's settings to the engine if they changed, or always with
    /// `force`.
    fn apply(&self, open: &mut OpenConversation, force: bool) -> Result<ConversationSetup> {
        let settings = self.settings();
        let setup = self.effective(&open.setup, &settings, open.conversation);
        if force || open.applied.as_ref() != Some(&setup.values) {
            let earlier = earlier(&self.store(), &settings)?;
            self.engine.apply_settings(settings, setup.values.clone(), earlier);
            open.applied = Some(setup.values.clone());
        }
        Ok(setup)
    }

    /// Applies changed settings; `force` also if the conversation's values are the same.
    pub(crate) fn apply_settings(&self, force: bool) -> Result<()> {
        self.apply(&mut lock(&self.open), force).map(drop)
    }

    /// Returns the settings of a conversation, or a new one, whether it is active or not.
    ///
    /// # Errors
    /// Returns `NotFound` if the conversation does not exist.
    pub fn setup_of(&self, conversation: Option<i64>) -> Result<ConversationSetup> {
        let open = lock(&self.open);
        let known = match conversation {
            _ if open.conversation == conversation => Some(open.setup.clone()),
            Some(_) => None,
            None => Some(open.new.clone()),
        };
        drop(open);
        let setup = match (known, conversation) {
            (None, Some(id)) => read(&self.store(), id)?.unwrap_or_default(),
            (known, _) => known.unwrap_or_default(),
        };
        Ok(self.effective(&setup, &self.settings(), conversation))
    }

    /// Returns the settings in effect: the conversation's own values, or the application's, or in a
    /// new conversation those of its target's preset.
    fn effective(
        &self,
        setup: &ConversationSetup,
        settings: &Settings,
        conversation: Option<i64>,
    ) -> ConversationSetup {
        if setup.own {
            return setup.clone();
        }
        let target = conversation.is_none().then(|| self.target_of(settings)).flatten();
        match target.and_then(|target| settings.preset_of(&target)) {
            Some(Preset { id, values, .. }) => {
                ConversationSetup { own: true, preset: Some(id), values, ..setup.clone() }
            }
            None => ConversationSetup { values: settings.values(), ..setup.clone() },
        }
    }

    /// Returns the chosen target, if it is listed by now.
    fn target_of(&self, settings: &Settings) -> Option<ModelEntry> {
        let status = self.engine.status();
        status.targets.into_iter().find(|entry| entry.id == settings.target)
    }

    /// Stores the settings and models of a reply with its conversation when it begins. `asked` is
    /// the conversation of the question, unless it is new.
    pub(crate) fn keep_setup(&self, asked: Option<i64>, conversation: i64, written: &ConversationSetup) {
        let status = self.engine.status();
        let target = status.target.map(|target| target.id);
        let draft = target.is_some().then_some(status.draft);
        // Values chosen meanwhile apply from the next reply on.
        let chosen = asked.and_then(|asked| self.setup_of(Some(asked)).ok());
        let setup = ConversationSetup { target, draft, ..chosen.unwrap_or_else(|| written.clone()) };
        if let Err(error) = write(&self.store(), conversation, &setup) {
            let reason = error.message;
            tracing::warn!("the settings of conversation {conversation} could not be stored: {reason}");
        }
        let mut open = lock(&self.open);
        // Values chosen meanwhile for another new conversation belong to that one.
        let is_written = |chosen| self.effective(chosen, &self.settings(), None) == *written;
        if open.conversation == asked && (asked.is_some() || is_written(&open.setup)) {
            (open.conversation, open.setup) = (Some(conversation), setup);
        } else if asked.is_none() && open.conversation.is_some() && is_written(&open.new) {
            open.new = ConversationSetup::default();
        }
    }
}

/// Returns whether stored settings of a conversation give the model instructions.
pub(crate) fn has_instructions(json: &str) -> bool {
    let setup = serde_json::from_str::<ConversationSetup>(json);
    setup.is_ok_and(|setup| setup.own && !setup.values.system_prompt.trim().is_empty())
}

/// Reads the stored settings of a conversation; `None` if they are unreadable or out of range.
fn read(store: &Store, conversation: i64) -> Result<Option<ConversationSetup>> {
    let Some(json) = store.setup(conversation)? else { return Ok(None) };
    let read = serde_json::from_str::<ConversationSetup>(&json).map_err(|error| error.to_string());
    let checked = read.and_then(|setup| match setup.values.validate() {
        Ok(()) => Ok(setup),
        Err(error) => Err(error.message),
    });
    Ok(checked
        .inspect_err(|reason| {
            tracing::warn!("the settings of conversation {conversation} cannot be read: {reason}");
        })
        .ok())
}

fn write(store: &Store, conversation: i64, setup: &ConversationSetup) -> Result<()> {
    Ok(store.save_setup(conversation, Some(&serde_json::to_string(setup)?))?)
}
