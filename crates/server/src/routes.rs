//! Endpoints of the server.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::answer::{Calls, Head, model};
use crate::body::{Endpoint, ParsedRequest};
use crate::guard::{Guard, HEALTH, guard, owner};
use crate::log::{Logging, RequestLog, logged};
use crate::order::Order;
use crate::queue::{Queue, WAITING};
use crate::refusal::Refusal;
use crate::stream::streamed;
use crate::writer::{Event, ReplySink, Writer};

/// Largest request body in bytes: more than the longest context holds.
const MAX_BODY: usize = 4 << 20;

/// Time within which a request must arrive.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(30);

type Answer = Result<Response, Refusal>;

/// State shared by all requests.
#[derive(Clone)]
struct ServerState {
    writer: Arc<dyn Writer>,
    queue: Queue,
}

pub fn router(writer: Arc<dyn Writer>, who: Guard, log: RequestLog) -> Router {
    let chat = |State(state): State<ServerState>, request: Request| state.reply(request, Endpoint::Chat);
    let completion =
        |State(state): State<ServerState>, request: Request| state.reply(request, Endpoint::Completion);
    let wrong_method = |uri: Uri| async move {
        Refusal::wrong_method(if uri.path().ends_with("completions") { "POST" } else { "GET" })
    };
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completion))
        .route("/v1/models", get(list_models))
        .route("/v1/models/{*name}", get(one_model))
        .route(HEALTH, get(health))
        .fallback(|uri: Uri| async move { Refusal::unknown_path(uri.path()) })
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(who, guard))
        .layer(from_fn_with_state(log, logged))
        .with_state(ServerState { writer, queue: Queue::new(WAITING) })
}

async fn list_models(State(state): State<ServerState>) -> axum::Json<Value> {
    let models: Vec<Value> = state.writer.model().iter().map(|name| model(name)).collect();
    axum::Json(json!({ "object": "list", "data": models }))
}

async fn one_model(State(state): State<ServerState>, Path(name): Path<String>) -> Answer {
    Ok(axum::Json(model(&state.loaded(Some(&name))?)).into_response())
}

async fn health(State(state): State<ServerState>) -> Answer {
    state.loaded(None)?;
    Ok((StatusCode::OK, axum::Json(json!({ "status": "ok" }))).into_response())
}

impl ServerState {
    /// Returns the loaded model, if `wanted` is it or `None`.
    fn loaded(&self, wanted: Option<&str>) -> Result<String, Refusal> {
        let not_ready = || Refusal::not_ready("No model is loaded yet. Try again in a moment.");
        let loaded = self.writer.model().ok_or_else(not_ready)?;
        match wanted {
            Some(wanted) if wanted != loaded => Err(Refusal::unknown_model(wanted, &loaded)),
            _ => Ok(loaded),
        }
    }

    async fn reply(self, request: Request, endpoint: Endpoint) -> Answer {
        let logging = request.extensions().get::<Logging>().cloned();
        let ParsedRequest { model, order, streams, streams_usage } = read(request, endpoint).await?;
        self.loaded(model.as_deref())?;
        let slot = self.queue.acquire().await?;
        // Another model may have been loaded meanwhile.
        let head = Head::new(endpoint, self.loaded(model.as_deref())?);
        if let Some(logging) = &logging {
            logging.model(head.model());
        }
        let (sink, mut events) = ReplySink::new(slot);
        self.writer.begin(order, sink);
        // The first event decides between a reply and an error status.
        if let Some(Event::Failed(refusal)) = events.recv().await {
            return Err(refusal);
        }
        let events = LoggedEvents { events, logging };
        if streams { Ok(streamed(head, events, streams_usage)) } else { whole(&head, events).await }
    }
}

async fn read(request: Request, endpoint: Endpoint) -> Result<ParsedRequest, Refusal> {
    if !is_json(request.headers()) {
        return Err(Refusal::wrong_type());
    }
    let owner = owner(request.headers());
    let arrived =
        timeout(ARRIVAL_TIMEOUT, Bytes::from_request(request, &())).await.map_err(|_| Refusal::too_slow())?;
    let body = arrived.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::too_large(MAX_BODY),
        _ => Refusal::bad_request("The request ended early."),
    })?;
    let parsed = ParsedRequest::read(&body, endpoint)?;
    Ok(ParsedRequest { order: Order { owner, ..parsed.order }, ..parsed })
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// Events of a reply. Reading them writes the reply's outcome to the request log.
pub struct LoggedEvents {
    events: UnboundedReceiver<Event>,
    logging: Option<Logging>,
}

impl LoggedEvents {
    /// Returns the next event; `None` after the last.
    pub async fn next(&mut self) -> Option<Event> {
        let event = self.events.recv().await;
        match (&event, &self.logging) {
            (Some(Event::Ended(summary)), Some(logging)) => logging.ended(summary),
            (Some(Event::Failed(refusal)), Some(logging)) => logging.failed(refusal),
            _ => {}
        }
        event
    }
}

async fn whole(head: &Head, mut events: LoggedEvents) -> Answer {
    let (mut text, mut calls) = (String::new(), Calls::default());
    while let Some(event) = events.next().await {
        match event {
            Event::Text(more) => text.push_str(&more),
            Event::Ended(summary) => {
                return Ok(axum::Json(head.whole(&text, &calls, &summary)).into_response());
            }
            Event::Failed(refusal) => return Err(refusal),
            other => calls.extend(&other),
        }
    }
    Err(Refusal::failed("The engine stopped. The server's log has the reason."))
}
