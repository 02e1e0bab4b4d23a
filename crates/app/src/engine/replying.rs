//! Replies by the models on this computer: the conversation in the target's template, and the
//! draft.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use foretoken_engine::decoder::{Progress, Request};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::session::{Form, Session, estimated_tokens};
use foretoken_engine::speculation::{DrafterChoice, Speculation};
use foretoken_engine::trace::{Finish, Round};
use foretoken_model::sampling::Mode;
use foretoken_model::token::TokenId;
use foretoken_model::{
    CallParser, ChatMessage, Conversation, Error as EngineError, Piece, Role, Special, Tokenizer, Tool,
};
use foretoken_store::CallTokens;

use super::local::{Local, Target};
use super::prefill_rate::PrefillRate;
use super::replier::{Chat, Ending, Event, Replier};
use super::why::Reporter;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{CommandError, DRAFT_NGRAM, ErrorCode, PromptSize, Settings, WordBias};

impl Replier for Local {
    fn reply(
        &mut self,
        chat: &Chat,
        settings: &Settings,
        cancel: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending> {
        let speculation = speculation(self.chosen_draft(), &settings.speculation);
        let Target { entry, session, .. } = self.loaded()?;
        let (target, draft) = (entry.label.clone(), session.draft.drafting().map(str::to_owned));
        let started = Event::Started { target: &target, draft: draft.as_deref() };
        let request =
            match request(session, &chat.messages, chat.offered(), settings, &|| cancel.is_cancelled()) {
                // The question stays, as after a stop during the reply.
                Err(error) if error.code == ErrorCode::Cancelled => {
                    on(started);
                    return Ok(Ending { finish: Finish::Cancelled, summary: None });
                }
                request => Request { speculation, ..request? },
            };
        request.admit(session.context())?;
        let (request, mut calls) = with_calls(session, chat, request)?;
        on(started);
        let seen = session.see(&Conversation::of(&chat.messages, None), &mut |share| {
            on(Event::Pictures { share });
            cancel.flow()
        });
        match seen {
            Err(EngineError::Cancelled) => return Ok(Ending { finish: Finish::Cancelled, summary: None }),
            seen => seen?,
        }

        let mut reporter = Reporter::new(draft.as_deref().unwrap_or_default(), &self.status.get().why);
        let status = Arc::clone(&self.status);
        let mut prefill_rate = PrefillRate::default();
        let reply = self.loaded()?.session.reply(&request, &mut |progress| {
            match progress {
                Progress::Prompt { done, total } => {
                    if let Some(rate) = prefill_rate.update(done, Instant::now()) {
                        status.update(|status| status.reading_rate = Some(rate));
                    }
                    on(Event::Prompt { done, total });
                }
                Progress::Round(round) => {
                    reporter.observe(round, &status);
                    let text: String = round.emitted().map(|(_, text)| text).collect();
                    on(Event::Round(round));
                    on(Event::Text { delta: &text });
                    if let Some(calls) = &mut calls {
                        calls.push(round, on);
                    }
                }
            }
            cancel.flow()
        });
        let failure = self.loaded()?.session.draft.drafters.failure();
        if let Some(why) = reporter.end(failure.as_deref(), &self.status.get().why) {
            self.status.update(|status| status.why = why);
        }
        let mut summary = reply.map_err(|error| self.failed(error))?.summary;
        if let Some(written_with) = &mut summary.settings {
            written_with.system_prompt.clone_from(&settings.system_prompt);
            written_with.thinking = settings.thinking;
        }
        Ok(Ending { finish: summary.finish, summary: Some(summary) })
    }

    fn measure(&mut self, chat: &Chat, settings: &Settings) -> Result<PromptSize> {
        let session = &self.loaded()?.session;
        if let Some(size) = excess(session, &chat.messages) {
            return Ok(size);
        }
        let tokens = request(session, &chat.messages, chat.offered(), settings, &|| false)?.prompt.len();
        Ok(PromptSize { tokens, context: session.context() })
    }
}

impl Local {
    /// Saves the drafters' statistics for the next start.
    pub(super) fn save_stats(&self) {
        self.target.iter().for_each(|target| target.session.save_stats());
    }
}

/// Builds the target's request: the conversation and `tools` in its template, with sampling and
/// draft settings. `stop` ends encoding early.
///
/// # Errors
/// Returns template errors; `PromptTooLong` if that is known without encoding; `Cancelled`.
pub(super) fn request(
    session: &Session,
    messages: &[ChatMessage],
    tools: &[Tool],
    settings: &Settings,
    stop: &dyn Fn() -> bool,
) -> Result<Request> {
    if let Some(size @ PromptSize { tokens, context }) = excess(session, messages) {
        let message = format!(
            "the prompt is too long: about {tokens} tokens, and the model's context window holds {context}. \
             Shorten it, attach less, or start a new conversation."
        );
        return Err(CommandError {
            prompt: Some(size),
            ..CommandError::new(ErrorCode::PromptTooLong, message)
        });
    }
    let continued = messages.last().filter(|message| message.role == Role::Assistant);
    let (continues, unfinished) =
        continued.map_or((false, Vec::new()), |reply| (!reply.content.is_empty(), reply.unfinished.clone()));
    let messages: Vec<ChatMessage> =
        system_prompt(settings).into_iter().chain(messages.iter().cloned()).collect();
    let conversation = Conversation { messages: &messages, tools, thinking: settings.thinking };
    let mut sampling = settings.sampling.clone();
    if sampling.seed.is_some() {
        // A fixed seed asks for the same text again, even with another draft.
        sampling.mode = Mode::Reproducible;
    }
    sampling.logit_bias.extend(biases(session.tokenizer(), &settings.word_bias));
    Ok(Request {
        sampling,
        speculation: settings.speculation.clone(),
        max_tokens: longest(settings.max_tokens),
        stop: settings.stop.clone(),
        continues,
        unfinished,
        ..Request::new(session.conversation_unless(&conversation, stop)?)
    })
}

/// Returns the biases of the tokens that are one of `words`, with or without a space before it. A
/// word of several tokens has none: its parts are parts of other words, too.
fn biases(tokenizer: &Tokenizer, words: &[WordBias]) -> BTreeMap<TokenId, f32> {
    let mut biases = BTreeMap::new();
    for WordBias { word, bias } in words {
        let tokens = word_tokens(tokenizer, word);
        biases.extend(tokens.into_iter().map(|token| (token, *bias)));
    }
    biases
}

/// Returns the tokens that are `word`, with or without a space before it.
pub(crate) fn word_tokens(tokenizer: &Tokenizer, word: &str) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    for text in [word.to_owned(), format!(" {word}")] {
        if let Ok(&[token]) = tokenizer.encode(&text, Special::Ignore).as_deref()
            && !tokens.contains(&token)
        {
            tokens.push(token);
        }
    }
    tokens
}

