//! Child process for work on untrusted input, with limits on memory, stack and time: the same
//! program, started with [`ARGUMENT`]. Requests and answers are one line each.
//!
//! - [`Child`]: the parent's side, with one process; `answers`: reads its answers in time
//! - [`serve_if_asked`], [`Task`]: the child's side, and the work it can do
//! - [`Bounded`]: allocator of such programs

mod answers;
mod memory;
mod process;
mod serve;

pub use memory::Bounded;
pub use process::{Child, Program};
pub use serve::{Handler, Task, serve_if_asked};

/// Command-line argument that starts a program as a child process.
pub const ARGUMENT: &str = "--serve-untrusted-input";

/// Longest answer in bytes. A conversation of a million tokens has 4 to 5 MB.
pub const LONGEST_ANSWER: u64 = 64 << 20;

/// Line that the child process writes when it is ready.
const READY: &[u8] = b"ready\n";

/// Reason why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The process cannot be started.
    NotStarted(String),
    /// The work took longer than the time of its [`Task`]; the process was killed.
    TooLong,
    /// The work took more than the memory of its [`Task`], which ended the process.
    TooMuchMemory,
    /// The work panicked or ended the process, or its answer was longer than [`LONGEST_ANSWER`].
    Ended,
}
