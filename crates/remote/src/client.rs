//! Requests to a server: its models, a reply. Waits for the response on the calling thread; `stop`
//! can cancel a request at any time, which closes the connection.

use std::future::Future;
use std::time::{Duration, Instant};

use foretoken_engine::trace::Finish;
use foretoken_json::repaired;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::address::Address;
use crate::body::{Body, Question, THINKING};
use crate::error::{Error, Result};
use crate::refusal::{Refusal, connection_error};
use crate::reply::{Ending, Listener, Reply};
use crate::reply_event::ReplyEvent;

/// Interval at which `stop` is checked.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Most bytes of an error response that are read.
const MAX_ERROR: usize = 64 << 10;

/// Most bytes of a model list that are read.
const MAX_LIST: usize = 4 << 20;

/// Most models of a list that are kept.
const MAX_MODELS: usize = 1000;

/// Time limits of a server's responses.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// To accept the connection.
    pub connect: Duration,
    /// To respond to a request about models.
    pub answer: Duration,
    /// To refuse a reply; a server silent for longer is assumed to be working.
    pub refuse: Duration,
    /// To the first text of a reply: long prompts take long.
    pub first: Duration,
    /// Between any bytes after that.
    pub between: Duration,
    /// After a reply's finish reason and last text, to send the usage and close the stream.
    pub end: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connect: seconds(10),
            answer: seconds(20),
            refuse: seconds(2),
            first: seconds(30 * 60),
            between: seconds(3 * 60),
            end: seconds(5),
        }
    }
}

/// A model of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Name that the server uses.
    pub id: String,
    /// Context length in tokens, if the server reports it.
    pub context: Option<u32>,
    /// `true` if it sees pictures; `None` if the server does not report it.
    pub sees: Option<bool>,
}

/// Client of one server.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    address: Address,
    /// Headers with the key, which is kept out of logs.
    headers: HeaderMap,
    patience: Timeouts,
}

impl Client {
    /// # Errors
    /// Returns `Error::KeyForm`; `Error::Internal` if TLS is unavailable.
    pub fn new(address: Address, key: Option<&str>, patience: Timeouts) -> Result<Self> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let value = HeaderValue::from_str(&format!("Bearer {key}"));
            let mut value = value.map_err(|_| Error::KeyForm)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let builder = reqwest::Client::builder()
            .user_agent(concat!("foretoken/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(patience.connect)
            .redirect(Policy::none())
            // Each request has a runtime of its own, and no connection outlives it.
            .pool_max_idle_per_host(0);
        let builder = if address.is_local() { builder.no_proxy() } else { builder };
        let http = builder.build().map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Self { http, address, headers, patience })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the server's models; `None` if `stop` cancelled the request.
    ///
    /// # Errors
    /// Returns any error except those of a running reply.
    pub fn models(&self, stop: &dyn Fn() -> bool) -> Result<Option<Vec<Model>>> {
        let seconds = self.patience.answer.as_secs();
        let list = async {
            let list = timeout(self.patience.answer, self.list()).await;
            list.unwrap_or(Err(Error::Silent { seconds }))
        };
        run(list, stop)
    }

    async fn list(&self) -> Result<Vec<Model>> {
        let response = self.send(self.http.get(self.address.request("models")), None).await?;
        let (headers, status) = (response.headers().clone(), response.status());
        let body = self.read(response, MAX_LIST).await?;
        let garbled = || {
            let refusal = self.refusal(status, &headers, &body, None);
            if refusal.is_web_page() {
                Error::WebPage { host: self.address.host() }
            } else {
                Error::Garbled("the list of models is not a list")
            }
        };
        let json: Value = serde_json::from_str(&repaired(&body)).map_err(|_| garbled())?;
        let list = json["data"].as_array().ok_or_else(garbled)?;
        Ok(list.iter().filter_map(model).take(MAX_MODELS).collect())
    }

    /// Requests a reply and sends its events to `on`, until the reply ends or `stop` cancels it.
    /// Cancelling ends the reply without an error.
    ///
    /// # Errors
    /// An error before [`ReplyEvent::Started`] refused the request; after a later one, the text so
    /// far is valid.
    pub fn reply(
        &self,
        question: &Question<'_>,
        stop: &dyn Fn() -> bool,
        on: &mut dyn FnMut(ReplyEvent<'_>),
    ) -> Result<Reply> {
        let mut listener = Listener::new(on);
        let finish = run(self.listen(question, &mut listener), stop)?;
        // Cancelled before any text: an empty reply.
        listener.start();
        Ok(listener.reply(finish.unwrap_or(Finish::Cancelled)))
    }

    async fn listen(&self, question: &Question<'_>, listener: &mut Listener<'_>) -> Result<Finish> {
        let mut response = self.begin(question, listener).await?;
        listener.start();
        while !listener.is_done() {
            let closing = listener.finished_at().map(|(at, ending)| {
                at + match ending {
                    Ending::Complete => self.patience.end,
                    Ending::Uncertain => self.patience.between,
                }
            });
            let wait = match closing {
                Some(closing) => closing.saturating_duration_since(Instant::now()),
                None if listener.has_text() => self.patience.between,
                None => self.patience.first,
            };
            match timeout(wait, response.chunk()).await {
                // The usage may follow the end of the text, but not without a time limit.
                _ if wait.is_zero() => break,
                Err(_) if closing.is_some() => break,
                Err(_) => return Err(Error::Silent { seconds: wait.as_secs() }),
                Ok(Ok(Some(bytes))) => listener.take(&bytes)?,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    tracing::warn!("the reply was interrupted: {error:?}");
                    break;
                }
            }
        }
        listener.end()
    }

    /// Sends the request, and again without the extras if the server refuses one of them by name;
    /// if that is the reasoning switch, first without it alone. Continuing a reply needs the
    /// extras.
    async fn begin(&self, question: &Question<'_>, listener: &mut Listener<'_>) -> Result<Response> {
        let mut asked = *question;
        loop {
            if question.continues() && !asked.extras {
                return Err(Error::CannotContinue);
            }
            match self.ask(&asked, listener).await {
                Err(Error::Extra { name: THINKING, .. }) if asked.thinking.is_some() => asked.thinking = None,
                Err(Error::Extra { name, .. }) if asked.extras => {
                    tracing::info!("the server refuses '{name}', so only OpenAI's own fields are sent");
                    asked.extras = false;
                }
                Ok(answer) => {
                    if asked.extras != question.extras {
                        listener.leave_out_extras();
                    }
                    return Ok(answer);
                }
                error => return error,
            }
        }
    }

    async fn ask(&self, question: &Question<'_>, listener: &mut Listener<'_>) -> Result<Response> {
        let body = serde_json::to_string(&Body::of(question));
        let body = body.map_err(|error| Error::Internal(error.to_string()))?;
        let request = self.http.post(self.address.request("chat/completions"));
        let request =
            request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "text/event-stream").body(body);
        let mut sent = std::pin::pin!(self.send(request, Some(question.model)));
        let answer = match timeout(self.patience.refuse, &mut sent).await {
            Ok(answer) => answer,
            Err(_) => {
                listener.start();
                let wait = self.patience.first;
                timeout(wait, sent).await.unwrap_or(Err(Error::Silent { seconds: wait.as_secs() }))
            }
        };
        self.stream(answer?).await
    }

