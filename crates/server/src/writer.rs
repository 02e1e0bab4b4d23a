//! Interface to the writer of replies.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use foretoken_engine::trace::{Finish, Summary};
use foretoken_model::Picture;
use foretoken_model::embedding::TextEmbedder;
use foretoken_model::error::{Error, Result as EngineResult};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::logprob::Logprob;
use crate::order::Order;
use crate::queue::Slot;
use crate::refusal::Refusal;

/// A writer of replies. The server requests one at a time, by models that [`model`](Self::model) or
/// [`others`](Self::others) named.
pub trait Writer: Send + Sync + 'static {
    /// Name of the model that replies to requests without one; `None` while none is loaded.
    fn model(&self) -> Option<String>;

    /// Names of models that are loaded when a request names them.
    fn others(&self) -> Vec<String> {
        Vec::new()
    }

    /// Begins a reply by `model` and returns immediately: the caller serves no other request
    /// meanwhile.
    fn begin(&self, model: &str, order: Order, sink: ReplySink);

    /// Returns the number of tokens of an order's prompt for `model`, even while a reply is
    /// written.
    ///
    /// # Errors
    /// Those of a reply to it.
    fn count(&self, model: &str, order: Order) -> Result<usize, Refusal>;

    /// Reads a picture file of a request.
    ///
    /// # Errors
    /// `Error::Picture`, by default for every file.
    fn read_picture(&self, _file: &[u8]) -> EngineResult<Picture> {
        Err(Error::Picture("no model on this server sees".to_owned()))
    }

    /// `true` if the model that replies to requests without one sees pictures.
    fn sees(&self) -> bool {
        false
    }

    /// Returns the name of the embedding model; `None` without one.
    fn embedding_model(&self) -> Option<String> {
        self.embedder().map(|model| model.name().to_owned())
    }

    /// Returns the embedding model, which may have to be loaded first; `None` without one.
    fn embedder(&self) -> Option<Arc<dyn TextEmbedder>> {
        None
    }
}

/// Returns the public name of a model: the file or folder name if `name` is a path.
pub fn model_name(name: &str) -> String {
    let path = Path::new(name);
    let file = path.file_name().filter(|_| path.exists()).map(|file| file.to_string_lossy().into_owned());
    let file = file.unwrap_or_else(|| name.to_owned());
    file.strip_suffix(".gguf").unwrap_or(&file).to_owned()
}

/// Events while a reply is written.
#[derive(Debug)]
pub enum Event {
    /// The request was accepted, with a prompt of this many tokens. First event unless it was
    /// refused.
    Started(usize),
    /// Text added to the reasoning, if the order separates it.
    Thinking(String),
    /// Number of tokens of the reasoning, if the order separates it.
    ThinkingTokens(usize),
    /// Text added to the reply.
    Text(String),
    /// A call of this tool begins.
    Call(String),
    /// JSON added to the arguments of the call that began last.
    Arguments(String),
    /// The call that began last is complete.
    CallEnded,
    /// This stop string ended the reply.
    Stop(String),
    /// Log probabilities of the tokens whose text comes next, if the order asks for them.
    Logprobs(Vec<Logprob>),
    /// The reply is complete, for this reason, and the next one of the order begins.
    Next(Finish),
    /// The last reply of the order is complete. Tokens and times are those of all.
    Ended(Box<Summary>),
    /// The request was refused, or the writer failed after [`Event::Started`].
    Failed(Refusal),
}

/// Receiver of a reply's events, for its writer. Never waits for the client. Holds the queue's
/// slot: dropping it starts the next reply.
#[derive(Debug)]
pub struct ReplySink {
    events: UnboundedSender<Event>,
    ended: bool,
    _slot: Slot,
}

impl ReplySink {
    pub(crate) fn new(slot: Slot) -> (Self, UnboundedReceiver<Event>) {
        let (events, receiver) = mpsc::unbounded_channel();
        (Self { events, ended: false, _slot: slot }, receiver)
    }

    /// Returns `Break` once the receiver is gone, so the reply should end.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.events.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Sends an event.
    pub fn send(&self, event: Event) {
        // The receiver may be dropped; send errors are ignored.
        let _ = self.events.send(event);
    }

    /// Sends the outcome of the reply.
    pub fn end(mut self, outcome: Result<Summary, Refusal>) {
        self.ended = true;
        self.send(match outcome {
            Ok(summary) => Event::Ended(Box::new(summary)),
            Err(refusal) => Event::Failed(refusal),
        });
    }
}

impl Drop for ReplySink {
    /// Reports a writer that stopped before the end of its reply.
    fn drop(&mut self) {
        if !self.ended {
            self.send(Event::Failed(Refusal::failed(
                "The engine failed on this request; the server's log has the reason.",
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_path_is_shortened_to_its_file_name() {
        assert_eq!(model_name("smollm2"), "smollm2");
        assert_eq!(model_name("owner/name:file-Q8_0.gguf"), "owner/name:file-Q8_0");
        assert_eq!(model_name(concat!(env!("CARGO_MANIFEST_DIR"), "/src/writer.rs")), "writer.rs");
    }
}
