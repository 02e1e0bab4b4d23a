//! Asking and answering: a message is stored once its reply can begin, the reply while it is written. Rounds
//! go to the page straight from the engine thread; this thread keeps the record.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use foretoken_engine::model::ChatMessage;
use foretoken_engine::trace::{Finish, Round, Speedup, SpeedupMeter};
use foretoken_store::{self as store, Store};

use crate::app::App;
use crate::attachments;
use crate::cancel::{Cancel, Turn};
use crate::error::Result;
use crate::history::{chat_messages, seen_since};
use crate::ipc::{
    CommandError, ContextOverflow, ConversationSetup, ErrorCode, Message, PresetValues, PromptSize, Reply,
    ReplyEvent, Sent,
};
use crate::replier::{Ending, Event};
use crate::room::Branch;
use crate::round::SharedRound;
use crate::unstored::Ended;

pub use crate::running::Events;

/// A killed program loses at most this much of a reply.
const RECORD_EVERY: Duration = Duration::from_millis(500);

/// The page is sent a reply's speed-up no more often: nobody reads a number that changes faster.
const SPEEDUP_EVERY: Duration = Duration::from_millis(250);

/// What is answered.
enum Question {
    /// A new message at the end of a conversation, or in a new one.
    Sent { conversation: Option<i64>, asked: attachments::Question },
    /// Another message in the place of this one.
    Changed { question: i64, asked: attachments::Question },
    /// The message before this reply.
    Again { reply: i64 },
    /// A stored message that has no reply.
    Unanswered { question: i64 },
    /// This reply, which was cut, is gone on with.
    More { reply: i64 },
}

/// Everything that a reply is written from, except the chat.
#[derive(Clone)]
struct Asking {
    /// `None` for a new conversation.
    conversation: Option<i64>,
    question: Arc<Question>,
    /// First message that the model sees from this reply on; `None` leaves it as it is.
    start: Option<i64>,
    setup: ConversationSetup,
    /// Longest reply in tokens; 0 means as long as the context allows. Less than in `setup` for a later part.
    max_tokens: u32,
    cancel: Cancel,
}

impl App {
    /// Stores what is `sent` and replies to it. Nothing is stored when the prompt is refused.
    ///
    /// # Errors
    /// `Busy`, `NoTarget`, `EmptyPrompt`, `PromptTooLong`, `BadAttachment`, `NotFound` before the reply begins. A
    /// reply that fails later is returned with its problem.
    pub fn send(
        self: &Arc<Self>,
        conversation: Option<i64>,
        sent: impl Into<Sent>,
        events: Events,
    ) -> Result<Reply> {
        let turn = self.take_turn()?;
        let asked = self.question(sent.into())?;
        let messages = conversation.map_or_else(|| Ok(Vec::new()), |id| self.shown(id))?;
        let branch = Branch { messages, next: Some(asked.words()) };
        let question = Question::Sent { conversation, asked };
        self.answer(conversation, branch, question, events, turn.cancel())
    }

    /// Asks what is `sent` in the place of a question, which is kept with all that followed it, and replies to it.
    ///
    /// # Errors
    /// As [`Self::send`], and `NotFound` for what is no question.
    pub fn send_instead(
        self: &Arc<Self>,
        question: i64,
        sent: impl Into<Sent>,
        events: Events,
    ) -> Result<Reply> {
        let turn = self.take_turn()?;
        let asked = self.question(sent.into())?;
        let before = self.asked(question, store::Role::User)?;
        let branch = Branch { messages: self.up_to(before.parent)?, next: Some(asked.words()) };
        let question = Question::Changed { question, asked };
        self.answer(Some(before.conversation), branch, question, events, turn.cancel())
    }

    /// Replies once more to what a reply answered, which is kept with all that followed it; or to a question that has
    /// no reply.
    ///
    /// # Errors
    /// As [`Self::send`], and `NotFound` for a message that is gone.
    pub fn regenerate(self: &Arc<Self>, message: i64, events: Events) -> Result<Reply> {
        let turn = self.take_turn()?;
        let (before, last, question) = match self.asked(message, store::Role::User) {
            Ok(asked) => (asked, Some(message), Question::Unanswered { question: message }),
            Err(_) => {
                let before = self.asked(message, store::Role::Assistant)?;
                let parent = before.parent;
                (before, parent, Question::Again { reply: message })
            }
        };
        let branch = Branch { messages: self.up_to(last)?, next: None };
        self.answer(Some(before.conversation), branch, question, events, turn.cancel())
    }

