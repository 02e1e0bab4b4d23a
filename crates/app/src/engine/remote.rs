//! Replies by a model on a remote server: its request and its reply.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foretoken_engine::speculation::Speculation;
use foretoken_engine::trace::{ReplySettings, Summary, Times};
use foretoken_forward::ORDER_OF_SUMS;
use foretoken_library::Secrets;
use foretoken_model::{ChatMessage, Error, KvDtype, Picture, Role, Thinking, Tool, ToolCall};
use foretoken_remote::{Question, Reply, ReplyEvent};
use foretoken_senses::picture::jpeg;
use serde_json::Value;

use super::replier::{Chat, Ending, Event, Replier};
use super::replying::{longest, system_prompt};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode, PromptSize, Settings};
use crate::models::servers::{self, Chosen};

/// Bytes per token before any server reported a count, and tokens that a template adds to a
/// message.
const TOKEN_BYTES: f64 = 4.0;
const MARKS: usize = 8;

/// Markers of reasoning in a reply, which the page folds.
const THINKING: Thinking = Thinking::KNOWN[0];

/// Writer of replies on remote servers.
pub(super) struct Remote {
    secrets: Secrets,
    /// Bytes per token in the last count of a server.
    token_bytes: f64,
    /// Addresses of servers that refused the fields beyond OpenAI's own.
    plain: BTreeSet<String>,
}

impl Remote {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self { secrets, token_bytes: TOKEN_BYTES, plain: BTreeSet::new() }
    }

    /// Updates the bytes per token from a server's count.
    fn learn(&mut self, messages: &[ChatMessage], tools: &[Tool], tokens: u32) {
        let text = tokens as usize - (messages.len() * MARKS).min(tokens as usize);
        if text > 0 {
            self.token_bytes = (bytes(messages, tools) as f64 / text as f64).clamp(1.0, 2.0 * TOKEN_BYTES);
        }
    }
}

