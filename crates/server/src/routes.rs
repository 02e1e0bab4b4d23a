//! Endpoints of the server.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http_body_util::{BodyExt, Collected, LengthLimitError, Limited};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::completions::Kind;
use crate::embeddings::EmbeddingRequest;
use crate::format::{Format, now};
use crate::guard::{Guard, HEALTH, guard, owner};
use crate::log::{Logging, RequestLog, logged};
use crate::order::Order;
use crate::protocol::{Endpoint, ParsedRequest};
use crate::queue::{Queue, WAITING};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::stream::streamed;
use crate::writer::{Event, ReplySink, Writer};

/// Largest request body in bytes: more than the longest context holds, and with pictures.
const MAX_BODY: usize = 4 << 20;
const MAX_BODY_WITH_PICTURES: usize = 32 << 20;

/// Time within which a request must arrive.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Path of OpenAI's responses.
const RESPONSES: &str = "/v1/responses";

/// Path of OpenAI's embeddings.
const EMBEDDINGS: &str = "/v1/embeddings";

/// Path of Anthropic's messages, and beginning of those below it.
const MESSAGES: &str = "/v1/messages";

/// Message where the writer is gone.
const STOPPED: &str = "The engine stopped. The server's log has the reason.";

type Answer = Result<Response, Refusal>;

/// State shared by all requests.
#[derive(Clone)]
struct ServerState {
    writer: Arc<dyn Writer>,
    queue: Queue,
    /// Queue of prompts to count, which wait for no reply.
    counts: Queue,
    /// Queue of texts to embed.
    embeddings: Queue,
}

pub fn router(writer: Arc<dyn Writer>, who: Guard, log: RequestLog) -> Router {
    let reply = |endpoint: Endpoint| {
        post(move |State(state): State<ServerState>, request: Request| state.reply(request, endpoint))
    };
    let count = |State(state): State<ServerState>, request: Request| state.count(request);
    let embed = |State(state): State<ServerState>, request: Request| state.embed(request);
    let queue = || Queue::new(WAITING);
    Router::new()
        .route("/v1/chat/completions", reply(Endpoint::Completion(Kind::Chat)))
        .route("/v1/completions", reply(Endpoint::Completion(Kind::Text)))
        .route(RESPONSES, reply(Endpoint::Responses))
        .route(MESSAGES, reply(Endpoint::Messages))
        .route("/v1/messages/count_tokens", post(count))
        .route(EMBEDDINGS, post(embed))
        .route("/v1/models", get(list_models))
        .route("/v1/models/{*name}", get(one_model))
        .route(HEALTH, get(health))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(who, guard))
        .layer(from_fn(in_protocol))
        .layer(from_fn_with_state(log, logged))
        .with_state(ServerState { writer, queue: queue(), counts: queue(), embeddings: queue() })
}

/// Middleware that gives refusals the format of the path's protocol.
async fn in_protocol(request: Request, next: Next) -> Response {
    let is_messages = request.uri().path().starts_with(MESSAGES);
    let response = next.run(request).await;
    match response.extensions().get::<Refusal>() {
        Some(refusal) if is_messages => refusal.message_response(),
        _ => response,
    }
}

/// Clients try the base address before their first request.
async fn unknown_path(method: Method, uri: Uri) -> Answer {
    match uri.path() {
        "/" | "/v1" | "/v1/" if method == Method::HEAD => Ok(StatusCode::OK.into_response()),
        path => Err(Refusal::unknown_path(path)),
    }
}

async fn wrong_method(method: Method, uri: Uri) -> Answer {
    let path = uri.path();
    let takes_post = path.ends_with("completions")
        || [RESPONSES, EMBEDDINGS].contains(&path)
        || path.starts_with(MESSAGES);
    match takes_post {
        true if method == Method::HEAD => Ok(StatusCode::OK.into_response()),
        true => Err(Refusal::wrong_method("POST")),
        false => Err(Refusal::wrong_method("GET")),
    }
}

async fn list_models(State(state): State<ServerState>) -> axum::Json<Value> {
    let models = state.models();
    let embedding = state.writer.embedding_model().map(|name| model(&name, &["embedding"]));
    let models: Vec<Value> = models.iter().map(|name| state.entry(name)).chain(embedding).collect();
    axum::Json(json!({ "object": "list", "data": models }))
}

async fn one_model(State(state): State<ServerState>, Path(name): Path<String>) -> Answer {
    if let Some(embedding) = state.writer.embedding_model().filter(|embedding| *embedding == name) {
        return Ok(axum::Json(model(&embedding, &["embedding"])).into_response());
    }
    Ok(axum::Json(state.entry(&state.chosen(Some(&name))?)).into_response())
}

async fn health(State(state): State<ServerState>) -> Answer {
    state.chosen(None)?;
    Ok((StatusCode::OK, axum::Json(json!({ "status": "ok" }))).into_response())
}

impl ServerState {
    /// Models that requests can name, without duplicates; the loaded one is first.
    fn models(&self) -> Vec<String> {
        let loaded = self.writer.model();
        let others = self.writer.others().into_iter().filter(|name| Some(name) != loaded.as_ref());
        loaded.iter().cloned().chain(others).collect()
    }

    /// Returns the list entry of a model that replies. Whether one sees pictures that is not loaded
    /// is unknown.
    fn entry(&self, name: &str) -> Value {
        let sees = self.writer.sees() && self.writer.model().is_some_and(|loaded| loaded == name);
        model(name, if sees { &["completion", "multimodal"] } else { &["completion"] })
    }

