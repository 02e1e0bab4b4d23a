//! Replies by a model on a server elsewhere: which one the settings name, what is asked of it, and its reply in the
//! application's terms.

use std::collections::BTreeSet;

use foretoken_engine::model::{ChatMessage, Role, Thinking};
use foretoken_engine::speculation::Speculation;
use foretoken_engine::trace::{ReplySettings, Summary, Times};
use foretoken_library::Secrets;
use foretoken_remote::{Question, Reply, ReplyEvent};

use super::replying::{longest, system_prompt};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode, PromptSize, Settings};
use crate::replier::{Ending, Event, Replier};
use crate::servers::{self, Chosen};

/// Bytes of a token before any server has counted, and tokens that a template puts around a message.
const TOKEN_BYTES: f64 = 4.0;
const MARKS: usize = 8;

/// Where the thinking is in a reply, as the page folds it.
const THINKING: Thinking = Thinking::KNOWN[0];

/// See the module.
pub(super) struct Remote {
    secrets: Secrets,
    /// Bytes of a token, by what a server counted last.
    token_bytes: f64,
    /// Addresses of servers that refused the fields that are not OpenAI's own.
    plain: BTreeSet<String>,
}

impl Remote {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self { secrets, token_bytes: TOKEN_BYTES, plain: BTreeSet::new() }
    }

    /// Learns how many bytes the tokens have that a server counted.
    fn learn(&mut self, messages: &[ChatMessage], tokens: u32) {
        let text = tokens as usize - (messages.len() * MARKS).min(tokens as usize);
        if text > 0 {
            self.token_bytes = (bytes(messages) as f64 / text as f64).clamp(1.0, 2.0 * TOKEN_BYTES);
        }
    }
}

impl Replier for Remote {
    fn reply(
        &mut self,
        conversation: &[ChatMessage],
        settings: &Settings,
        cancel: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending> {
        let Chosen { server, model } = servers::chosen(settings)?;
        let client = servers::client(server, &self.secrets)?;
        let messages = asked(conversation, settings);
        let question = Question {
            model,
            messages: &messages,
            sampling: &settings.sampling,
            max_tokens: longest(settings.max_tokens),
            thinking: settings.thinking,
            extras: !self.plain.contains(&server.address),
        };
        let label = servers::label(server, model);
        let mut thinks = false;
        let reply = client.reply(&question, &|| cancel.is_cancelled(), &mut |heard| match heard {
            ReplyEvent::Started => on(Event::Started { target: &label, draft: None }),
            ReplyEvent::WithoutExtras => drop(self.plain.insert(server.address.clone())),
            ReplyEvent::Thinking(text) => {
                if !std::mem::replace(&mut thinks, true) {
                    on(Event::Text { delta: THINKING.open });
                }
                on(Event::Text { delta: text });
            }
            ReplyEvent::Text(text) => {
                if std::mem::take(&mut thinks) {
                    on(Event::Text { delta: THINKING.close });
                    on(Event::Text { delta: "\n\n" });
                }
                on(Event::Text { delta: text });
            }
        })?;
        if let Some(usage) = reply.usage {
            self.learn(&messages, usage.prompt);
        }
        Ok(Ending { finish: reply.finish, summary: summary(&reply, settings) })
    }

    /// By an estimate: the protocol does not count before it replies.
    fn measure(&mut self, conversation: &[ChatMessage], settings: &Settings) -> Result<PromptSize> {
        let context = servers::context(settings)?;
        let messages = asked(conversation, settings);
        let tokens = (bytes(&messages) as f64 / self.token_bytes).ceil() as usize + messages.len() * MARKS;
        Ok(PromptSize { tokens, context })
    }
}

/// What is sent: the system prompt, and the conversation without what was thought in it.
fn asked(conversation: &[ChatMessage], settings: &Settings) -> Vec<ChatMessage> {
    let last = conversation.len().saturating_sub(1);
    let said = conversation.iter().enumerate().map(|(at, message)| match message.role {
        // The last one is gone on with, from where it is.
        Role::Assistant if at < last => ChatMessage { content: spoken(&message.content), ..message.clone() },
        _ => message.clone(),
    });
    system_prompt(settings).into_iter().chain(said).collect()
}

/// A reply without what was thought before it.
fn spoken(reply: &str) -> String {
    let after = |tags: Thinking| Some(reply.trim_start().strip_prefix(tags.open)?.split_once(tags.close)?.1);
    Thinking::KNOWN.into_iter().find_map(after).map_or(reply, str::trim_start).to_owned()
}

fn bytes(messages: &[ChatMessage]) -> usize {
    messages.iter().map(|message| message.content.len()).sum()
}

/// Its numbers, where the server counted its tokens. It has no rounds: the protocol does not tell of them.
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
        speedup: None,
        settings: Some(ReplySettings {
            speculation: Speculation::off(),
            sampling: settings.sampling.clone(),
            system_prompt: settings.system_prompt.clone(),
            thinking: settings.thinking,
        }),
    })
}

/// Said of what only models on this computer can do.
pub(super) fn not_here() -> CommandError {
    let message =
        "This needs a model on this computer, and the chosen one is on a server: choose another first.";
    CommandError::new(ErrorCode::NoTarget, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_thought_before_earlier_replies_is_not_sent_and_what_is_gone_on_with_is() {
        let message = |role, content: &str| ChatMessage { role, content: content.to_owned() };
        let thought = "<think>Hm.</think>\n\nA fox.";
        let conversation = [
            message(Role::User, "<think>a</think>"),
            message(Role::Assistant, thought),
            message(Role::User, "More"),
            message(Role::Assistant, thought),
        ];
        let settings = Settings { system_prompt: " Be brief. ".to_owned(), ..Settings::default() };
        let sent = asked(&conversation, &settings);
        let sent: Vec<_> = sent.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(sent, ["Be brief.", "<think>a</think>", "A fox.", "More", thought]);
        assert_eq!(spoken("A <think>b</think>"), "A <think>b</think>");
        assert_eq!(spoken("<think>cut"), "<think>cut");
    }
}
