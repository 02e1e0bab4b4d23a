//! A reply as server-sent events while it is written.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use serde_json::{Map, Value};

use crate::answer::{Call, Calls, Head};
use crate::routes::LoggedEvents;
use crate::writer::Event;

/// Interval of comments while nothing is written, so that proxies keep the connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Last event of a stream.
const DONE: &str = "[DONE]";

/// Streams the events of a reply that has begun; `usage` asks for its usage at the end.
pub fn streamed(head: Head, events: LoggedEvents, usage: bool) -> Response {
    let begin: Vec<String> = head.begin().map(|piece| line(piece, usage)).into_iter().collect();
    let rest =
        stream::unfold(events, |mut events| async move { events.next().await.map(|event| (event, events)) });
    let mut calls = Calls::default();
    let lines = stream::iter(begin)
        .chain(rest.flat_map(move |event| stream::iter(lines(&head, &mut calls, event, usage))));
    let events = lines.map(|line| Ok::<_, Infallible>(sse::Event::default().data(line)));
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// Chunks of an event; `calls` are those before it.
fn lines(head: &Head, calls: &mut Calls, event: Event, usage: bool) -> Vec<String> {
    calls.extend(&event);
    let of_call = |chunk: &dyn Fn(usize, &Call) -> Map<String, Value>| {
        calls.last().map(|(index, call)| line(chunk(index, call), usage)).into_iter().collect()
    };
    match event {
        Event::Started | Event::CallEnded => Vec::new(),
        Event::Text(text) => vec![line(head.text(&text), usage)],
        Event::Call(_) => of_call(&|index, call| head.call(index, call)),
        Event::Arguments(json) => of_call(&|index, _| head.arguments(index, &json)),
        Event::Ended(summary) => {
            let end = line(head.end(&summary, calls.are_complete(), usage), usage);
            let usage = usage.then(|| Value::from(head.usage(&summary)).to_string());
            [end].into_iter().chain(usage).chain([DONE.to_owned()]).collect()
        }
        Event::Failed(refusal) => vec![refusal.json().to_string()],
    }
}

/// Serialises a chunk; if the usage comes at the end, earlier chunks have a null usage.
fn line(mut piece: Map<String, Value>, usage: bool) -> String {
    if usage {
        piece.insert("usage".to_owned(), Value::Null);
    }
    Value::from(piece).to_string()
}
