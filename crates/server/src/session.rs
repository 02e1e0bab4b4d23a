//! A reply by a session of the engine.

use foretoken_engine::decoder::Progress;
use foretoken_engine::error::Result;
use foretoken_engine::session::Session;
use foretoken_engine::trace::Summary;

use crate::order::{Defaults, Order};
use crate::writer::{Event, Teller};

/// Writes what was ordered and tells of its text, until it ends or nobody listens any more.
///
/// # Errors
/// Those of the engine; [`Teller::end`] is for the caller, who may know a remedy.
pub fn write(session: &mut Session, order: Order, defaults: &Defaults, teller: &Teller) -> Result<Summary> {
    let request = order.request(session, defaults)?;
    teller.tell(Event::Started);
    let reply = session.reply(&request, &mut |progress| {
        if let Progress::Round(round) = progress {
            let text: String = round.emitted().map(|(_, text)| text).collect();
            if !text.is_empty() {
                teller.tell(Event::Text(text));
            }
        }
        teller.flow()
    })?;
    Ok(reply.summary)
}