/// Calls of a reply while it is written.
pub(super) struct Calls {
    parser: CallParser,
    /// Bytes of text so far, outside of calls and in all.
    text: usize,
    read: usize,
    /// Drafters of the tokens since the last call, each with the bytes of text up to its end.
    tokens: VecDeque<(usize, Option<DrafterKind>)>,
}

impl Calls {
    fn new(parser: CallParser) -> Self {
        Self { parser, text: 0, read: 0, tokens: VecDeque::new() }
    }

    fn push(&mut self, round: &Round, on: &mut dyn FnMut(Event<'_>)) {
        for (token, text, drafter) in round.written() {
            self.read += text.len();
            self.tokens.push_back((self.read, drafter));
            for piece in self.parser.push_tokens(std::iter::once((token, text))) {
                match piece {
                    Piece::Text(text) => self.text += text.len(),
                    Piece::Call(name) => on(Event::CallBegan { name: &name, start: self.text }),
                    Piece::Arguments(json) => on(Event::CallArguments { json: &json }),
                    Piece::End => on(Event::CallEnded { tokens: Some(self.take_tokens()) }),
                }
            }
            // Tokens of the text before the calls.
            while self.tokens.pop_front_if(|(end, _)| *end <= self.text).is_some() {}
        }
    }

    /// Counts the tokens of the call that ended.
    fn take_tokens(&mut self) -> CallTokens {
        let mut tokens = CallTokens::default();
        for (_, drafter) in self.tokens.drain(..) {
            tokens.written += 1;
            tokens.forced += u32::from(drafter == Some(DrafterKind::Forced));
            tokens.drafted += u32::from(drafter.is_some_and(|drafter| drafter != DrafterKind::Forced));
        }
        tokens
    }
}

/// Constrains a reply to text and valid calls, if it may call tools. A reply that is continued
/// makes no calls: its grammar would begin again.
pub(super) fn with_calls(
    session: &Session,
    chat: &Chat,
    request: Request,
) -> Result<(Request, Option<Calls>)> {
    let is_continued = chat.messages.last().is_some_and(|last| last.role == Role::Assistant);
    match (&chat.tools, session.form().as_ref()) {
        (Some(asked), Form::Chat(template)) if !is_continued => {
            let (request, parser) = asked.constrained(session, template, request)?;
            Ok((request, Some(Calls::new(parser))))
        }
        _ => Ok((request, None)),
    }
}

/// Returns the approximate size of a prompt that cannot fit: megabytes of attachments are not
/// rendered and encoded to find that out. `None` if it must be counted.
fn excess(session: &Session, messages: &[ChatMessage]) -> Option<PromptSize> {
    // Templates leave out the reasoning of replies.
    let asked = messages.iter().filter(|message| message.role != Role::Assistant);
    let (bytes, context) = (asked.map(|message| message.content.len()).sum(), session.context());
    let size = PromptSize { tokens: estimated_tokens(bytes).max(context), context };
    (session.tokenizer().at_least(bytes) > context).then_some(size)
}

/// Returns the system prompt of a conversation.
pub(super) fn system_prompt(settings: &Settings) -> Option<ChatMessage> {
    let system = settings.system_prompt.trim();
    (!system.is_empty()).then(|| ChatMessage::new(Role::System, system))
}

/// Returns the longest reply in tokens; `None` means as long as the context allows.
pub(super) fn longest(max_tokens: u32) -> Option<usize> {
    (max_tokens > 0).then_some(max_tokens as usize)
}

/// Returns the chosen draft settings; without a draft model, the n-gram drafter's or none.
pub(super) fn speculation(draft: &str, asked: &Speculation) -> Speculation {
    if draft == DRAFT_NGRAM && asked.drafter == DrafterChoice::Model {
        return Speculation { drafter: DrafterChoice::Combined, ..asked.clone() };
    }
    asked.clone()
}
