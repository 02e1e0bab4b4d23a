//! Sending messages and writing replies: a message is stored once its reply begins, the reply while
//! it is written. Rounds go to the page directly from the engine thread; the calling thread stores
//! them.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use foretoken_engine::trace::{Finish, Round, Speedup, SpeedupMeter};
use foretoken_model::{ChatMessage, Piece, Written};
use foretoken_store::{self as store, Store};
use foretoken_tools::{MOST_TURNS, Offer};

use super::attachments;
use super::history::{ReadMessage, chat_messages, seen_since};
use super::room::Branch;
use super::round::SharedRound;
use super::stored::utf16_length;
use super::unstored::FinishedReply;
use crate::app::App;
use crate::cancel::{Cancel, SlotGuard};
use crate::engine::replier::{Chat, Ending, Event};
use crate::error::Result;
use crate::ipc::{
    CommandError, ContextOverflow, ConversationSetup, ErrorCode, Message, PresetValues, PromptSize, Reply,
    ReplyEvent, Sent,
};

pub use crate::conversations::running::Events;
use crate::tools::Offered;
use crate::tools::turns::MadeCall;

/// Interval of storing: a kill loses at most this much of a reply.
const STORE_INTERVAL: Duration = Duration::from_millis(500);

/// Interval of speed-ups sent to the page: a number that changes faster cannot be read.
const SPEEDUP_INTERVAL: Duration = Duration::from_millis(250);

/// Kinds of requests for a reply.
enum Question {
    /// A new message at the end of a conversation, or in a new one.
    Sent { conversation: Option<i64>, asked: attachments::Question },
    /// An edited message, as a sibling of the original.
    Edited { question: i64, asked: attachments::Question },
    /// Another reply to the message before this one.
    Regenerated { reply: i64 },
    /// A stored message without a reply.
    Unanswered { question: i64 },
    /// Continuation of an interrupted reply.
    Continued { reply: i64 },
}

/// Everything that a reply needs except the chat.
#[derive(Clone)]
struct ReplyRequest {
    /// `None` for a new conversation.
    conversation: Option<i64>,
    question: Arc<Question>,
    /// First message of the model's context from this reply on; `None` leaves it unchanged.
    start: Option<i64>,
    setup: ConversationSetup,
    /// Longest reply in tokens; 0 means as long as the context allows. Less than in `setup` for a
    /// later part.
    max_tokens: u32,
    /// Tools that the reply may call.
    offered: Offered,
    cancel: Cancel,
}

impl App {
    /// Stores a message and replies to it. Nothing is stored if the prompt is refused.
    ///
    /// # Errors
    /// Returns `Busy`, `NoTarget`, `EmptyPrompt`, `PromptTooLong`, `BadAttachment`, `NotFound`
    /// before the reply begins. A reply that fails later is returned with its problem.
    pub fn send(
        self: &Arc<Self>,
        conversation: Option<i64>,
        sent: impl Into<Sent>,
        events: Events,
    ) -> Result<Reply> {
        let guard = self.take_slot()?;
        let messages = conversation.map_or_else(|| Ok(Vec::new()), |id| self.shown(id))?;
        let asked = self.question(sent.into(), &messages, conversation)?;
        let next = Some(self.read_question(&asked, &messages, conversation)?);
        let branch = Branch { messages, next, tools: None };
        let question = Question::Sent { conversation, asked };
        self.answer(conversation, branch, question, events, guard.cancel())
    }

    /// Stores an edited question as a sibling of the original and replies to it.
    ///
    /// # Errors
    /// Same as [`Self::send`], and `NotFound` if `question` is not a question.
    pub fn send_instead(
        self: &Arc<Self>,
        question: i64,
        sent: impl Into<Sent>,
        events: Events,
    ) -> Result<Reply> {
        let guard = self.take_slot()?;
        let before = self.asked(question, store::Role::User)?;
        let conversation = Some(before.conversation);
        let messages = self.up_to(before.parent)?;
        let asked = self.question(sent.into(), &messages, conversation)?;
        let next = Some(self.read_question(&asked, &messages, conversation)?);
        let branch = Branch { messages, next, tools: None };
        let question = Question::Edited { question, asked };
        self.answer(conversation, branch, question, events, guard.cancel())
    }

