//! A round for the store and the page: copied once, and converted to JSON once, on the first thread
//! that needs it.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use foretoken_engine::trace::Round;
use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A round with its JSON; clones share both.
#[derive(Debug, Clone)]
pub struct SharedRound(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    round: Round,
    /// JSON; `None` inside for a round that cannot be converted, which has been logged.
    json: OnceLock<Option<Box<RawValue>>>,
}

impl SharedRound {
    pub fn of(round: &Round) -> Self {
        Self(Arc::new(Inner { round: round.clone(), json: OnceLock::new() }))
    }

    /// Returns the stored form; `None` for a round that cannot be converted to JSON.
    pub fn json(&self) -> Option<&RawValue> {
        let write = || {
            let written = serde_json::value::to_raw_value(&self.0.round);
            written.inspect_err(|error| tracing::error!(%error, "a round cannot be written as JSON")).ok()
        };
        self.0.json.get_or_init(write).as_deref()
    }
}

impl Deref for SharedRound {
    type Target = Round;

    fn deref(&self) -> &Round {
        &self.0.round
    }
}

impl PartialEq for SharedRound {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Serialize for SharedRound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = self.json().ok_or_else(|| S::Error::custom("a round cannot be written as JSON"))?;
        json.serialize(serializer)
    }
}