    /// Returns the model that replies to a request for `wanted`; without a name, the loaded one.
    fn chosen(&self, wanted: Option<&str>) -> Result<String, Refusal> {
        let not_ready = || Refusal::not_ready("No model is loaded yet. Try again in a moment.");
        let loaded = self.writer.model().ok_or_else(not_ready)?;
        match wanted {
            None => Ok(loaded),
            Some(wanted) if wanted == loaded || self.writer.others().iter().any(|name| name == wanted) => {
                Ok(wanted.to_owned())
            }
            Some(wanted) => Err(Refusal::unknown_model(wanted, &loaded)),
        }
    }

    async fn reply(self, request: Request, endpoint: Endpoint) -> Answer {
        let logging = request.extensions().get::<Logging>().cloned();
        let ParsedRequest { model, order, streams, format } = self.read(request, endpoint).await?;
        self.chosen(model.as_deref())?;
        let slot = self.queue.acquire().await?;
        // Another model may have been loaded meanwhile.
        let model = self.chosen(model.as_deref())?;
        let format = format.of(model.clone());
        if let Some(logging) = &logging {
            logging.model(format.model());
        }
        let order = self.with_pictures(order).await?;
        let (sink, mut events) = ReplySink::new(slot);
        self.writer.begin(&model, order, sink);
        // The first event decides between a reply and an error status.
        let prompt_tokens = match events.recv().await {
            Some(Event::Failed(refusal)) => return Err(refusal),
            Some(Event::Started(tokens)) => tokens,
            _ => 0,
        };
        let events = LoggedEvents { events, logging };
        if streams { Ok(streamed(format, events, prompt_tokens)) } else { whole(format, events).await }
    }

    async fn read(&self, request: Request, endpoint: Endpoint) -> Result<ParsedRequest, Refusal> {
        let owner = owner(request.headers());
        let limit = if self.writer.sees() { MAX_BODY_WITH_PICTURES } else { MAX_BODY };
        let parsed = ParsedRequest::read(&arrived(request, limit).await?, endpoint)?;
        Ok(ParsedRequest { order: Order { owner, ..parsed.order }, ..parsed })
    }

    /// Reads the pictures of an order.
    async fn with_pictures(&self, mut order: Order) -> Result<Order, Refusal> {
        if order.pictures.is_empty() {
            return Ok(order);
        }
        let writer = Arc::clone(&self.writer);
        let read = spawn_blocking(move || {
            order.read_pictures(|file| writer.read_picture(file))?;
            Ok::<_, Refusal>(order)
        });
        read.await.map_err(|_| Refusal::failed(STOPPED))?
    }

    /// Counts the tokens of a request for a message, one request at a time.
    async fn count(self, request: Request) -> Answer {
        let ParsedRequest { model, order, .. } = self.read(request, Endpoint::Messages).await?;
        let model = self.chosen(model.as_deref())?;
        let slot = self.counts.acquire().await?;
        let order = self.with_pictures(order).await?;
        let writer = Arc::clone(&self.writer);
        let counted = spawn_blocking(move || {
            let _slot = slot;
            writer.count(&model, order)
        });
        let tokens = counted.await.map_err(|_| Refusal::failed(STOPPED))??;
        Ok(axum::Json(json!({ "input_tokens": tokens })).into_response())
    }

    /// Computes embeddings, for one request at a time.
    async fn embed(self, request: Request) -> Answer {
        let logging = request.extensions().get::<Logging>().cloned();
        let request = EmbeddingRequest::read(&arrived(request, MAX_BODY).await?)?;
        let _slot = self.embeddings.acquire().await?;
        let writer = Arc::clone(&self.writer);
        let loaded = spawn_blocking(move || writer.embedder());
        let embedder =
            loaded.await.map_err(|_| Refusal::failed(STOPPED))?.ok_or_else(Refusal::no_embedder)?;
        if let Some(wanted) = request.model.as_deref().filter(|wanted| *wanted != embedder.name()) {
            return Err(Refusal::unknown_model(wanted, embedder.name()));
        }
        if let Some(logging) = &logging {
            logging.model(embedder.name());
        }
        Ok(axum::Json(request.response(embedder).await?).into_response())
    }
}

/// Body of a request in JSON, of at most `limit` bytes.
async fn arrived(request: Request, limit: usize) -> Result<Bytes, Refusal> {
    if !is_json(request.headers()) {
        return Err(Refusal::wrong_type());
    }
    let body = Limited::new(request.into_body(), limit).collect();
    let arrived = timeout(ARRIVAL_TIMEOUT, body).await.map_err(|_| Refusal::too_slow())?;
    arrived.map(Collected::to_bytes).map_err(|error| match error.is::<LengthLimitError>() {
        true => Refusal::too_large(limit),
        false => Refusal::bad_request("The request ended early."),
    })
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

async fn whole(mut format: Box<dyn Format>, mut events: LoggedEvents) -> Answer {
    let (mut replies, mut reply) = (Vec::new(), Reply::default());
    while let Some(event) = events.next().await {
        match event {
            Event::Next(finish) => replies.push((std::mem::take(&mut reply), finish)),
            Event::Ended(summary) => {
                replies.push((reply, summary.finish));
                return Ok(axum::Json(format.whole(&replies, &summary)).into_response());
            }
            Event::Failed(refusal) => return Err(refusal),
            other => drop(reply.extend(&other)),
        }
    }
    Err(Refusal::failed(STOPPED))
}

/// Returns a model's entry in the list of models, with its capabilities by llama-server's names.
fn model(name: &str, capabilities: &[&str]) -> Value {
    json!({
        "id": name,
        "object": "model",
        "created": now(),
        "owned_by": "foretoken",
        "capabilities": capabilities,
    })
}