    /// Continues a reply that was cut: by its maximum length, a full context, a stop, a problem or the end of the
    /// program. Where the context was full, the oldest turns are dropped from it.
    ///
    /// # Errors
    /// As [`Self::send`], and `NotFound` for what is no reply or has no text yet.
    pub fn continue_reply(self: &Arc<Self>, reply: i64, events: Events) -> Result<Reply> {
        let turn = self.take_turn()?;
        let before = self.asked(reply, store::Role::Assistant)?;
        if before.text.is_empty() {
            let message = "There is nothing to go on with in this reply: regenerate it.";
            return Err(CommandError::new(ErrorCode::NotFound, message));
        }
        let branch = Branch { messages: self.up_to(Some(reply))?, next: None };
        self.answer(Some(before.conversation), branch, Question::More { reply }, events, turn.cancel())
    }

    /// Tells `events` of the reply under way, from its beginning on, and waits for its end; `None` where there is none.
    /// A check or an arena that a page left behind is ended: no page shows what comes of it.
    ///
    /// # Errors
    /// Those with which the reply was refused.
    pub fn follow_reply(&self, events: Events) -> Result<Option<Reply>> {
        match self.running.current() {
            Some(live) => live.follow(events).transpose(),
            None => {
                self.stop();
                Ok(None)
            }
        }
    }

    /// Shows the branch that a message is in; returns what the conversation shows then.
    ///
    /// # Errors
    /// `Busy`, `NotFound`.
    pub fn choose_branch(&self, message: i64) -> Result<Vec<Message>> {
        self.change_branch(message, Store::choose_branch)
    }

    /// Deletes a message and all that follows it; [`Self::restore_message`] brings them back for a day.
    ///
    /// # Errors
    /// `Busy`, `NotFound`.
    pub fn delete_message(&self, message: i64) -> Result<Vec<Message>> {
        self.change_branch(message, Store::delete_message)
    }

    /// Brings back what [`Self::delete_message`] deleted.
    ///
    /// # Errors
    /// `Busy`, `NotFound`.
    pub fn restore_message(&self, message: i64) -> Result<Vec<Message>> {
        self.change_branch(message, Store::restore_message)
    }

    fn change_branch(
        &self,
        message: i64,
        change: impl FnOnce(&mut Store, i64) -> store::Result<()>,
    ) -> Result<Vec<Message>> {
        let _turn = self.take_turn()?;
        self.store_rest();
        let conversation = self.store().message(message)?.conversation;
        change(&mut self.store(), message)?;
        self.messages(conversation)
    }

    /// A message by this speaker.
    fn asked(&self, id: i64, role: store::Role) -> Result<store::Message> {
        let stored = self.unstored.over(|| Ok(vec![self.store().message(id)?]))?;
        let mut by_them =
            stored.into_iter().map(|(message, _)| message).filter(|message| message.role == role);
        by_them.next().ok_or_else(|| {
            let message = "This message is not there any more: open the conversation again.";
            CommandError::new(ErrorCode::NotFound, message)
        })
    }

    /// What a conversation shows, as a model reads it, with what could not be stored of it yet.
    pub(crate) fn shown(&self, conversation: i64) -> Result<Vec<store::Message>> {
        let messages = self.unstored.over(|| self.store().messages(conversation))?;
        self.as_read(messages.into_iter().map(|(message, _)| message).collect())
    }

    /// What the model sees of what a conversation shows.
    pub(crate) fn seen(&self, conversation: i64) -> Result<Vec<ChatMessage>> {
        let seen_from = self.store().conversation(conversation)?.seen_from;
        Ok(chat_messages(seen_since(self.shown(conversation)?, seen_from)))
    }

    /// Messages up to `last`, as a model reads them; none without one.
    fn up_to(&self, last: Option<i64>) -> Result<Vec<store::Message>> {
        let Some(last) = last else { return Ok(Vec::new()) };
        let messages = self.unstored.over(|| self.store().messages_up_to(last))?;
        self.as_read(messages.into_iter().map(|(message, _)| message).collect())
    }

