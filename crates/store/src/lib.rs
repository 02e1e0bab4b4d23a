//! Conversations, messages, traces and settings in one SQLite file. Knows neither the engine nor
//! the window: rounds, summaries and settings are JSON documents that others wrote and will read.
//!
//! - [`Store`]: the open database (`store.rs`), made and upgraded by `schema.rs`
//! - [`Conversation`]: create, list, rename, pin, delete with undo
//! - [`Message`]: what a person wrote and what the model replied; [`Ending`] closes a reply
//! - [`Attachment`]: a file beside a question; [`Attached`]: with what is in it; [`Asked`]: a question and its files
//! - branches: other ways a conversation went; one is shown, all are kept
//! - [`Tree`]: a conversation as a whole, with all its branches: copied, exported, imported
//! - rounds: the trace of a reply, appended while it is written and packed when it ends; [`TraceStorage`] is
//!   what all of them take
//! - [`Arena`]: what an arena brought, one JSON document each
//! - [`PairTimes`]: what drafts saved over all replies of a pair of models
//! - [`Hit`]: full-text search over all messages
//! - settings and the window's view state: one JSON document each; what a conversation is written with (`setup.rs`): one each
//! - unsent: what was typed and not sent
//! - `age`: when what was deleted goes for good; `private`: files that nobody else may read; `aside`: a database
//!   that cannot be used is kept
//!
//! A method that returned has its change in the database: a process killed afterwards loses none of
//! it. A method that failed changed nothing. All times are milliseconds since 1970.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod age;
mod arenas;
mod aside;
mod attachments;
mod branches;
mod conversations;
mod error;
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
mod tree;
mod unsent;
mod view;

pub use arenas::Arena;
pub use attachments::{Attached, Attachment, AttachmentKind};
pub use conversations::Conversation;
pub use error::{Error, Result};
pub use messages::{Asked, Ending, Message, Role};
pub use rounds::TraceStorage;
pub use search::Hit;
pub use speedups::PairTimes;
pub use store::Store;
pub use title::{LONGEST_TITLE, title_from};
pub use tree::{Node, Tree};
