//! Writes a reply with an engine session.

use foretoken_engine::decoder::Progress;
use foretoken_engine::session::Session;
use foretoken_engine::trace::Summary;
use foretoken_model::error::Result;

use crate::order::{Defaults, Order};
use crate::writer::{Event, ReplySink};

/// Writes a reply and sends its text to `sink`, until it ends or the receiver is gone.
///
/// # Errors
/// Returns the engine's errors; the caller passes them to [`ReplySink::end`], perhaps with advice.
pub fn write(session: &mut Session, order: Order, defaults: &Defaults, sink: &ReplySink) -> Result<Summary> {
    let request = order.request(session, defaults)?;
    sink.send(Event::Started);
    let reply = session.reply(&request, &mut |progress| {
        if let Progress::Round(round) = progress {
            let text: String = round.emitted().map(|(_, text)| text).collect();
            if !text.is_empty() {
                sink.send(Event::Text(text));
            }
        }
        sink.flow()
    })?;
    Ok(reply.summary)
}