    /// One reply at a time: what is read from now on until the turn is dropped does not change.
    pub(crate) fn take_turn(&self) -> Result<Turn<'_>> {
        self.turns.take().ok_or_else(|| {
            let message = "A reply, a check or an arena is running: stop it or wait until it finishes.";
            CommandError::new(ErrorCode::Busy, message)
        })
    }

    /// Writes the reply to `question`, in a new conversation or in the one given. Where the context is full, before the
    /// reply or in its middle, and the settings say so, the oldest turns are dropped from it.
    fn answer(
        self: &Arc<Self>,
        conversation: Option<i64>,
        branch: Branch,
        question: Question,
        events: Events,
        cancel: Cancel,
    ) -> Result<Reply> {
        let setup = self.face(conversation)?;
        let max_tokens = setup.values.max_tokens;
        let asking =
            Asking { conversation, question: question.into(), start: None, setup, max_tokens, cancel };
        let start = match conversation {
            Some(id) => self.store().conversation(id)?.seen_from,
            None => None,
        };
        self.running.during(events, |events| {
            let reply = self.write_in_room(&branch, start, asking.clone(), &events)?;
            self.continue_full(reply, asking, &events)
        })
    }

    /// Writes a reply; without the oldest turns where the settings, or the person, drop them and it does not fit.
    fn write_in_room(
        self: &Arc<Self>,
        branch: &Branch,
        start: Option<i64>,
        asking: Asking,
        events: &Events,
    ) -> Result<Reply> {
        let drops = self.drops_oldest() || self.continues_full(&asking.question)?;
        let refused = match self.write(branch.chat(start), asking.clone(), events) {
            Err(error) if drops && error.code == ErrorCode::PromptTooLong => error,
            other => return other,
        };
        let start = match self.drop_oldest(branch, start, &asking.setup.values) {
            // Sizes on a server are estimates, and it may not say how large its context is.
            Err(error) if error.prompt.is_none_or(PromptSize::fits) => return Err(refused),
            start => start?,
        };
        self.write(branch.chat(Some(start)), Asking { start: Some(start), ..asking }, events)
    }

    /// Continues a reply that filled the context, as long as there are turns to drop before its question.
    fn continue_full(self: &Arc<Self>, mut reply: Reply, asking: Asking, events: &Events) -> Result<Reply> {
        let mut written = 0;
        while reply.reply.finish == Some(Finish::ContextFull) && self.drops_oldest() {
            let Message { id, ref summary, .. } = reply.reply;
            written += summary.as_ref().map_or(0, |summary| summary.tokens);
            let branch = Branch { messages: self.up_to(Some(id))?, next: None };
            let start = self.store().conversation(reply.conversation.id)?.seen_from;
            let mut next = Asking { question: Question::More { reply: id }.into(), ..asking.clone() };
            next.conversation = Some(reply.conversation.id);
            next.max_tokens =
                if asking.max_tokens == 0 { 0 } else { asking.max_tokens.saturating_sub(written) };
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

    /// Whether `question` continues a reply that filled the context, which fits only without the oldest turns.
    fn continues_full(&self, question: &Question) -> Result<bool> {
        let Question::More { reply } = *question else { return Ok(false) };
        let full = serde_json::to_value(Finish::ContextFull)?;
        Ok(self.store().message(reply)?.finish.as_deref() == full.as_str())
    }

    fn write(self: &Arc<Self>, messages: Vec<ChatMessage>, asking: Asking, events: &Events) -> Result<Reply> {
        let values = PresetValues { max_tokens: asking.max_tokens, ..asking.setup.values.clone() };
        let cancel = asking.cancel.clone();
        let earlier = match *asking.question {
            Question::More { reply } => self.speedup_until(reply)?,
            _ => None,
        };
        let (records, written) = mpsc::channel();
        let mut recorder = ReplyRecorder {
            app: Arc::clone(self),
            asking,
            events: Arc::clone(events),
            records,
            refused: false,
            round: None,
            speed: LiveSpeedup { earlier, meter: SpeedupMeter::default(), due: Instant::now() },
        };
        let outcome =
            self.engine.reply(messages, values, Box::new(move |event| recorder.take(event)), cancel);
        let written = self.record(&written);
        let outcome = outcome.recv().unwrap_or_else(|_| Err(engine_gone()));
        match written? {
            Some(written) => {
                let begun = written.begun.1.id;
                let mut reply = self.close(written, outcome)?;
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

    /// Stores text and rounds as they come, in batches, until the engine thread lets go of the other end; `None`
    /// for a reply that was never begun.
    ///
    /// # Errors
    /// Why the reply could not be begun in the store.
    fn record(&self, records: &Receiver<Record>) -> Result<Option<Written>> {
        let mut written = None;
        let mut due = Instant::now() + RECORD_EVERY;
        loop {
            let wait = due.saturating_duration_since(Instant::now());
            match records.recv_timeout(wait) {
                Ok(Record::Begun(reply)) => {
                    written = Some(Written::new(*reply?, self.settings().keep_traces));
                }
                Ok(Record::Text { delta, round }) => {
                    if let Some(written) = &mut written {
                        written.add(&delta, round);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    due = Instant::now() + RECORD_EVERY;
                    written.iter_mut().for_each(|written| self.append(written));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    written.iter_mut().for_each(|written| self.append(written));
                    return Ok(written);
                }
            }
        }
    }

    /// A store that fails for a while, a full disk say, costs the reply nothing: what could not be
    /// stored is tried again with the next batch.
    fn append(&self, written: &mut Written) {
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

    /// Stores the end of a reply. Where that fails it is shown all the same, and stored later.
    fn close(self: &Arc<Self>, written: Written, outcome: Result<Ending>) -> Result<Reply> {
        let rounds = written.rounds();
        let Written { begun: (conversation, begun), text, .. } = written;
        let mut ended = Ended { begun, text, rounds, finish: None, summary: None, problem: None };
        match outcome {
            Ok(Ending { finish, summary }) => {
                ended.finish = serde_json::to_value(finish)?.as_str().map(str::to_owned);
                ended.summary = summary.as_ref().map(serde_json::to_string).transpose()?;
            }
            Err(error) => ended.problem = Some(error.message),
        }
        let stored = ended.store(&mut self.store());
        let reply = match stored {
            Ok(message) => message.try_into()?,
            Err(error @ store::Error::NotFound { .. }) => return Err(error.into()),
            Err(error) => self.keep(ended, &error)?,
        };
        Ok(Reply { conversation: conversation.into(), reply })
    }
}

pub(crate) fn engine_gone() -> CommandError {
    let message = "The engine failed: the log has the reason. Try again; nothing stored is lost.";
    CommandError::new(ErrorCode::Internal, message)
}

/// Sent from the engine thread to the one that keeps the record.
enum Record {
    /// The reply as it began, or why the store has none.
    Begun(Result<Box<Begun>>),
    /// What was added, and by which round.
    Text { delta: String, round: Option<SharedRound> },
}

/// A reply that the store has begun, and its conversation.
type Begun = (store::Conversation, store::Message);

/// A reply so far, and the rounds that are not stored yet.
struct Written {
    begun: Begun,
    /// Whether its rounds are kept.
    traced: bool,
    text: String,
    /// Whether there is more than what is stored.
    grown: bool,
    pending: Vec<SharedRound>,
}

impl Written {
    fn new(begun: Begun, traced: bool) -> Self {
        Self { begun, traced, text: String::new(), grown: false, pending: Vec::new() }
    }

    fn add(&mut self, delta: &str, round: Option<SharedRound>) {
        self.text.push_str(delta);
        self.grown = true;
        self.pending.extend(round.filter(|_| self.traced));
    }

    /// The rounds that are not stored yet, as they are stored.
    fn rounds(&self) -> Vec<(u32, String)> {
        let json = |round: &SharedRound| Some((round.index, round.json()?.get().to_owned()));
        self.pending.iter().filter_map(json).collect()
    }
}

/// Is told of a reply on the engine thread: stores the question, tells the page, hands text and rounds to the record.
struct ReplyRecorder {
    app: Arc<App>,
    asking: Asking,
    events: Events,
    records: Sender<Record>,
    /// Whether the store could not begin it, so that nobody wants to know more of it.
    refused: bool,
    /// By which the next text is written.
    round: Option<SharedRound>,
    speed: LiveSpeedup,
}

/// The speed-up of a reply under way.
struct LiveSpeedup {
    /// Of the parts that it continues.
    earlier: Option<Speedup>,
    meter: SpeedupMeter,
    /// When the page may be sent the next value.
    due: Instant,
}

impl LiveSpeedup {
    /// Takes a round; returns the speed-up when the page is due one.
    fn add(&mut self, round: &Round) -> Option<Speedup> {
        self.meter.add(round);
        let now = Instant::now();
        if now < self.due {
            return None;
        }
        self.due = now + SPEEDUP_EVERY;
        Speedup::of_parts(self.earlier.into_iter().chain(self.meter.speedup()))
    }
}

impl ReplyRecorder {
    /// The receiver of records waits until this end of them is dropped.
    fn take(&mut self, event: Event<'_>) {
        if self.refused {
            return;
        }
        match event {
            Event::Started { target, draft } => {
                let begun = self.begin(target, draft);
                if begun.is_err() {
                    self.refused = true;
                    self.asking.cancel.cancel();
                }
                let _ = self.records.send(Record::Begun(begun));
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
                if round.is_none() {
                    (self.events)(ReplyEvent::Text { delta: delta.to_owned() });
                }
                // Text and round in one, so that they are stored together.
                let _ = self.records.send(Record::Text { delta: delta.to_owned(), round });
            }
        }
    }

    /// Stores the question and an empty reply.
    fn begin(&self, target: &str, draft: Option<&str>) -> Result<Box<Begun>> {
        let Asking { conversation, question, start, setup, .. } = &self.asking;
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
            Question::Changed { question, asked } => {
                both(store.ask_instead(*question, asked.asked(), target, draft)?)
            }
            Question::Again { reply } => (None, store.begin_again(*reply, target, draft)?),
            Question::Unanswered { question } => (None, store.begin_answer(*question, target, draft)?),
            Question::More { reply } => (None, store.begin_continuation(*reply, target, draft)?),
        };
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
