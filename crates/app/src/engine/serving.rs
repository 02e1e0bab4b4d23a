//! Replies for the local server: written by the loaded models with the settings, in one queue with
//! the window's replies.

use std::sync::{Arc, Mutex, mpsc};

use foretoken_engine::trace::Summary;
use foretoken_model::Picture;
use foretoken_model::embedding::TextEmbedder;
use foretoken_senses::picture::PictureReader;
use foretoken_server::session::write;
use foretoken_server::{Defaults, Order, PromptReader, Refusal, ReplySink, Writer, model_name};

use super::job::Job;
use super::local::Local;
use super::replying::{longest, speculation};
use crate::cancel::BackgroundJobs;
use crate::embedding::Embedder;
use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode, ModelKind, PresetValues};
use crate::lock::lock;
use crate::observable::Observable;

/// The engine thread as a writer for the server.
pub(super) struct ServerWriter {
    pub(super) jobs: mpsc::Sender<Job>,
    pub(super) background: Arc<BackgroundJobs>,
    pub(super) status: Arc<Observable>,
    pub(super) prompts: Arc<Mutex<Option<PromptReader>>>,
    pub(super) embedder: Arc<Embedder>,
    pub(super) pictures: Arc<PictureReader>,
}

impl Writer for ServerWriter {
    fn model(&self) -> Option<String> {
        let here = self.status.get().target.filter(|target| target.kind != ModelKind::Remote);
        here.map(|target| model_name(&target.name))
    }

    fn begin(&self, _model: &str, order: Order, sink: ReplySink) {
        self.background.all();
        // If the thread is gone, the dropped sink reports it.
        let _ = self.jobs.send(Job::Serve { order: Box::new(order), sink });
    }

    fn count(&self, _model: &str, order: Order) -> std::result::Result<usize, Refusal> {
        let prompts = lock(&self.prompts).clone();
        prompts
            .ok_or_else(|| Refusal::not_ready("No model is loaded yet. Try again in a moment."))?
            .count(&order)
    }

    fn read_picture(&self, file: &[u8]) -> foretoken_model::Result<Picture> {
        self.pictures.read(file)
    }

    fn sees(&self) -> bool {
        self.status.get().sees
    }

    fn embedding_model(&self) -> Option<String> {
        self.embedder.name()
    }

    fn embedder(&self) -> Option<Arc<dyn TextEmbedder>> {
        self.embedder.model()
    }
}

impl Local {
    /// Writes a reply for the server. The client provides the whole conversation: the system prompt
    /// of the settings is not added.
    pub(super) fn serve(&mut self, order: Order, sink: ReplySink) {
        let outcome = self.write(order, &sink).map_err(refusal);
        sink.end(outcome);
    }

    fn write(&mut self, order: Order, sink: &ReplySink) -> Result<Summary> {
        let PresetValues { sampling, speculation: asked, max_tokens, .. } = &self.defaults;
        let defaults = Defaults {
            sampling: sampling.clone(),
            speculation: speculation(self.chosen_draft(), asked),
            thinking: self.settings.thinking,
            max_tokens: longest(*max_tokens),
            tool_first: false,
        };
        let written = write(&mut self.loaded()?.session, order, &defaults, sink);
        written.map_err(|error| self.failed(error))
    }
}

pub(super) fn refusal(CommandError { code, message, .. }: CommandError) -> Refusal {
    match code {
        ErrorCode::NoTarget => Refusal::not_ready(message),
        ErrorCode::PromptTooLong | ErrorCode::MessageTooLong => Refusal::context_length(message),
        ErrorCode::EmptyPrompt | ErrorCode::BadSetting | ErrorCode::BadModel => Refusal::bad_request(message),
        _ => Refusal::failed(message),
    }
}
