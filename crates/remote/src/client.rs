//! What is asked of a server: its models, a reply. Waits for the answer on the calling thread; a person may stop that
//! at any moment, which closes the connection.

use std::future::Future;
use std::time::{Duration, Instant};

use foretoken_engine::trace::Finish;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::address::Address;
use crate::body::{Body, Question, THINKING};
use crate::error::{Error, Result};
use crate::refusal::{Refusal, no_answer};
use crate::reply::{Heard, Listener, Reply};

/// How often it is looked whether a person wants to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Bytes of an error that are read.
const MAX_ERROR: usize = 64 << 10;

/// Bytes of a list of models that are read.
const MAX_LIST: usize = 4 << 20;

/// Models of a list that are taken.
const MAX_MODELS: usize = 1000;

/// How long a server has.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// To take the connection.
    pub connect: Duration,
    /// To answer a question about itself.
    pub answer: Duration,
    /// To refuse a reply; who says nothing for longer is at work.
    pub refuse: Duration,
    /// To the first word of a reply: long prompts take long.
    pub first: Duration,
    /// From then on, between any bytes.
    pub between: Duration,
    /// After a reply's end, to say how many tokens it had, and that nothing more comes.
    pub end: Duration,
}

impl Default for Patience {
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
    /// What the server calls it.
    pub id: String,
    /// Tokens that prompt and reply may have together, where the server says.
    pub context: Option<u32>,
}

/// Asks one server.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    address: Address,
    /// With the key, which logs do not show.
    headers: HeaderMap,
    patience: Patience,
}

impl Client {
    /// # Errors
    /// `Error::KeyForm`; `Error::Internal` where there is no TLS.
    pub fn new(address: Address, key: Option<&str>, patience: Patience) -> Result<Self> {
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
            // Each question has a runtime of its own, and a connection does not outlive it.
            .pool_max_idle_per_host(0);
        let builder = if address.is_near() { builder.no_proxy() } else { builder };
        let http = builder.build().map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Self { http, address, headers, patience })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The server's models. `None` where `stop` said so.
    ///
    /// # Errors
    /// Any but those of a reply under way.
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
                Error::Garbled("its list of models is no list")
            }
        };
        let json: Value = serde_json::from_slice(&body).map_err(|_| garbled())?;
        let list = json["data"].as_array().ok_or_else(garbled)?;
        Ok(list.iter().filter_map(model).take(MAX_MODELS).collect())
    }

    /// Has the server reply and tells `on` of it, until the reply ends or `stop` says so, which is an ending and no
    /// error.
    ///
    /// # Errors
    /// Before [`Heard::Started`] the question was refused; afterwards what came of the reply stands.
    pub fn reply(
        &self,
        question: &Question<'_>,
        stop: &dyn Fn() -> bool,
        on: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Reply> {
        let mut listener = Listener::new(on);
        let finish = run(self.listen(question, &mut listener), stop)?;
        // Stopped before anything came, it is a reply that has no words.
        listener.start();
        Ok(listener.reply(finish.unwrap_or(Finish::Cancelled)))
    }

    async fn listen(&self, question: &Question<'_>, listener: &mut Listener<'_>) -> Result<Finish> {
        let mut response = self.begin(question, listener).await?;
        listener.start();
        let mut closing = None;
        while !listener.is_done() {
            if listener.has_finished() {
                closing.get_or_insert_with(|| Instant::now() + self.patience.end);
            }
            let wait = match closing {
                Some(closing) => closing.saturating_duration_since(Instant::now()),
                None if listener.has_text() => self.patience.between,
                None => self.patience.first,
            };
            match timeout(wait, response.chunk()).await {
                // What is said after the end is waited for, but not for ever.
                _ if wait.is_zero() => break,
                Err(_) if closing.is_some() => break,
                Err(_) => return Err(Error::Silent { seconds: wait.as_secs() }),
                Ok(Ok(Some(bytes))) => listener.take(&bytes)?,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    tracing::warn!("the reply was cut: {error:?}");
                    break;
                }
            }
        }
        listener.end()
    }

    /// Asks, and again without the extras where the server refuses one of them by name; where that is the one about
    /// thinking, without it first. Without the extras no reply can be gone on with.
    async fn begin(&self, question: &Question<'_>, listener: &mut Listener<'_>) -> Result<Response> {
        let mut asked = *question;
        loop {
            if question.continues() && !asked.extras {
                return Err(Error::CannotContinue);
            }
            match self.ask(&asked, listener).await {
                Err(Error::Extra { name: THINKING, .. }) if asked.thinking.is_some() => asked.thinking = None,
                Err(Error::Extra { name, .. }) if asked.extras => {
                    tracing::info!("the server refuses '{name}', so it gets OpenAI's own fields alone");
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

    /// An answer that is a stream of events.
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
            () if !refusal.said().text().is_empty() => refusal.error(),
            () => Error::Garbled("the reply is no stream of events"),
        })
    }

    /// # Errors
    /// Those of no answer, and of one that is none.
    async fn send(&self, request: RequestBuilder, model: Option<&str>) -> Result<Response> {
        let sent = request.headers(self.headers.clone()).send().await;
        let response = sent.map_err(|error| {
            tracing::warn!("no answer from {}: {error:?}", self.address.host());
            no_answer(&self.address, &error)
        })?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response);
        }
        let headers = response.headers().clone();
        // What does not come of its words changes nothing about the status.
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

    /// All of a body, or so much of it.
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

/// vLLM and SGLang say what a model's context holds, and llama-server what it was trained for.
fn model(json: &Value) -> Option<Model> {
    let id = json["id"].as_str().filter(|id| !id.is_empty() && id.len() < 500)?;
    let context = [&json["max_model_len"], &json["meta"]["n_ctx"], &json["meta"]["n_ctx_train"]];
    let context = context.into_iter().find_map(Value::as_u64).and_then(|tokens| u32::try_from(tokens).ok());
    Some(Model { id: id.to_owned(), context: context.filter(|&tokens| tokens > 0) })
}

/// Does `work` on this thread; `None` when `stop` said so first, which drops it and so closes its connection.
fn run<T>(work: impl Future<Output = Result<T>>, stop: &dyn Fn() -> bool) -> Result<Option<T>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Internal(error.to_string()))?;
    let stopped = async {
        while !stop() {
            sleep(LOOK).await;
        }
    };
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            () = stopped => Ok(None),
            done = work => done.map(Some),
        }
    });
    // A name that is being looked up cannot be given up, and is not waited for.
    runtime.shutdown_background();
    outcome
}
