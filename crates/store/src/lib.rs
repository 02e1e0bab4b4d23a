//! Conversations, messages, traces and settings in one SQLite file. The crate depends on neither
//! the engine nor the window: rounds, summaries and settings are opaque JSON documents.
//!
//! - [`Store`]: the open database (`store.rs`), created and upgraded by `schema.rs`
//! - [`Conversation`]: create, list, rename, pin, delete with undo
//! - [`Folder`]: a folder of conversations
//! - [`Message`]: a question or a reply; [`Ending`] closes a reply
//! - [`Attachment`]: a file added to a question; [`Attached`]: the same with its text;
//!   [`NewQuestion`]: a question with its attachments
//! - [`Call`]: a call of a tool with its result, part of a reply; decisions about tools
//! - branches: siblings of edited questions and regenerated replies; one branch is shown, all are
//!   kept
//! - [`Tree`]: a whole conversation with all its branches, for copies, exports and imports
//! - rounds: the trace of a reply, appended while it is written and packed when it ends;
//!   [`TraceStorage`] is their size on disk
//! - [`Arena`]: results of an arena, one JSON document each
//! - [`PairTimes`]: time that drafts saved over all replies of a pair of models
//! - [`Hit`]: full-text search over all messages
//! - settings, the window's view state and each conversation's own settings (`setup.rs`): one JSON
//!   document each
//! - unsent: texts, files and edits ([`UnsentEdit`]) that were not sent
//! - `age`: the clock after which deleted rows are purged; `private`: files that only their owner
//!   can read; `aside`: renaming an unusable database
//!
//! A method that succeeds has committed its change: a process killed afterwards loses nothing of
//! it. A method that fails changes nothing. All times are milliseconds since 1970.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod age;
mod arenas;
mod aside;
mod attachments;
mod branches;
mod calls;
mod conversations;
mod error;
mod folders;
mod messages;
mod private;
mod rounds;
mod schema;
mod search;
mod settings;
mod setup;
mod speedups;
mod store;
mod title;
mod tool_sets;
mod tree;
mod unsent;
mod view;

pub use arenas::Arena;
pub use attachments::{Attached, Attachment, AttachmentKind};
pub use calls::{Call, CallEnd, CallState, CallTokens, NewCall};
pub use conversations::Conversation;
pub use error::{Error, Result};
pub use folders::{Folder, LONGEST_FOLDER_NAME};
pub use messages::{Ending, Message, NewQuestion, Role};
pub use rounds::TraceStorage;
pub use search::Hit;
pub use speedups::PairTimes;
pub use store::Store;
pub use title::{LONGEST_TITLE, title_from};
pub use tree::{Node, Tree};
pub use unsent::UnsentEdit;
