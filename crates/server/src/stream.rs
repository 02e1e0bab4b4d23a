//! A reply as server-sent events while it is written.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};

use crate::format::{Format, Frame};
use crate::reply::Reply;
use crate::routes::LoggedEvents;
use crate::writer::Event;

/// Interval of events or comments while nothing is written, so that clients and proxies keep the
/// connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Streams the events of a reply that has begun, to a prompt of `prompt_tokens` tokens.
pub fn streamed(mut format: Box<dyn Format>, events: LoggedEvents, prompt_tokens: usize) -> Response {
    let ping = format.ping().map_or_else(KeepAlive::new, |frame| KeepAlive::new().event(sent(frame)));
    let begin = format.begin(prompt_tokens);
    let rest =
        stream::unfold(events, |mut events| async move { events.next().await.map(|event| (event, events)) });
    let mut reply = Reply::default();
    let frames = stream::iter(begin)
        .chain(rest.flat_map(move |event| stream::iter(frames(format.as_mut(), &mut reply, &event))));
    let events = frames.map(|frame| Ok::<_, Infallible>(sent(frame)));
    Sse::new(events).keep_alive(ping.interval(KEEP_ALIVE)).into_response()
}

fn sent(Frame { name, data }: Frame) -> sse::Event {
    let event = sse::Event::default();
    let event = if let Some(name) = name { event.event(name) } else { event };
    event.data(data)
}

/// Events of the stream for one of the writer, with which `reply` goes on.
fn frames(format: &mut dyn Format, reply: &mut Reply, event: &Event) -> Vec<Frame> {
    let added = reply.extend(event);
    match (event, added) {
        (_, Some(added)) => format.part(reply, added, event),
        (Event::Next(finish), _) => format.next(&std::mem::take(reply), *finish),
        (Event::Ended(summary), _) => format.end(reply, summary),
        (Event::Failed(refusal), _) => vec![format.failed(refusal)],
        _ => Vec::new(),
    }
}
