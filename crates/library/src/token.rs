//! The access token of the hub: where it is looked for and kept.

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
