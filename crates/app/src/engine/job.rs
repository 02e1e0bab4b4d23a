//! What can be asked of the engine thread, and who is told how it goes.

use std::sync::mpsc;

use foretoken_engine::model::ChatMessage;
use foretoken_engine::trace::{Round, Summary};
use foretoken_server::{Order, ReplySink};

use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{
    Advice, Arena, ArenaEvent, ArenaRequest, CheckProgress, PresetValues, PromptSize, ReplyCheck, Settings,
};
use crate::replier::{Ending, Event};

/// Told of a reply while it is written, on the engine thread.
pub type OnReply = Box<dyn FnMut(Event<'_>) + Send>;

/// Told what is found out about a draft, on the engine thread.
pub type OnAdvice = Box<dyn Fn(Advice) + Send>;

/// Told how far a check is, on the engine thread.
pub type OnCheck = Box<dyn Fn(CheckProgress) + Send>;

/// Told what happens in the arena, on the engine thread.
pub type OnArena = Box<dyn Fn(ArenaEvent) + Send>;

/// A stored reply and what it answered.
pub struct Stored {
    pub messages: Vec<ChatMessage>,
    /// Label of the target that wrote it.
    pub target: Option<String>,
    pub summary: Summary,
    pub rounds: Vec<Round>,
}

/// One thing for the thread to do; what comes of it goes to `done`.
pub(super) enum Job {
    Settings {
        settings: Box<Settings>,
        /// What the local server writes with.
        defaults: Box<PresetValues>,
        earlier: Vec<String>,
        revision: u64,
    },
    List,
    Advise {
        text: Vec<ChatMessage>,
        on_advice: OnAdvice,
        cancel: Cancel,
        done: mpsc::Sender<Result<()>>,
    },
    Reply {
        messages: Vec<ChatMessage>,
        /// What its conversation is written with, whichever is open by then.
        values: Box<PresetValues>,
        on: OnReply,
        cancel: Cancel,
        done: mpsc::Sender<Result<Ending>>,
    },
    /// The answer to the question for a conversation's title; `None` where none was written.
    Title {
        messages: Vec<ChatMessage>,
        values: Box<PresetValues>,
        cancel: Cancel,
        done: mpsc::Sender<Result<Option<String>>>,
    },
    /// A reply for the local server.
    Serve {
        order: Box<Order>,
        sink: ReplySink,
    },
    Measure {
        messages: Vec<ChatMessage>,
        values: Box<PresetValues>,
        done: mpsc::Sender<Result<PromptSize>>,
    },
    Check {
        stored: Box<Stored>,
        on_progress: OnCheck,
        cancel: Cancel,
        done: mpsc::Sender<Result<ReplyCheck>>,
    },
    Arena {
        request: Box<ArenaRequest>,
        on_event: OnArena,
        cancel: Cancel,
        done: mpsc::Sender<Result<Arena>>,
    },
}

impl Job {
    /// Whether it runs the models that are loaded.
    pub(super) fn computes(&self) -> bool {
        !matches!(self, Self::Settings { .. } | Self::List)
    }
}
