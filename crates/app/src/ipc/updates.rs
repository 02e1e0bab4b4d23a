//! Updates of this program.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Status of updates, as the settings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct UpdateStatus {
    pub support: UpdateSupport,
    pub phase: UpdatePhase,
    /// Newer version that was found last.
    pub found: Option<FoundUpdate>,
    /// Bytes of its package that were downloaded.
    #[ts(type = "number")]
    pub done_bytes: u64,
    /// Bytes of its package; `None` if the server does not report them.
    #[ts(type = "number | null")]
    pub total_bytes: Option<u64>,
    /// Why the last step failed.
    pub problem: Option<UpdateProblem>,
}

/// Abilities of this copy of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum UpdateSupport {
    /// The build has no release channel, so there is nothing to check.
    None,
    /// New versions are found, and installed in the way that this one was.
    Find,
    /// New versions are found, and installed by the program itself.
    Install,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum UpdatePhase {
    Unchecked,
    Checking,
    UpToDate,
    /// There is a newer version.
    Found,
    Downloading,
    /// The package is downloaded, and its signature is verified.
    Ready,
    Installing,
    Failed,
}

/// A newer version of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct FoundUpdate {
    pub version: String,
    /// Release notes, which are plain text; empty for none.
    pub notes: String,
}

/// Why a step of an update failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum UpdateProblem {
    /// The server cannot be reached, or refuses.
    Unreachable,
    /// The connection ended too early.
    ConnectionLost,
    /// The response is not a description of a release.
    BadResponse,
    /// The response or the package exceeds its limit.
    TooLarge,
    /// The release has no package for this system.
    NoPackage,
    /// The package was not signed by the project for this version.
    BadSignature,
    /// The package cannot be installed.
    NotInstalled,
}
