//! What a conversation is written with: a preset or values of its own, kept with the conversation from its first
//! reply on. A new one takes what the settings say, or the preset of its target. The models are the window's: which
//! of them wrote is kept too, and loading them again is left to the person.

use foretoken_store::Store;

use crate::app::{App, earlier};
use crate::error::Result;
use crate::ipc::{ConversationSetup, ModelEntry, Preset, PresetValues, Settings};
use crate::lock::lock;

/// Values, and the preset that they are from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Values {
    preset: Option<String>,
    values: PresetValues,
}

/// The conversation that is open, and what is chosen for it.
#[derive(Default)]
pub(crate) struct Facing {
    /// `None` for one that is to come.
    conversation: Option<i64>,
    /// `None` while nothing is.
    own: Option<Values>,
    /// What the engine was told to write with.
    applied: Option<PresetValues>,
}

impl App {
    /// Makes this conversation, or one that is to come, the one that the engine is ready to write in, and returns
    /// what it is written with. Loads no model.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn open_setup(&self, conversation: Option<i64>) -> Result<ConversationSetup> {
        let Values { preset, values } = self.face(conversation)?;
        let stored = conversation.map(|id| read(&self.store(), id)).transpose()?.flatten();
        Ok(ConversationSetup { preset, values, ..stored.unwrap_or_default() })
    }

    /// Has the conversation, or the one that is to come, written with these values from its next reply on. `preset`
    /// is the id of the one that they are from, if they are.
    ///
    /// # Errors
    /// `BadSetting` naming the first value out of its range; `NotFound`.
    pub fn save_setup(
        &self,
        conversation: Option<i64>,
        preset: Option<String>,
        values: PresetValues,
    ) -> Result<ConversationSetup> {
        values.validate()?;
        self.face(conversation)?;
        let own = Values { preset, values };
        if let Some(id) = conversation {
            let store = self.store();
            let before = read(&store, id)?.unwrap_or_default();
            write(
                &store,
                id,
                &ConversationSetup { preset: own.preset.clone(), values: own.values.clone(), ..before },
            )?;
        }
        lock(&self.facing).own = Some(own);
        self.open_setup(conversation)
    }

    /// The presets that come with the program, as the settings and the target have them.
    pub fn built_in_presets(&self) -> Vec<Preset> {
        let settings = self.settings();
        settings.built_in_presets(self.target_of(&settings).as_ref())
    }

    /// Makes this conversation the open one; what it is written with.
    pub(crate) fn face(&self, conversation: Option<i64>) -> Result<Values> {
        let _saving = lock(&self.saving);
        let mut facing = lock(&self.facing);
        if facing.conversation != conversation {
            let stored = conversation.map(|id| read(&self.store(), id)).transpose()?.flatten();
            facing.own = stored.map(|ConversationSetup { preset, values, .. }| Values { preset, values });
            facing.conversation = conversation;
        }
        self.apply(&mut facing, false)
    }

    /// Has the engine write with what the open conversation is written with; with `anew` also where it does.
    fn apply(&self, facing: &mut Facing, anew: bool) -> Result<Values> {
        let settings = self.settings();
        let own = facing.own.clone().unwrap_or_else(|| self.values_of(&settings, facing.conversation));
        if anew || facing.applied.as_ref() != Some(&own.values) {
            let earlier = earlier(&self.store(), &settings)?;
            self.engine.apply_settings(settings, own.values.clone(), earlier);
            facing.applied = Some(own.values.clone());
        }
        Ok(own)
    }

    /// After the settings have changed; `anew` where the engine has to know of it.
    pub(crate) fn apply_settings(&self, anew: bool) -> Result<()> {
        self.apply(&mut lock(&self.facing), anew).map(drop)
    }

    /// What a conversation is written with that has nothing of its own: the settings' values, or in a new one those of
    /// its target's preset.
    fn values_of(&self, settings: &Settings, conversation: Option<i64>) -> Values {
        let target = conversation.is_none().then(|| self.target_of(settings)).flatten();
        match target.and_then(|target| settings.preset_of(&target)) {
            Some(Preset { id, values, .. }) => Values { preset: Some(id), values },
            None => Values { preset: None, values: settings.values() },
        }
    }

    /// The chosen target, where it is listed by now.
    fn target_of(&self, settings: &Settings) -> Option<ModelEntry> {
        let status = self.engine.status();
        status.targets.into_iter().find(|entry| entry.id == settings.target)
    }

    /// Keeps with a conversation what its reply is written with, from the moment it begins.
    pub(crate) fn keep_setup(&self, conversation: i64, Values { preset, values }: Values) {
        let status = self.engine.status();
        let target = status.target.map(|target| target.id);
        let draft = target.is_some().then_some(status.draft);
        let setup = ConversationSetup { target, draft, preset: preset.clone(), values: values.clone() };
        if let Err(error) = write(&self.store(), conversation, &setup) {
            tracing::warn!(
                "what conversation {conversation} is written with is not stored: {}",
                error.message
            );
        }
        let mut facing = lock(&self.facing);
        if facing.conversation.is_none() {
            (facing.conversation, facing.own) = (Some(conversation), Some(Values { preset, values }));
        }
    }
}

/// What is stored with a conversation. What cannot be read, or not be set, is as if it was never stored.
fn read(store: &Store, conversation: i64) -> Result<Option<ConversationSetup>> {
    let Some(json) = store.setup(conversation)? else { return Ok(None) };
    let read = serde_json::from_str::<ConversationSetup>(&json).map_err(|error| error.to_string());
    let checked = read.and_then(|setup| match setup.values.validate() {
        Ok(()) => Ok(setup),
        Err(error) => Err(error.message),
    });
    Ok(checked
        .inspect_err(|reason| {
            tracing::warn!("what conversation {conversation} is written with cannot be read: {reason}");
        })
        .ok())
}

fn write(store: &Store, conversation: i64, setup: &ConversationSetup) -> Result<()> {
    Ok(store.save_setup(conversation, Some(&serde_json::to_string(setup)?))?)
}