    /// Regenerates a reply as a sibling of the original, or replies to a question without a reply.
    ///
    /// # Errors
    /// Same as [`Self::send`], and `NotFound` for a missing message.
    pub fn regenerate(self: &Arc<Self>, message: i64, events: Events) -> Result<Reply> {
        let guard = self.take_slot()?;
        let (before, last, question) = match self.asked(message, store::Role::User) {
            Ok(asked) => (asked, Some(message), Question::Unanswered { question: message }),
            Err(_) => {
                let before = self.asked(message, store::Role::Assistant)?;
                let parent = before.parent;
                (before, parent, Question::Regenerated { reply: message })
            }
        };
        let branch = Branch { messages: self.up_to(last)?, next: None, tools: None };
        self.answer(Some(before.conversation), branch, question, events, guard.cancel())
    }

    /// Continues a reply that ended early: at its maximum length, a full context, a stop, a problem
    /// or the end of the program. If the context was full, the oldest turns are dropped from it.
    ///
    /// # Errors
    /// Same as [`Self::send`], and `NotFound` if `reply` is not a reply or has no text yet.
    pub fn continue_reply(self: &Arc<Self>, reply: i64, events: Events) -> Result<Reply> {
        let guard = self.take_slot()?;
        let before = self.asked(reply, store::Role::Assistant)?;
        if before.text.is_empty() {
            let message = "This reply has no text to continue. Regenerate it instead.";
            return Err(CommandError::new(ErrorCode::NotFound, message));
        }
        let branch = Branch { messages: self.up_to(Some(reply))?, next: None, tools: None };
        self.answer(Some(before.conversation), branch, Question::Continued { reply }, events, guard.cancel())
    }

    /// Sends all events of the running reply to `events`, from its beginning on, and waits for its
    /// end; `None` without one. A running check or arena is cancelled, because no page shows its
    /// result.
    ///
    /// # Errors
    /// Returns the error if the reply was refused.
    pub fn follow_reply(&self, events: Events) -> Result<Option<Reply>> {
        match self.running.current() {
            Some(live) => live.follow(events).transpose(),
            None => {
                self.stop();
                Ok(None)
            }
        }
    }

    /// Shows the branch of a message; returns the messages shown then.
    ///
    /// # Errors
    /// Returns `Busy`, `NotFound`.
    pub fn choose_branch(&self, message: i64) -> Result<Vec<Message>> {
        self.change_branch(message, Store::choose_branch)
    }

    /// Deletes a message with everything below it; [`Self::restore_message`] restores it for a day.
    ///
    /// # Errors
    /// Returns `Busy`, `NotFound`.
    pub fn delete_message(&self, message: i64) -> Result<Vec<Message>> {
        let conversation = self.store().message(message)?.conversation;
        let messages = self.change_branch(message, Store::delete_message)?;
        self.engine.forget_context(conversation);
        Ok(messages)
    }

    /// Restores a message deleted by [`Self::delete_message`].
    ///
    /// # Errors
    /// Returns `Busy`, `NotFound`.
    pub fn restore_message(&self, message: i64) -> Result<Vec<Message>> {
        self.change_branch(message, Store::restore_message)
    }

    fn change_branch(
        &self,
        message: i64,
        change: impl FnOnce(&mut Store, i64) -> store::Result<()>,
    ) -> Result<Vec<Message>> {
        let _turn = self.take_slot()?;
        self.store_rest();
        let conversation = self.store().message(message)?.conversation;
        change(&mut self.store(), message)?;
        self.messages(conversation)
    }

