//! Log of the latest requests, in memory. Contains no text of a prompt or reply.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use foretoken_engine::trace::Summary;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::refusal::Refusal;

/// Most requests that are kept.
pub const MAX_KEPT: usize = 200;

/// Most characters of a method, a path or a model's name that are kept: clients may send any
/// length.
const MAX_CHARS: usize = 120;

/// A request to the local server. Has no text of its prompt or reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerRequest {
    /// Counts from 0 since the server started.
    #[ts(type = "number")]
    pub number: u64,
    /// Milliseconds since 1970.
    #[ts(type = "number")]
    pub started_at: u64,
    /// HTTP method, for example "POST".
    pub method: String,
    /// Path, for example "/v1/chat/completions".
    pub path: String,
    /// Name of the model that replies; `None` for requests without a reply.
    pub model: Option<String>,
    /// HTTP status; `None` until the response begins, and if the client left before that.
    pub status: Option<u16>,
    /// Tokens of the prompt; `None` without a finished reply.
    pub prompt_tokens: Option<u32>,
    /// Tokens of the reply; `None` without a finished reply.
    pub tokens: Option<u32>,
    /// Decoding speed after the first round; `None` without a finished reply, or one of a single
    /// round.
    pub tokens_per_second: Option<f64>,
    /// Milliseconds until the response was complete or its client left; `None` before that.
    pub elapsed_ms: Option<f64>,
}

/// The latest [`MAX_KEPT`] requests, shared by the server's connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestLog(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    /// Number of the next request.
    next: u64,
    kept: VecDeque<ServerRequest>,
}

impl RequestLog {
    /// Returns the kept requests, the latest first.
    pub fn latest(&self) -> Vec<ServerRequest> {
        self.entries().kept.iter().rev().cloned().collect()
    }

    fn begin(&self, method: &str, path: &str) -> Logging {
        let mut entries = self.entries();
        let number = entries.next;
        entries.next += 1;
        if entries.kept.len() == MAX_KEPT {
            entries.kept.pop_front();
        }
        entries.kept.push_back(ServerRequest {
            number,
            started_at: now(),
            method: shortened(method),
            path: shortened(path),
            model: None,
            status: None,
            prompt_tokens: None,
            tokens: None,
            tokens_per_second: None,
            elapsed_ms: None,
        });
        Logging(Arc::new(Open { log: self.clone(), number, begun: Instant::now() }))
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Entries are consistent between two changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

/// Entry of a running request. The request has ended when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Logging(Arc<Open>);

#[derive(Debug)]
struct Open {
    log: RequestLog,
    number: u64,
    begun: Instant,
}

impl Logging {
    pub fn model(&self, name: &str) {
        self.0.change(|entry| entry.model = Some(shortened(name)));
    }

    /// Records the tokens of a finished reply.
    pub fn ended(&self, summary: &Summary) {
        self.0.change(|entry| {
            entry.prompt_tokens = Some(summary.prompt_tokens);
            entry.tokens = Some(summary.tokens);
            entry.tokens_per_second = summary.tokens_per_second;
        });
    }

    /// Records a failure after the response began.
    pub fn failed(&self, refusal: &Refusal) {
        self.0.change(|entry| entry.status = Some(refusal.status().as_u16()));
    }
}

impl Open {
    /// Changes the entry, unless newer ones have replaced it.
    fn change(&self, change: impl FnOnce(&mut ServerRequest)) {
        let mut entries = self.log.entries();
        if let Some(entry) = entries.kept.iter_mut().find(|entry| entry.number == self.number) {
            change(entry);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let elapsed = self.begun.elapsed().as_secs_f64() * 1000.0;
        self.change(|entry| entry.elapsed_ms = Some(elapsed));
    }
}

/// Middleware that logs each request, including refused ones. Handlers get its [`Logging`] from the
/// extensions.
pub(crate) async fn logged(State(log): State<RequestLog>, mut request: Request, next: Next) -> Response {
    let logging = log.begin(request.method().as_str(), request.uri().path());
    request.extensions_mut().insert(logging.clone());
    let response = next.run(request).await;
    logging.0.change(|entry| entry.status = entry.status.or(Some(response.status().as_u16())));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_requests_are_kept_and_long_fields_are_shortened() {
        let log = RequestLog::default();
        let first = log.begin("GET", "/v1/models");
        for _ in 0..MAX_KEPT {
            log.begin("POST", &"/x".repeat(MAX_CHARS));
        }
        // The entry was removed, so no other request's entry changes.
        first.model("late");
        drop(first);
        let kept = log.latest();
        assert_eq!(kept.len(), MAX_KEPT);
        assert_eq!((kept[0].number, kept[MAX_KEPT - 1].number), (MAX_KEPT as u64, 1));
        assert!(kept.iter().all(|entry| entry.path.len() == MAX_CHARS && entry.model.is_none()));
    }

    #[test]
    fn a_request_has_ended_when_nothing_holds_its_entry() {
        let log = RequestLog::default();
        let logging = log.begin("POST", "/v1/completions");
        let stream = logging.clone();
        drop(logging);
        assert_eq!(log.latest()[0].elapsed_ms, None);
        drop(stream);
        assert!(log.latest()[0].elapsed_ms.is_some());
    }
}
