//! Running servers of tools, and decisions that a reply waits for.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use foretoken_library::Folders;
use foretoken_tools::Toolbox;

use crate::cancel::{Cancel, Latest};
use crate::error::Result;
use crate::ipc::{CallDecision, CommandError, ErrorCode};
use crate::lock::lock;

/// State of the tools.
pub(crate) struct Tools {
    /// `mcp.json`.
    pub(super) file: PathBuf,
    pub(super) toolbox: OnceLock<Toolbox>,
    /// Decision about the call with this id, which a reply waits for.
    decision: Mutex<Option<(i64, CallDecision)>>,
    decided: Condvar,
    /// Prompt or resource that is fetched.
    pub(super) fetching: Latest,
}

impl Tools {
    pub(crate) fn new(folders: &Folders) -> Self {
        let file = folders.root().join("mcp.json");
        let (decision, decided, fetching) = (Mutex::default(), Condvar::new(), Latest::default());
        Self { file, toolbox: OnceLock::new(), decision, decided, fetching }
    }

    /// Returns the running servers; none run before the first call.
    pub(super) fn toolbox(&self) -> Result<&Toolbox> {
        if let Some(toolbox) = self.toolbox.get() {
            return Ok(toolbox);
        }
        let toolbox = Toolbox::new().map_err(|error| CommandError::new(ErrorCode::Internal, error))?;
        Ok(self.toolbox.get_or_init(|| toolbox))
    }

    /// Waits for the decision about a call; `None` once the reply is cancelled.
    pub(super) fn wait_for(&self, call: i64, cancel: &Cancel) -> Option<CallDecision> {
        let mut decision = lock(&self.decision);
        loop {
            if cancel.is_cancelled() {
                return None;
            }
            if let Some((_, decided)) = decision.take_if(|(decided, _)| *decided == call) {
                return Some(decided);
            }
            let waited = self.decided.wait_timeout(decision, Duration::from_millis(100));
            decision = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Passes on the decision about a call that waits for it.
    pub(super) fn decide(&self, call: i64, decision: CallDecision) {
        *lock(&self.decision) = Some((call, decision));
        self.decided.notify_all();
    }
}