    /// Returns a message of this role.
    fn asked(&self, id: i64, role: store::Role) -> Result<store::Message> {
        let stored = self.unstored.over(|| Ok(vec![self.store().message(id)?]))?;
        let mut by_them =
            stored.into_iter().map(|(message, _)| message).filter(|message| message.role == role);
        by_them.next().ok_or_else(|| {
            let message = "This message no longer exists. Open the conversation again.";
            CommandError::new(ErrorCode::NotFound, message)
        })
    }

    /// Returns the shown branch as the model receives it, including replies that could not be
    /// stored yet.
    pub(crate) fn shown(&self, conversation: i64) -> Result<Vec<ReadMessage>> {
        let messages = self.unstored.over(|| self.store().messages(conversation))?;
        self.with_attachments(messages.into_iter().map(|(message, _)| message).collect())
    }

    /// Returns the part of the shown branch in the model's context.
    pub(crate) fn seen(&self, conversation: i64) -> Result<Vec<ChatMessage>> {
        let seen_from = self.store().conversation(conversation)?.seen_from;
        Ok(chat_messages(seen_since(self.shown(conversation)?, seen_from)))
    }

    /// Returns the messages up to `last` as the model receives them; none without one.
    fn up_to(&self, last: Option<i64>) -> Result<Vec<ReadMessage>> {
        let Some(last) = last else { return Ok(Vec::new()) };
        let messages = self.unstored.over(|| self.store().messages_up_to(last))?;
        self.with_attachments(messages.into_iter().map(|(message, _)| message).collect())
    }

    /// Returns messages of a conversation as the model receives them now.
    fn with_attachments(&self, messages: Vec<store::Message>) -> Result<Vec<ReadMessage>> {
        let conversation = messages.last().map(|message| message.conversation);
        let whole = self.whole_files(conversation)?;
        self.as_read(messages, whole)
    }

