//! Contexts of conversations on disk: written after a reply while the engine is idle, restored when
//! a conversation is opened, removed with it. A failure is one line in the log: the conversation is
//! then read again.

use std::io::ErrorKind;

use foretoken_library::Contexts;
use foretoken_model::ChatMessage;
use foretoken_persistence::ModelFiles;

use super::local::Local;
use super::replying::request;
use crate::cancel::Cancel;
use crate::ipc::{ReadContext, Settings};

/// Bytes of a gigabyte, as settings count them.
const GIGABYTE: u64 = 1_000_000_000;

impl Local {
    /// Keeps the context of a reply that has just ended, to be written later.
    pub(super) fn keep_context(&mut self) {
        // That of a reply before it would be lost.
        self.save_context();
        let text = self.target.as_mut().filter(|_| limit(&self.settings) > 0);
        let text = text.and_then(|target| target.session.text_to_save());
        self.contexts.unsaved = text.map(|text| (text, None));
    }

    /// Names the conversation of the reply that ended last.
    pub(super) fn name_context(&mut self, conversation: i64) {
        self.contexts.unsaved.iter_mut().for_each(|(_, name)| *name = Some(conversation));
        self.status.update(|status| status.read_context = Some(ReadContext { conversation, left: 0 }));
    }

    /// Writes the context of the last reply.
    pub(super) fn save_context(&mut self) {
        let most = limit(&self.settings);
        let Some((mut text, Some(conversation))) = self.contexts.unsaved.take() else { return };
        self.contexts.spawn(move |files| {
            let model = ModelFiles(files.of_model(text.target()));
            let saved = text.save(&conversation.to_string(), &model);
            files.tidy(most).and(saved)
        });
    }

    /// Restores the context of a conversation whose messages the model sees, and shows how much of
    /// it is left to read.
    pub(super) fn restore(
        &mut self,
        conversation: i64,
        messages: &[ChatMessage],
        settings: &Settings,
        cancel: &Cancel,
    ) {
        let on_disk = limit(&self.settings) > 0;
        let Some(target) = &mut self.target else { return };
        let session = &mut target.session;
        let Ok(request) = request(session, messages, &[], settings, &|| cancel.is_cancelled()) else {
            return;
        };
        let prompt = request.prompt;
        if on_disk && !cancel.is_cancelled() {
            let files = ModelFiles(self.contexts.files().of_model(session.identity()));
            let read = session.restore(&conversation.to_string(), &files, &|| !cancel.is_cancelled());
            if let Err(error) = read
                && ![ErrorKind::NotFound, ErrorKind::Interrupted].contains(&error.kind())
            {
                tracing::warn!("the context of a conversation is computed again: {error}");
            }
        }
        if cancel.is_cancelled() {
            return;
        }
        let left = prompt.len().saturating_sub(1 + session.held(&prompt));
        self.status.update(|status| {
            status.read_context = Some(ReadContext { conversation, left: left as u32 });
        });
        self.report_memory();
    }

    /// Removes the context of a deleted conversation, also one that is being written.
    pub(super) fn forget_context(&mut self, conversation: i64) {
        self.contexts.unsaved.take_if(|(_, name)| *name == Some(conversation));
        self.contexts.spawn(move |files| files.remove(&conversation.to_string()));
    }

    /// Removes contexts beyond the limit of the settings, or all if there is to be none.
    pub(super) fn tidy_contexts(&mut self) {
        match limit(&self.settings) {
            0 => self.contexts.spawn(Contexts::clear),
            most => self.contexts.spawn(move |files| files.tidy(most)),
        }
    }
}

/// Returns the bytes that contexts may take on disk.
fn limit(settings: &Settings) -> u64 {
    u64::from(settings.context_disk_gb) * GIGABYTE
}
