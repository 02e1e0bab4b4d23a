//! What a conversation is written with: what the settings say, until something is chosen for it, which is then kept
//! with it. A new one begins with the preset of its target, if that has one. The models are the window's: which of
//! them wrote is kept too, and loading them again is left to the person.

use foretoken_store::Store;

use crate::app::{App, earlier};
use crate::error::Result;
use crate::facing::Facing;
use crate::ipc::{ConversationSetup, ModelEntry, Preset, PresetValues, Settings};
use crate::lock::lock;

impl App {
    /// Makes this conversation, or one that is to come, the one that the engine is ready to write in, and returns
    /// what it is written with. Loads no model.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn open_setup(&self, conversation: Option<i64>) -> Result<ConversationSetup> {
        self.face(conversation)
    }

    /// Has the conversation, or the one that is to come, written with these values from its next reply on, or with
    /// `None` with what the settings say. `preset` is the id of the one that they are from, if they are.
    ///
    /// # Errors
    /// `BadSetting` naming the first value out of its range; `NotFound`.
    pub fn save_setup(
        &self,
        conversation: Option<i64>,
        preset: Option<String>,
        values: Option<PresetValues>,
    ) -> Result<ConversationSetup> {
        values.as_ref().map_or(Ok(()), PresetValues::validate)?;
        let before = self.face(conversation)?;
        let setup = ConversationSetup {
            own: values.is_some(),
            preset: preset.filter(|_| values.is_some()),
            values: values.unwrap_or_else(|| self.settings().values()),
            ..before
        };
        if let Some(id) = conversation {
            write(&self.store(), id, &setup)?;
        }
        let mut facing = lock(&self.facing);
        if facing.conversation == conversation {
            facing.setup = setup;
        }
        drop(facing);
        self.face(conversation)
    }

    /// The presets that come with the program, as the settings and the target have them.
    pub fn built_in_presets(&self) -> Vec<Preset> {
        let settings = self.settings();
        settings.built_in_presets(self.target_of(&settings).as_ref())
    }

    /// Makes this conversation the open one; what it is written with.
    pub(crate) fn face(&self, conversation: Option<i64>) -> Result<ConversationSetup> {
        let _saving = lock(&self.saving);
        let mut facing = lock(&self.facing);
        if facing.conversation != conversation {
            let stored = conversation.map(|id| read(&self.store(), id)).transpose()?.flatten();
            (facing.conversation, facing.setup) = (conversation, stored.unwrap_or_default());
        }
        self.apply(&mut facing, false)
    }

    /// Has the engine write with what the open conversation is written with; with `anew` also where it does.
    fn apply(&self, facing: &mut Facing, anew: bool) -> Result<ConversationSetup> {
        let settings = self.settings();
        let setup = self.in_force(&facing.setup, &settings, facing.conversation);
        if anew || facing.applied.as_ref() != Some(&setup.values) {
            let earlier = earlier(&self.store(), &settings)?;
            self.engine.apply_settings(settings, setup.values.clone(), earlier);
            facing.applied = Some(setup.values.clone());
        }
        Ok(setup)
    }

    /// After the settings have changed; `anew` where the engine has to know of it.
    pub(crate) fn apply_settings(&self, anew: bool) -> Result<()> {
        self.apply(&mut lock(&self.facing), anew).map(drop)
    }

    /// What a conversation is written with, whether it is the open one or not.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn setup_of(&self, conversation: Option<i64>) -> Result<ConversationSetup> {
        let facing = lock(&self.facing);
        let open = (facing.conversation == conversation).then(|| facing.setup.clone());
        drop(facing);
        let setup = match (open, conversation) {
            (Some(open), _) => open,
            (None, Some(id)) => read(&self.store(), id)?.unwrap_or_default(),
            (None, None) => ConversationSetup::default(),
        };
        Ok(self.in_force(&setup, &self.settings(), conversation))
    }

    /// The set-up with its own values, or where nothing was chosen, with the settings', or in a new conversation with
    /// those of its target's preset.
    fn in_force(
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

    /// The chosen target, where it is listed by now.
    fn target_of(&self, settings: &Settings) -> Option<ModelEntry> {
        let status = self.engine.status();
        status.targets.into_iter().find(|entry| entry.id == settings.target)
    }

    /// Keeps with a conversation what its reply is written with, and by whom, from the moment it begins. `asked` is the
    /// conversation that it was asked for in, where that is not new.
    pub(crate) fn keep_setup(&self, asked: Option<i64>, conversation: i64, written: &ConversationSetup) {
        let status = self.engine.status();
        let target = status.target.map(|target| target.id);
        let draft = target.is_some().then_some(status.draft);
        // What was chosen for it since holds from its next reply on.
        let chosen = asked.and_then(|asked| self.setup_of(Some(asked)).ok());
        let setup = ConversationSetup { target, draft, ..chosen.unwrap_or_else(|| written.clone()) };
        if let Err(error) = write(&self.store(), conversation, &setup) {
            let reason = error.message;
            tracing::warn!("what conversation {conversation} is written with is not stored: {reason}");
        }
        let mut facing = lock(&self.facing);
        // What was chosen since for another new conversation is that one's.
        let unchanged = || self.in_force(&facing.setup, &self.settings(), None) == *written;
        if facing.conversation == asked && (asked.is_some() || unchanged()) {
            (facing.conversation, facing.setup) = (Some(conversation), setup);
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
