//! Where the access token of the hub comes from.

use std::fmt;

/// Where the token comes from, the first of them that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenSource {
    None,
    /// HF_TOKEN
    Environment,
    /// The system's keyring, where this program puts it.
    Keyring,
    /// The file other programs of the ecosystem keep it in.
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