    /// Checks that a response is a stream of events.
    async fn stream(&self, response: Response) -> Result<Response> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return Ok(response);
        }
        let (headers, status) = (response.headers().clone(), response.status());
        let wait = self.patience.answer;
        let body = timeout(wait, self.read(response, MAX_ERROR)).await;
        let body = body.unwrap_or(Err(Error::Silent { seconds: wait.as_secs() }))?;
        let refusal = self.refusal(status, &headers, &body, None);
        Err(match () {
            () if refusal.is_web_page() => Error::WebPage { host: self.address.host() },
            () if !refusal.detail().text().is_empty() => refusal.error(),
            () => Error::Garbled("the reply is not an event stream"),
        })
    }

    /// # Errors
    /// Returns errors of the connection, and those of error responses.
    async fn send(&self, request: RequestBuilder, model: Option<&str>) -> Result<Response> {
        let sent = request.headers(self.headers.clone()).send().await;
        let response = sent.map_err(|error| {
            tracing::warn!("no response from {}: {error:?}", self.address.host());
            connection_error(&self.address, &error)
        })?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response);
        }
        let headers = response.headers().clone();
        // A failure to read the body does not change the status.
        let body = timeout(self.patience.answer, self.read(response, MAX_ERROR)).await;
        let body = body.unwrap_or(Ok(Vec::new())).unwrap_or_default();
        Err(self.refusal(status, &headers, &body, model).error())
    }

    fn refusal<'a>(
        &'a self,
        status: StatusCode,
        headers: &'a HeaderMap,
        body: &'a [u8],
        model: Option<&'a str>,
    ) -> Refusal<'a> {
        let keyed = !self.headers.is_empty();
        Refusal { address: &self.address, status: status.as_u16(), headers, body, keyed, model }
    }

    /// Reads a body, at most `limit` bytes.
    async fn read(&self, mut response: Response, limit: usize) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|_| Error::AnswerCut)? {
            body.extend_from_slice(&bytes[..bytes.len().min(limit - body.len())]);
            if body.len() == limit {
                break;
            }
        }
        Ok(body)
    }
}

/// Parses a model. vLLM and SGLang report the context length, llama-server the training context.
fn model(json: &Value) -> Option<Model> {
    let id = json["id"].as_str().filter(|id| !id.is_empty() && id.len() < 500)?;
    let context = [&json["max_model_len"], &json["meta"]["n_ctx"], &json["meta"]["n_ctx_train"]];
    let context = context.into_iter().find_map(Value::as_u64).and_then(|tokens| u32::try_from(tokens).ok());
    Some(Model { id: id.to_owned(), context: context.filter(|&tokens| tokens > 0), sees: sees(json) })
}

/// Reads whether a model sees pictures: llama-server and Foretoken list capabilities, OpenRouter
/// lists kinds of input.
fn sees(json: &Value) -> Option<bool> {
    let lists = [&json["capabilities"], &json["architecture"]["input_modalities"]];
    let names = lists.into_iter().find_map(Value::as_array)?.iter().filter_map(Value::as_str);
    Some(names.into_iter().any(|name| ["multimodal", "vision", "image"].contains(&name)))
}

/// Runs `work` on this thread; returns `None` if `stop` cancelled it, which drops it and closes its
/// connection.
fn run<T>(work: impl Future<Output = Result<T>>, stop: &dyn Fn() -> bool) -> Result<Option<T>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Internal(error.to_string()))?;
    let stopped = async {
        while !stop() {
            sleep(STOP_CHECK_INTERVAL).await;
        }
    };
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            () = stopped => Ok(None),
            done = work => done.map(Some),
        }
    });
    // A running name lookup cannot be cancelled, so it is not waited for.
    runtime.shutdown_background();
    outcome
}
