//! Origin of the hub's access token.

use std::fmt;

/// Origin of the token: the first of these that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenSource {
    None,
    /// The variable HF_TOKEN.
    Environment,
    /// The system keyring, where this program stores it.
    Keyring,
    /// The file in which other tools of the ecosystem store it.
    File,
}

impl fmt::Display for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "nowhere",
            Self::Environment => "HF_TOKEN",
            Self::Keyring => "the system keyring",
            Self::File => "the hub's token file",
        })
    }
}
