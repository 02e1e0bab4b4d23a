//! Conversations, and replies while they are written.

use foretoken_engine::trace::{Finish, Round, Speedup, Summary};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Attachment;
use crate::round::SharedRound;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Conversation {
    #[ts(type = "number")]
    pub id: i64,
    pub title: String,
    pub pinned: bool,
    /// Milliseconds since 1970.
    #[ts(type = "number")]
    pub updated_at: i64,
    /// The first message that the model still sees; `None` while it sees all.
    #[ts(type = "number | null")]
    pub seen_from: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Role {
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Message {
    #[ts(type = "number")]
    pub id: i64,
    #[ts(type = "number")]
    pub conversation: i64,
    pub role: Role,
    pub text: String,
    /// Milliseconds since 1970.
    #[ts(type = "number")]
    pub created_at: i64,
    /// Replies: how it ended; `None` for one that failed or was under way when the program was killed.
    pub finish: Option<Finish>,
    /// Replies: its numbers.
    pub summary: Option<Summary>,
    /// Replies: labels of the target and the draft that wrote it.
    pub target: Option<String>,
    pub draft: Option<String>,
    /// Replies that failed: the sentence that says why.
    pub problem: Option<String>,
    /// The message it follows; `None` for the first of a conversation.
    #[ts(type = "number | null")]
    pub parent: Option<i64>,
    /// What follows the same message, itself among it, oldest first: each begins a branch.
    #[ts(type = "Array<number>")]
    pub siblings: Vec<i64>,
    /// The files beside a question.
    pub attachments: Vec<Attachment>,
    /// Replies that could not be stored yet: the sentence that says why.
    pub unstored: Option<String>,
    /// Replies: speed-up over plain decoding, of a continued reply that of all parts up to this one.
    pub speedup: Option<Speedup>,
}

/// A message that contains the searched words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SearchHit {
    pub conversation: Conversation,
    #[ts(type = "number")]
    pub message: i64,
    /// Text around the hit; the hit itself stands between U+0002 and U+0003.
    pub excerpt: String,
}

/// What is exported, and how.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[ts(export)]
pub struct Export {
    /// `None` for all conversations.
    #[ts(type = "number | null")]
    pub conversation: Option<i64>,
    pub form: ExportForm,
    /// Whether JSON has the traces of replies, too.
    pub traces: bool,
    /// What the person is called in Markdown.
    pub you: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ExportForm {
    /// Everything: all branches, and how each reply was written.
    Json,
    /// The branch that is shown, to be read.
    Markdown,
}

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, TS)]
#[ts(export)]
pub struct ImportProgress {
    /// Of the file, 0 to 1.
    pub share: f32,
    /// That are new so far.
    pub conversations: u32,
}

/// What came of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[ts(export)]
pub struct Imported {
    /// Conversations that are new.
    pub added: u32,
    /// Conversations that were here already.
    pub known: u32,
    /// The last of the new ones.
    #[ts(type = "number | null")]
    pub last: Option<i64>,
}

/// Sent on the channel of what begins a reply.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
#[allow(clippy::large_enum_variant, reason = "sent and gone; nobody keeps many")]
pub enum ReplyEvent {
    /// The question is stored and the reply begins: both are shown after the message they follow. `user` is `None` where
    /// nothing was asked anew.
    Started { conversation: Conversation, user: Option<Message>, reply: Message },
    /// A part of the reply that ended with the context, as stored. The next `Started` continues it.
    PartEnded { reply: Message },
    /// Prompt tokens processed so far.
    Prompt { done: u32, total: u32 },
    /// What a round added to the reply, and how it came about.
    Round {
        #[ts(as = "Round")]
        round: SharedRound,
    },
    /// The speed-up of the reply so far, with the parts it continues; sent a few times a second.
    Speedup { speedup: Speedup },
    /// What was added to a reply that has no rounds.
    Text { delta: String },
}

/// What a reply ends with: as it is stored, which replaces the streamed preview. One in which nothing is may have left
/// another in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Reply {
    pub conversation: Conversation,
    pub reply: Message,
}
