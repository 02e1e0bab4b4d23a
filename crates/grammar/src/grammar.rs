//! Source of a grammar.

use foretoken_model::{Error, Result};
use llguidance::api::TopLevelGrammar;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Key of a schema with llguidance's options.
const OPTIONS: &str = "x-guidance";

/// Language that a reply belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grammar {
    /// Any JSON object.
    Json,
    /// Values of a JSON schema, its source as JSON.
    Schema(String),
    /// Texts that a regular expression matches as a whole.
    Regex(String),
    /// Texts of a Lark grammar in llguidance's dialect.
    Lark(String),
}

impl Grammar {
    /// Name of its kind, for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Json | Self::Schema(_) => "JSON schema",
            Self::Regex(_) => "regular expression",
            Self::Lark(_) => "grammar",
        }
    }

    /// Checks that the source is short enough to be compiled.
    ///
    /// # Errors
    /// `Error::Grammar` if it is not.
    pub fn admit(&self) -> Result<()> {
        let (source, most) = match self {
            Self::Json => return Ok(()),
            Self::Schema(source) => (source, 1 << 20),
            Self::Regex(source) => (source, 1 << 13),
            Self::Lark(source) => (source, 1 << 18),
        };
        if source.len() <= most {
            return Ok(());
        }
        Err(self.error(format!("it has {} bytes, and at most {most} are compiled", source.len())))
    }

    /// Schema of JSON in its fixed form; `None` for other grammars and invalid schemas.
    pub(crate) fn schema(&self) -> Option<Value> {
        match self {
            Self::Json => in_fixed_form(json!({ "type": "object" })).ok(),
            Self::Schema(source) => in_fixed_form(serde_json::from_str(source).ok()?).ok(),
            Self::Regex(_) | Self::Lark(_) => None,
        }
    }

    pub(crate) fn error(&self, reason: impl Into<String>) -> Error {
        Error::Grammar { kind: self.kind(), reason: reason.into() }
    }

    /// The grammar as llguidance compiles it, or the reason why it cannot be compiled.
    pub(crate) fn compiled(&self) -> std::result::Result<TopLevelGrammar, String> {
        let schema = match self {
            Self::Json => json!({ "type": "object" }),
            Self::Schema(source) => serde_json::from_str(source).map_err(|error| error.to_string())?,
            Self::Regex(source) => return Ok(TopLevelGrammar::from_regex(source)),
            Self::Lark(source) => return Ok(TopLevelGrammar::from_lark(source.clone())),
        };
        Ok(TopLevelGrammar::from_json_schema(in_fixed_form(schema)?))
    }
}

/// The schema with one form for white space, `{"a": 1, "b": 2}`: free white space lets a model
/// write line ends for ever, and a fixed one forces more tokens.
pub(crate) fn in_fixed_form(schema: Value) -> std::result::Result<Value, String> {
    let mut schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(true) => Map::new(),
        Value::Bool(false) => return Err("it accepts nothing".to_owned()),
        _ => return Err("expected an object or true".to_owned()),
    };
    let form = json!({ "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": " });
    schema.insert(OPTIONS.to_owned(), form);
    Ok(Value::Object(schema))
}