    /// Takes the slot for a reply: messages and settings do not change until it is dropped.
    pub(crate) fn take_slot(&self) -> Result<SlotGuard<'_>> {
        self.slot.take().ok_or_else(|| {
            let message = "A reply, a check or an arena is still running. Stop it or wait until it finishes.";
            CommandError::new(ErrorCode::Busy, message)
        })
    }

    /// Writes the reply to `question`, in a new conversation or the given one. If the context is
    /// full, before or during the reply, the oldest turns are dropped from it as the settings say.
    fn answer(
        self: &Arc<Self>,
        conversation: Option<i64>,
        mut branch: Branch,
        question: Question,
        events: Events,
        cancel: Cancel,
    ) -> Result<Reply> {
        let setup = self.open(conversation)?;
        let max_tokens = setup.values.max_tokens;
        let offered = self.offered(&setup.values, conversation, &cancel)?;
        branch.tools = offered.tool_use(branch.is_asked());
        let request = ReplyRequest {
            conversation,
            question: question.into(),
            start: None,
            setup,
            max_tokens,
            offered,
            cancel,
        };
        let start = match conversation {
            Some(id) => self.store().conversation(id)?.seen_from,
            None => None,
        };
        self.running.during(events, |events| {
            let reply = self.write_in_room(&branch, start, request.clone(), &events)?;
            let reply = self.continue_full(reply, request.clone(), &events)?;
            self.follow_calls(reply, &request, &events)
        })
    }

    /// Runs the calls of a reply and writes its next part with their results, until a part has no
    /// calls.
    fn follow_calls(
        self: &Arc<Self>,
        mut reply: Reply,
        request: &ReplyRequest,
        events: &Events,
    ) -> Result<Reply> {
        for turn in 1.. {
            let (id, conversation) = (reply.reply.id, reply.conversation.id);
            let mut calls = self.store().calls(id)?;
            calls.retain(|call| call.call.state == store::CallState::Asked);
            if calls.is_empty() {
                break;
            }
            events(ReplyEvent::PartEnded { reply: reply.reply.clone() });
            let goes_on = if turn > MOST_TURNS {
                self.stop_calls(calls, events)?;
                false
            } else {
                self.run_calls(conversation, calls, &request.offered, &request.cancel, events)?
            };
            reply.reply.calls = self.store().calls(id)?.into_iter().map(Into::into).collect();
            if !goes_on {
                break;
            }
            let tools = request.offered.tool_use(false);
            let branch = Branch { messages: self.up_to(Some(id))?, next: None, tools };
            let start = self.store().conversation(conversation)?.seen_from;
            let question = Question::Continued { reply: id }.into();
            let next =
                ReplyRequest { conversation: Some(conversation), question, start: None, ..request.clone() };
            let written = self
                .write_in_room(&branch, start, next.clone(), events)
                .and_then(|more| self.continue_full(more, next, events));
            match written {
                Ok(more) => reply = more,
                Err(error) => {
                    // The page offers to continue the reply, which tells the reason.
                    tracing::warn!(error = error.message, "the reply after calls of tools failed");
                    break;
                }
            }
        }
        Ok(reply)
    }

    /// Writes a reply; if it does not fit, without the oldest turns when the settings or the user
    /// drop them.
    fn write_in_room(
        self: &Arc<Self>,
        branch: &Branch,
        start: Option<i64>,
        request: ReplyRequest,
        events: &Events,
    ) -> Result<Reply> {
        let drops = self.drops_oldest() || self.continues_full(&request.question)?;
        let refused = match self.write(branch.chat(start), request.clone(), events) {
            Err(error) if drops && error.code == ErrorCode::PromptTooLong => error,
            other => return other,
        };
        let start = match self.drop_oldest(branch, start, &request.setup.values) {
            // Sizes on a server are estimates, and its context length may be unknown.
            Err(error) if error.prompt.is_none_or(PromptSize::fits) => return Err(refused),
            start => start?,
        };
        self.write(branch.chat(Some(start)), ReplyRequest { start: Some(start), ..request }, events)
    }

    /// Continues a reply that filled the context while there are turns to drop before its question.
    fn continue_full(
        self: &Arc<Self>,
        mut reply: Reply,
        request: ReplyRequest,
        events: &Events,
    ) -> Result<Reply> {
        let mut written = 0;
        while reply.reply.finish == Some(Finish::ContextFull) && self.drops_oldest() {
            let Message { id, ref summary, .. } = reply.reply;
            written += summary.as_ref().map_or(0, |summary| summary.tokens);
            let branch = Branch { messages: self.up_to(Some(id))?, next: None, tools: None };
            let start = self.store().conversation(reply.conversation.id)?.seen_from;
            let mut next =
                ReplyRequest { question: Question::Continued { reply: id }.into(), ..request.clone() };
            next.conversation = Some(reply.conversation.id);
            next.max_tokens =
                if request.max_tokens == 0 { 0 } else { request.max_tokens.saturating_sub(written) };
            let Ok(start) = self.drop_oldest(&branch, start, &next.setup.values) else { break };
            events(ReplyEvent::PartEnded { reply: reply.reply.clone() });
            next.start = Some(start);
            match self.write(branch.chat(Some(start)), next, events) {
                Ok(more) => reply = more,
                Err(error) => {
                    tracing::warn!(error = error.message, "a full context could not be continued");
                    break;
                }
            }
        }
        Ok(reply)
    }

    fn drops_oldest(&self) -> bool {
        self.settings().context_overflow == ContextOverflow::DropOldest
    }

    /// Returns whether `question` continues a reply that filled the context and fits only without
    /// the oldest turns.
    fn continues_full(&self, question: &Question) -> Result<bool> {
        let Question::Continued { reply } = *question else { return Ok(false) };
        let full = serde_json::to_value(Finish::ContextFull)?;
        Ok(self.store().message(reply)?.finish.as_deref() == full.as_str())
    }

    fn write(self: &Arc<Self>, chat: Chat, request: ReplyRequest, events: &Events) -> Result<Reply> {
        let offered = request.offered.clone();
        let tools = chat.tools.as_ref().map(serde_json::to_string).transpose()?;
        let values = PresetValues { max_tokens: request.max_tokens, ..request.setup.values.clone() };
        let cancel = request.cancel.clone();
        let earlier = match *request.question {
            Question::Continued { reply } => self.speedup_until(reply)?,
            // A part of a continued reply follows the part before it.
            Question::Regenerated { reply } => self.speedup_before(reply)?,
            _ => None,
        };
        let (records, written) = mpsc::channel();
        let mut recorder = ReplyRecorder {
            app: Arc::clone(self),
            request,
            events: Arc::clone(events),
            records,
            refused: false,
            round: None,
            text: String::new(),
            tools,
            calls: CallsSoFar::default(),
            speed: LiveSpeedup { earlier, meter: SpeedupMeter::default(), due: Instant::now() },
        };
        let outcome = self.engine.reply(chat, values, Box::new(move |event| recorder.take(event)), cancel);
        let written = self.record(&written);
        let outcome = outcome.recv().unwrap_or_else(|_| Err(engine_gone()));
        match written? {
            Some(written) => {
                let begun = written.begun.1.id;
                self.engine.name_context(written.begun.0.id);
                let mut reply = self.close(written, &offered, outcome)?;
                let message = &mut reply.reply;
                message.speedup = if message.id == begun {
                    let own = message.summary.as_ref().and_then(|summary| summary.speedup);
                    Speedup::of_parts(earlier.into_iter().chain(own))
                } else {
                    earlier
                };
                Ok(reply)
            }
            // Refused before anything was stored.
            None => Err(outcome.err().unwrap_or_else(engine_gone)),
        }
    }

    /// Stores text and rounds in batches until the engine thread drops the sender; `None` for a
    /// reply that never began.
    ///
    /// # Errors
    /// Returns the store's error if the reply could not begin.
    fn record(&self, records: &Receiver<Record>) -> Result<Option<PendingReply>> {
        let mut written = None;
        let mut due = Instant::now() + STORE_INTERVAL;
        loop {
            let wait = due.saturating_duration_since(Instant::now());
            match records.recv_timeout(wait) {
                Ok(Record::StoredStart(reply)) => {
                    written = Some(PendingReply::new(*reply?, self.settings().keep_traces));
                }
                Ok(Record::Text { delta, round }) => {
                    if let Some(written) = &mut written {
                        written.add(&delta, round);
                    }
                }
                Ok(Record::Call(call)) => {
                    if let Some(written) = &mut written {
                        written.calls.push(call);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    due = Instant::now() + STORE_INTERVAL;
                    written.iter_mut().for_each(|written| self.append(written));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    written.iter_mut().for_each(|written| self.append(written));
                    return Ok(written);
                }
            }
        }
    }

    /// Stores a batch. A temporary failure, such as a full disk, does not affect the reply: the
    /// rest is retried with the next batch.
    fn append(&self, written: &mut PendingReply) {
        if !written.grown {
            return;
        }
        let rounds = written.rounds();
        match self.store().append_rounds(written.begun.1.id, &written.text, &rounds) {
            Ok(()) => {
                written.pending.clear();
                written.grown = false;
            }
            Err(error) => tracing::error!(%error, "rounds could not be stored; trying again"),
        }
    }

    /// Stores the end of a reply. If that fails, the reply is shown nevertheless and stored later.
    fn close(
        self: &Arc<Self>,
        written: PendingReply,
        offered: &Offered,
        outcome: Result<Ending>,
    ) -> Result<Reply> {
        let rounds = written.rounds();
        let PendingReply { begun: (conversation, begun), text, calls, .. } = written;
        let mut ended = FinishedReply { begun, text, rounds, finish: None, summary: None, problem: None };
        match outcome {
            Ok(Ending { finish, summary }) => {
                ended.finish = serde_json::to_value(finish)?.as_str().map(str::to_owned);
                ended.summary = summary.as_ref().map(serde_json::to_string).transpose()?;
            }
            Err(error) => ended.problem = Some(error.message),
        }
        let is_stopped = ended.finish.as_deref() != Some("stop");
        let calls: Vec<_> = calls.iter().filter(|_| !is_stopped).collect();
        let mut store = self.store();
        let stored = ended.store(&mut store).and_then(|message| {
            if calls.is_empty() {
                return Ok(message);
            }
            let asked: Vec<_> = calls.into_iter().map(|call| offered.asked(call)).collect();
            let calls = store.add_calls(message.id, &asked)?;
            Ok(store::Message { calls, ..message })
        });
        drop(store);
        let reply = match stored {
            Ok(message) => message.try_into()?,
            Err(error @ store::Error::NotFound { .. }) => return Err(error.into()),
            Err(error) => self.keep(ended, &error)?,
        };
        Ok(Reply { conversation: conversation.into(), reply })
    }
}

