//! Conversations, their messages, and events of a reply.

use foretoken_documents::Excerpt;
use foretoken_engine::trace::{Finish, Round, Speedup, Summary};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Attachment, Call};
use crate::conversations::round::SharedRound;

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
    /// First message in the model's context; `None` if it has all messages.
    #[ts(type = "number | null")]
    pub seen_from: Option<i64>,
    /// Its folder; `None` if it is in none.
    #[ts(type = "number | null")]
    pub folder: Option<i64>,
}

/// Longest name of a folder, in characters.
pub const FOLDER_NAME: usize = foretoken_store::LONGEST_FOLDER_NAME;

/// A folder of conversations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ConversationFolder {
    #[ts(type = "number")]
    pub id: i64,
    pub name: String,
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
    /// Replies: reason for the end; `None` for one that failed or was interrupted by a kill.
    pub finish: Option<Finish>,
    /// Replies: statistics.
    pub summary: Option<Summary>,
    /// Replies: labels of the target and the draft that wrote it.
    pub target: Option<String>,
    pub draft: Option<String>,
    /// Failed replies: the error message.
    pub problem: Option<String>,
    /// Message before this one; `None` for the first of a conversation.
    #[ts(type = "number | null")]
    pub parent: Option<i64>,
    /// Messages with the same parent, this one included, oldest first: each begins a branch.
    #[ts(type = "Array<number>")]
    pub siblings: Vec<i64>,
    /// Attachments of a question.
    pub attachments: Vec<Attachment>,
    /// Excerpts of long documents that the prompt of a question contains, numbered from 1.
    pub excerpts: Vec<Excerpt>,
    /// Calls of a reply, in order.
    pub calls: Vec<Call>,
    /// Place in the text where the calls begin, in UTF-16 code units.
    pub calls_start: Option<u32>,
    /// Replies that could not be stored yet: the error message.
    pub unstored: Option<String>,
    /// Replies: speed-up over plain decoding; for a continued reply, of all parts up to this one.
    pub speedup: Option<Speedup>,
}

/// A message that contains the searched words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SearchHit {
    pub conversation: Conversation,
    #[ts(type = "number")]
    pub message: i64,
    /// Text around the match; the match itself stands between U+0002 and U+0003.
    pub excerpt: String,
}

/// Conversations to export, and the format.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[ts(export)]
pub struct Export {
    /// `None` for all conversations.
    #[ts(type = "number | null")]
    pub conversation: Option<i64>,
    pub form: ExportForm,
    /// Includes the traces of replies in JSON.
    pub traces: bool,
    /// Name of the person in Markdown.
    pub you: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ExportForm {
    /// Everything: all branches, and the models and settings of each reply.
    Json,
    /// The shown branch, for reading.
    Markdown,
}

/// Progress of an import.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, TS)]
#[ts(export)]
pub struct ImportProgress {
    /// Share of the file that was read, 0 to 1.
    pub share: f32,
    /// Number of new conversations so far.
    pub conversations: u32,
}

/// Parts of an imported file that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, TS)]
#[ts(export)]
pub struct LeftOut {
    /// Number of whole conversations.
    pub conversations: u32,
    /// Number of messages of imported conversations.
    pub messages: u32,
    /// Titles of the first conversations concerned.
    pub titles: Vec<String>,
}

/// Result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export)]
pub struct Imported {
    /// Number of new conversations.
    pub added: u32,
    /// Number of conversations that existed already.
    pub known: u32,
    /// The last new conversation.
    #[ts(type = "number | null")]
    pub last: Option<i64>,
    /// Number of new conversations with instructions of their own for the model, which the next
    /// reply in them follows.
    pub instructed: u32,
    pub left_out: LeftOut,
}

/// Events of a reply, sent on the channel of the command that began it.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
#[allow(clippy::large_enum_variant, reason = "sent immediately and not stored")]
pub enum ReplyEvent {
    /// The question is stored and the reply begins: both are shown below their parents. `user` is
    /// `None` if there is no new question.
    Started { conversation: Conversation, user: Option<Message>, reply: Message },
    /// A part of the reply that filled the context, as stored. The next `Started` continues it.
    PartEnded { reply: Message },
    /// Share of the embeddings of new pictures that is computed.
    Pictures { percent: u32 },
    /// Prompt tokens processed so far.
    Prompt { done: u32, total: u32 },
    /// A round's text, and the drafting behind it.
    Round {
        #[ts(as = "Round")]
        round: SharedRound,
    },
    /// Speed-up of the reply so far, including the parts it continues; sent a few times a second.
    Speedup { speedup: Speedup },
    /// Text added to a reply without rounds.
    Text { delta: String },
    /// A call of a tool begins at this place in the text, in UTF-16 code units.
    CallBegan { server: Option<String>, tool: String, start: u32 },
    /// JSON added to the arguments of the call that began last.
    CallArguments { json: String },
    /// A call of a stored reply in its new state.
    Call { call: Call },
    /// Progress of a running call, as its server reports it.
    CallProgress {
        #[ts(type = "number")]
        call: i64,
        done: f64,
        total: Option<f64>,
        message: String,
    },
}

/// A finished reply as stored, which replaces the streamed preview. An empty reply may have been
/// removed in favour of another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Reply {
    pub conversation: Conversation,
    pub reply: Message,
}
