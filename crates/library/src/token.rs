//! Access token of the hub: its lookup and storage.

use std::fmt;

use hf_hub::hf_home;

use crate::token_source::TokenSource;
use crate::{Error, Result, secrets};

/// Name of the token in the keyring.
const NAME: &str = "hub";

/// A token and its origin.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) source: TokenSource,
    pub(crate) value: Option<String>,
}

/// A token is a secret, so it stays out of the log.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a token from {}", self.source)
    }
}

impl Token {
    pub(crate) fn find() -> Self {
        let none = Self { source: TokenSource::None, value: None };
        // An empty variable disables the token, as in other tools of the ecosystem.
        if std::env::var_os("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(|value| !value.is_empty()) {
            return none;
        }
        let found = Self::of(TokenSource::Environment, std::env::var("HF_TOKEN").ok())
            .or_else(|| Self::of(TokenSource::Keyring, secrets::find(NAME).ok().flatten()))
            .or_else(|| Self::of(TokenSource::File, read_file()));
        found.unwrap_or(none)
    }

    /// Creates a token; an empty text is none.
    fn of(source: TokenSource, text: Option<String>) -> Option<Self> {
        let value = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        value.map(|value| Self { source, value: Some(value) })
    }
}

/// # Errors
/// `Error::TokenForm` for a text that cannot be a token, `Error::Keyring` without a keyring.
pub(crate) fn keep(token: Option<&str>) -> Result<()> {
    let token = token.map(str::trim);
    let well_formed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if token.is_some_and(|token| token.is_empty() || !token.chars().all(well_formed)) {
        return Err(Error::TokenForm);
    }
    secrets::keep(NAME, token).map_err(|error| Error::Keyring(error.to_string()))
}

fn read_file() -> Option<String> {
    let named = std::env::var_os("HF_TOKEN_PATH").map(Into::into);
    std::fs::read_to_string(named.unwrap_or_else(|| hf_home().join("token"))).ok()
}