pub(crate) fn engine_gone() -> CommandError {
    let message = "The engine failed. Its log has the reason. Try again; nothing stored is lost.";
    CommandError::new(ErrorCode::Internal, message)
}

/// Record sent from the engine thread to the thread that stores the reply.
enum Record {
    /// The reply as it began, or the store's error.
    StoredStart(Result<Box<StoredStart>>),
    /// Added text with its round.
    Text {
        delta: String,
        round: Option<SharedRound>,
    },
    Call(MadeCall),
}

/// A reply that the store has begun, with its conversation.
type StoredStart = (store::Conversation, store::Message);

/// A reply so far, and the rounds not stored yet.
struct PendingReply {
    begun: StoredStart,
    /// `true` if its rounds are kept.
    traced: bool,
    text: String,
    /// `true` if there is more than what is stored.
    grown: bool,
    pending: Vec<SharedRound>,
    calls: Vec<MadeCall>,
}

impl PendingReply {
    fn new(begun: StoredStart, traced: bool) -> Self {
        Self { begun, traced, text: String::new(), grown: false, pending: Vec::new(), calls: Vec::new() }
    }

    fn add(&mut self, delta: &str, round: Option<SharedRound>) {
        self.text.push_str(delta);
        self.grown = true;
        self.pending.extend(round.filter(|_| self.traced));
    }