impl Replier for Remote {
    fn reply(
        &mut self,
        chat: &Chat,
        settings: &Settings,
        cancel: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending> {
        let conversation = &chat.messages;
        let Chosen { server, model } = servers::chosen(settings)?;
        if !servers::sees(settings) && conversation.iter().any(|message| !message.pictures.is_empty()) {
            let reason = "this model's server says that it reads text only. Choose a model that sees";
            return Err(Error::Picture(reason.to_owned()).into());
        }
        let client = servers::client(server, &self.secrets)?;
        let messages = request_messages(conversation, settings);
        let question = Question {
            model,
            messages: &messages,
            tools: chat.tools.as_ref(),
            sampling: &settings.sampling,
            max_tokens: longest(settings.max_tokens),
            stop: &settings.stop,
            thinking: settings.thinking,
            extras: !self.plain.contains(&server.address),
            picture_url,
        };
        let label = servers::label(server, model);
        let mut text = ReplyText::default();
        let reply = client.reply(&question, &|| cancel.is_cancelled(), &mut |event| match event {
            ReplyEvent::Started => on(Event::Started { target: &label, draft: None }),
            ReplyEvent::WithoutExtras => drop(self.plain.insert(server.address.clone())),
            ReplyEvent::Thinking(delta) => text.think(delta, on),
            ReplyEvent::Text(delta) => text.write(delta, on),
            ReplyEvent::Call(name) => {
                let start = text.begin_call(on);
                on(Event::CallBegan { name, start });
            }
            ReplyEvent::Arguments(json) => on(Event::CallArguments { json }),
            ReplyEvent::CallEnded => on(Event::CallEnded { tokens: None }),
        })?;
        if let Some(usage) = reply.usage {
            self.learn(&messages, chat.offered(), usage.prompt);
        }
        Ok(Ending { finish: reply.finish, summary: summary(&reply, settings) })
    }

    /// Estimates the size: the protocol has no count before a reply.
    fn measure(&mut self, chat: &Chat, settings: &Settings) -> Result<PromptSize> {
        let conversation = &chat.messages;
        let context = servers::context(settings)?;
        let messages = request_messages(conversation, settings);
        let tokens = (bytes(&messages, chat.offered()) as f64 / self.token_bytes).ceil() as usize
            + messages.len() * MARKS;
        Ok(PromptSize { tokens, context })
    }
}

/// Text of a reply while it is received, with its reasoning in tags.
#[derive(Default)]
struct ReplyText {
    bytes: usize,
    thinks: bool,
    /// Bytes of text before the first call. Text after a call is left out, since local models write
    /// none there, either.
    calls_start: Option<usize>,
}

impl ReplyText {
    fn push(&mut self, delta: &str, on: &mut dyn FnMut(Event<'_>)) {
        if self.calls_start.is_none() {
            self.bytes += delta.len();
            on(Event::Text { delta });
        }
    }

    fn think(&mut self, delta: &str, on: &mut dyn FnMut(Event<'_>)) {
        if !std::mem::replace(&mut self.thinks, true) {
            self.push(THINKING.open, on);
        }
        self.push(delta, on);
    }

    fn write(&mut self, delta: &str, on: &mut dyn FnMut(Event<'_>)) {
        self.end_thinking(on);
        self.push(delta, on);
    }

    fn end_thinking(&mut self, on: &mut dyn FnMut(Event<'_>)) {
        if std::mem::take(&mut self.thinks) {
            self.push(THINKING.close, on);
            self.push("\n\n", on);
        }
    }

    /// Returns the bytes of text before all calls.
    fn begin_call(&mut self, on: &mut dyn FnMut(Event<'_>)) -> usize {
        self.end_thinking(on);
        *self.calls_start.get_or_insert(self.bytes)
    }
}

/// Returns the data URL of a picture; an empty one if it cannot be encoded, which servers refuse.
fn picture_url(picture: &Picture) -> String {
    let file = jpeg(picture).unwrap_or_default();
    format!("data:image/jpeg;base64,{}", STANDARD.encode(file))
}

/// Returns the messages to send: the system prompt, and the conversation without its reasoning.
fn request_messages(conversation: &[ChatMessage], settings: &Settings) -> Vec<ChatMessage> {
    let last = conversation.len().saturating_sub(1);
    let chat = conversation.iter().enumerate().map(|(at, message)| match message.role {
        // The last message is continued, including its reasoning.
        Role::Assistant if at < last => {
            ChatMessage { content: without_reasoning(&message.content), ..message.clone() }
        }
        _ => message.clone(),
    });
    system_prompt(settings).into_iter().chain(chat).collect()
}

/// Returns a reply without its reasoning.
fn without_reasoning(reply: &str) -> String {
    let after = |tags: Thinking| Some(reply.trim_start().strip_prefix(tags.open)?.split_once(tags.close)?.1);
    Thinking::KNOWN.into_iter().find_map(after).map_or(reply, str::trim_start).to_owned()
}

/// Bytes of messages, calls and tools.
fn bytes(messages: &[ChatMessage], tools: &[Tool]) -> usize {
    let call = |call: &ToolCall| call.name.len() + Value::from(call.arguments.clone()).to_string().len();
    let message =
        |message: &ChatMessage| message.content.len() + message.calls.iter().map(call).sum::<usize>();
    let tool = |tool: &Tool| tool.json().to_string().len();
    messages.iter().map(message).sum::<usize>() + tools.iter().map(tool).sum::<usize>()
}

/// Returns the statistics, if the server counted tokens. There are no rounds: the protocol does not
/// report them.
fn summary(reply: &Reply, settings: &Settings) -> Option<Summary> {
    let usage = reply.usage?;
    let ttft_ms = reply.ttft_ms?;
    let (drafted, judged, accepted) =
        reply.drafts.map_or((0, 0, 0), |drafts| (drafts.drafted, drafts.judged, drafts.accepted));
    let later_ms = reply.elapsed_ms - ttft_ms;
    Some(Summary {
        finish: reply.finish,
        prompt_tokens: usage.prompt,
        reused_tokens: usage.reused,
        restored_tokens: 0,
        tokens: usage.reply,
        rounds: 0,
        drafted,
        judged,
        accepted,
        acceptance_rate: (judged > 0).then(|| f64::from(accepted) / f64::from(judged)),
        tokens_per_round: 0.0,
        ttft_ms,
        tokens_per_second: (usage.reply > 1 && later_ms > 0.0)
            .then(|| f64::from(usage.reply - 1) * 1e3 / later_ms),
        elapsed_ms: reply.elapsed_ms,
        times: Times::default(),
        plain_tokens_per_second: None,
        order_of_sums: ORDER_OF_SUMS,
        kv_dtype: KvDtype::default(),
        unfinished: Vec::new(),
        speedup: None,
        settings: Some(ReplySettings {
            speculation: Speculation::off(),
            sampling: settings.sampling.clone(),
            stop: settings.stop.clone(),
            system_prompt: settings.system_prompt.clone(),
            thinking: settings.thinking,
        }),
    })
}

/// Error of features that only local models have.
pub(super) fn not_here() -> CommandError {
    let message =
        "This needs a model on this computer, but the chosen one is on a server. Choose a local model first.";
    CommandError::new(ErrorCode::NoTarget, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_of_earlier_replies_is_not_sent_but_a_continued_reply_keeps_it() {
        let message = |role, content: &str| ChatMessage::new(role, content);
        let thought = "<think>Hm.</think>\n\nA fox.";
        let conversation = [
            message(Role::User, "<think>a</think>"),
            message(Role::Assistant, thought),
            message(Role::User, "More"),
            message(Role::Assistant, thought),
        ];
        let settings = Settings { system_prompt: " Be brief. ".to_owned(), ..Settings::default() };
        let sent = request_messages(&conversation, &settings);
        let sent: Vec<_> = sent.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(sent, ["Be brief.", "<think>a</think>", "A fox.", "More", thought]);
        assert_eq!(without_reasoning("A <think>b</think>"), "A <think>b</think>");
        assert_eq!(without_reasoning("<think>cut"), "<think>cut");
    }
}
