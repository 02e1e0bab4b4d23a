//! Jobs of the engine thread, and callbacks for their progress.

use std::sync::mpsc;

use foretoken_engine::session::ToolUse;
use foretoken_engine::trace::{Round, Summary};
use foretoken_model::ChatMessage;
use foretoken_server::{Order, ReplySink};

use super::replier::{Chat, Ending, Event};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{
    Advice, Arena, ArenaEvent, ArenaRequest, CheckProgress, PresetValues, PromptSize, ReplyCheck, Settings,
};

/// Receives events of a reply, on the engine thread.
pub type OnReply = Box<dyn FnMut(Event<'_>) + Send>;

/// Receives results of draft trials, on the engine thread.
pub type OnAdvice = Box<dyn Fn(Advice) + Send>;

/// Receives progress of a check, on the engine thread.
pub type OnCheck = Box<dyn Fn(CheckProgress) + Send>;

/// Receives events of the arena, on the engine thread.
pub type OnArena = Box<dyn Fn(ArenaEvent) + Send>;

/// A step of work that waits for a pause; returns whether there is more.
pub(super) type WhenIdle = Box<dyn FnMut() -> bool + Send>;

/// A stored reply with its messages.
pub struct Stored {
    pub messages: Vec<ChatMessage>,
    /// Label of the target that wrote it.
    pub target: Option<String>,
    pub summary: Summary,
    pub rounds: Vec<Round>,
    /// Tools that it was offered.
    pub tools: Option<ToolUse>,
    /// `true` if it has calls.
    pub has_calls: bool,
}

/// A job of the thread; its result is sent to `done`.
pub(super) enum Job {
    Settings {
        settings: Box<Settings>,
        /// Values for replies of the local server.
        defaults: Box<PresetValues>,
        earlier: Vec<String>,
        revision: u64,
    },
    List,
    /// Work for when no job waits, in place of the work before.
    WhenIdle(WhenIdle),
    Advise {
        text: Vec<ChatMessage>,
        on_advice: OnAdvice,
        cancel: Cancel,
        done: mpsc::Sender<Result<()>>,
    },
    Reply {
        chat: Chat,
        /// Values of the reply's conversation, even if another is open by then.
        values: Box<PresetValues>,
        on: OnReply,
        cancel: Cancel,
        done: mpsc::Sender<Result<Ending>>,
    },
    /// Names the conversation of the reply that ended last.
    Stored {
        conversation: i64,
    },
    /// Reads the saved context of an opened conversation.
    Restore {
        conversation: i64,
        messages: Vec<ChatMessage>,
        values: Box<PresetValues>,
        cancel: Cancel,
    },
    /// Removes the saved context of a deleted conversation.
    Forget {
        conversation: i64,
    },
    /// Writes what is left of contexts to the disk.
    FinishContexts {
        done: mpsc::Sender<Result<()>>,
    },
    /// A conversation's title; `None` if none was written.
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
        chat: Chat,
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
    /// Returns whether the job runs the loaded models.
    pub(super) fn computes(&self) -> bool {
        let idle = matches!(
            self,
            Self::Settings { .. } | Self::List | Self::WhenIdle(_) | Self::FinishContexts { .. }
        );
        !(idle || matches!(self, Self::Stored { .. } | Self::Forget { .. }))
    }
}