    /// Returns the rounds not stored yet, in stored form.
    fn rounds(&self) -> Vec<(u32, String)> {
        let json = |round: &SharedRound| Some((round.index, round.json()?.get().to_owned()));
        self.pending.iter().filter_map(json).collect()
    }
}

/// Receives a reply's events on the engine thread: stores the question, sends events to the page,
/// passes text and rounds to the storing thread.
struct ReplyRecorder {
    app: Arc<App>,
    request: ReplyRequest,
    events: Events,
    records: Sender<Record>,
    /// `true` if the store could not begin the reply, so later events are dropped.
    refused: bool,
    /// Round of the next text.
    round: Option<SharedRound>,
    /// Text so far.
    text: String,
    /// Tools that the reply is offered, as JSON.
    tools: Option<String>,
    calls: CallsSoFar,
    speed: LiveSpeedup,
}

/// Calls of a running reply.
#[derive(Default)]
struct CallsSoFar {
    written: Written,
    /// Bytes of text before them.
    start: usize,
}

/// Speed-up of a running reply.
struct LiveSpeedup {
    /// Speed-up of the parts that it continues.
    earlier: Option<Speedup>,
    meter: SpeedupMeter,
    /// Time of the next value for the page.
    due: Instant,
}

impl LiveSpeedup {
    /// Adds a round; returns the speed-up if one is due.
    fn add(&mut self, round: &Round) -> Option<Speedup> {
        self.meter.add(round);
        let now = Instant::now();
        if now < self.due {
            return None;
        }
        self.due = now + SPEEDUP_INTERVAL;
        Speedup::of_parts(self.earlier.into_iter().chain(self.meter.speedup()))
    }
}

