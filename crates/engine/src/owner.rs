//! Owners of texts. Neither times nor counts of reused tokens tell one owner what another wrote.

/// Owner of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Owner {
    /// The person at this computer.
    #[default]
    Person,
    /// A client of the local server, by the hash of its key.
    Client([u8; 32]),
}
