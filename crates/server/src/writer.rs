//! Who writes the replies, and how it tells of it.

use std::ops::ControlFlow;
use std::path::Path;

use foretoken_engine::trace::Summary;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::order::Order;
use crate::queue::Turn;
use crate::refusal::Refusal;

/// Writes replies. The server asks for one at a time.
pub trait Writer: Send + Sync + 'static {
    /// What the model is called that would reply now; `None` while none is loaded.
    fn model(&self) -> Option<String>;

    /// Begins to write and returns at once, as it is called where no other request is served meanwhile.
    fn begin(&self, order: Order, teller: Teller);
}

/// What clients call the model that is known here by `name`, which may be a path: by its file or folder alone.
pub fn model_name(name: &str) -> String {
    let path = Path::new(name);
    let file = path.file_name().filter(|_| path.exists()).map(|file| file.to_string_lossy().into_owned());
    let file = file.unwrap_or_else(|| name.to_owned());
    file.strip_suffix(".gguf").unwrap_or(&file).to_owned()
}

/// What happens while a reply is written.
#[derive(Debug)]
pub enum Event {
    /// The order was accepted. Comes first, unless it was refused.
    Started,
    /// What was added to the reply.
    Text(String),
    /// The reply is whole.
    Ended(Box<Summary>),
    /// The order was refused, or after [`Event::Started`] the writer failed.
    Failed(Refusal),
}

/// Told of a reply by whoever writes it. Never waits for the client. Holds the turn: when it is dropped, the next
/// reply is asked for.
#[derive(Debug)]
pub struct Teller {
    events: UnboundedSender<Event>,
    ended: bool,
    _turn: Turn,
}

impl Teller {
    pub(crate) fn new(turn: Turn) -> (Self, UnboundedReceiver<Event>) {
        let (events, told) = mpsc::unbounded_channel();
        (Self { events, ended: false, _turn: turn }, told)
    }

    /// `Break` once nobody listens any more: the reply is to end.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.events.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Passes on what happened.
    pub fn tell(&self, event: Event) {
        // Whoever has gone needs no news.
        let _ = self.events.send(event);
    }

    /// Says how the reply ended.
    pub fn end(mut self, outcome: Result<Summary, Refusal>) {
        self.ended = true;
        self.tell(match outcome {
            Ok(summary) => Event::Ended(Box::new(summary)),
            Err(refusal) => Event::Failed(refusal),
        });
    }
}

impl Drop for Teller {
    /// A writer that is gone in the middle of a reply is noticed.
    fn drop(&mut self) {
        if !self.ended {
            self.tell(Event::Failed(Refusal::failed(
                "The engine failed on this request; its log has the reason.",
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_called_by_its_file_and_what_is_no_path_by_its_name() {
        assert_eq!(model_name("smollm2"), "smollm2");
        assert_eq!(model_name("owner/name:file-Q8_0.gguf"), "owner/name:file-Q8_0");
        assert_eq!(model_name(concat!(env!("CARGO_MANIFEST_DIR"), "/src/writer.rs")), "writer.rs");
    }
}