impl ReplyRecorder {
    /// Handles an event. The storing thread waits until this sender is dropped.
    fn take(&mut self, event: Event<'_>) {
        if self.refused {
            return;
        }
        match event {
            Event::Started { target, draft } => {
                let begun = self.begin(target, draft);
                if begun.is_err() {
                    self.refused = true;
                    self.request.cancel.cancel();
                }
                let _ = self.records.send(Record::StoredStart(begun));
            }
            Event::Pictures { share } => {
                (self.events)(ReplyEvent::Pictures { percent: (share * 100.0) as u32 });
            }
            Event::Prompt { done, total } => {
                (self.events)(ReplyEvent::Prompt { done: done as u32, total: total as u32 });
            }
            Event::Round(round) => {
                let speedup = self.speed.add(round);
                let round = SharedRound::of(round);
                (self.events)(ReplyEvent::Round { round: round.clone() });
                self.round = Some(round);
                if let Some(speedup) = speedup {
                    (self.events)(ReplyEvent::Speedup { speedup });
                }
            }
            Event::Text { delta } => {
                let round = self.round.take();
                self.text.push_str(delta);
                if round.is_none() {
                    (self.events)(ReplyEvent::Text { delta: delta.to_owned() });
                }
                // Text and round are one record, so they are stored together.
                let _ = self.records.send(Record::Text { delta: delta.to_owned(), round });
            }
            Event::CallBegan { name, start } => {
                self.calls.start = start;
                self.calls.written.push(Piece::Call(name.to_owned()));
                let offer = self.request.offered.offers.iter().find(|offer| offer.name == name);
                let server = offer.and_then(Offer::server).map(str::to_owned);
                let tool = offer.map_or(name, Offer::tool).to_owned();
                let start = utf16_length(self.text.get(..start).unwrap_or(&self.text));
                (self.events)(ReplyEvent::CallBegan { server, tool, start });
            }
            Event::CallArguments { json } => {
                self.calls.written.push(Piece::Arguments(json.to_owned()));
                (self.events)(ReplyEvent::CallArguments { json: json.to_owned() });
            }
            Event::CallEnded { tokens } => {
                self.calls.written.push(Piece::End);
                for call in self.calls.written.calls.drain(..) {
                    let made = MadeCall { call, text_start: self.calls.start, tokens };
                    let _ = self.records.send(Record::Call(made));
                }
            }
        }
    }

    /// Stores the question and an empty reply.
    fn begin(&self, target: &str, draft: Option<&str>) -> Result<Box<StoredStart>> {
        let ReplyRequest { conversation, question, start, setup, .. } = &self.request;
        let conversation = *conversation;
        if let Some(conversation) = conversation {
            self.app.store_rest_of(conversation)?;
        }
        let mut store = self.app.store();
        if let (Some(conversation), Some(_)) = (conversation, start) {
            store.see_from(conversation, *start)?;
        }
        let both = |(user, reply)| (Some(user), reply);
        let (user, reply) = match &**question {
            Question::Sent { conversation, asked } => {
                both(store.ask(*conversation, asked.asked(), target, draft)?)
            }
            Question::Edited { question, asked } => {
                both(store.ask_instead(*question, asked.asked(), target, draft)?)
            }
            Question::Regenerated { reply } => (None, store.begin_again(*reply, target, draft)?),
            Question::Unanswered { question } => (None, store.begin_answer(*question, target, draft)?),
            Question::Continued { reply } => (None, store.begin_continuation(*reply, target, draft)?),
        };
        if let Some(tools) = &self.tools {
            store.set_tools(reply.id, tools)?;
        }
        let home = store.conversation(reply.conversation)?;
        drop(store);
        self.app.keep_setup(conversation, home.id, setup);
        let user = user.map(TryInto::try_into).transpose()?;
        let begun = (home.clone(), reply.clone());
        let started = ReplyEvent::Started { conversation: home.into(), user, reply: reply.try_into()? };
        (self.events)(started);
        Ok(Box::new(begun))
    }
}
