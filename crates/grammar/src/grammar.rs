//! Source of a grammar.

use foretoken_model::{Error, Result};
use llguidance::api::TopLevelGrammar;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::gbnf;

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
    /// Texts of a grammar in llama.cpp's form.
    Gbnf(String),
}

impl Grammar {
    /// Grammar in Lark or in llama.cpp's form, whose rules have `::=`.
    pub fn of_rules(source: String) -> Self {
        let is_rule =
            |line: &str| line.split_once("::=").is_some_and(|(name, _)| !name.contains(['"', '/', ':']));
        if source.lines().any(is_rule) { Self::Gbnf(source) } else { Self::Lark(source) }
    }

    /// Source in Lark of a grammar in llama.cpp's form, or the reason why it is none; `None` for
    /// other grammars.
    pub fn converted(&self) -> Option<std::result::Result<String, String>> {
        if let Self::Gbnf(source) = self { Some(gbnf::lark(source)) } else { None }
    }

    /// Name of its kind, for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Json | Self::Schema(_) => "JSON schema",
            Self::Regex(_) => "regular expression",
            Self::Lark(_) | Self::Gbnf(_) => "grammar",
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
            Self::Lark(source) | Self::Gbnf(source) => (source, 1 << 18),
        };
        if source.len() <= most {
            return Ok(());
        }
        Err(self.error(format!("it has {} bytes, and at most {most} are compiled", source.len())))
    }

    /// Schema of JSON in its fixed form, or the reason why it is invalid; `None` for other
    /// grammars.
    pub(crate) fn schema(&self) -> Option<std::result::Result<Value, String>> {
        match self {
            Self::Json => Some(Ok(any_object())),
            Self::Schema(source) => Some(parsed(source)),
            Self::Regex(_) | Self::Lark(_) | Self::Gbnf(_) => None,
        }
    }

    pub(crate) fn error(&self, reason: impl Into<String>) -> Error {
        Error::Grammar { kind: self.kind(), reason: reason.into() }
    }

    /// The grammar as llguidance compiles it, or the reason why it cannot be compiled.
    pub(crate) fn compiled(&self) -> std::result::Result<TopLevelGrammar, String> {
        Ok(match self {
            Self::Json => TopLevelGrammar::from_json_schema(any_object()),
            Self::Schema(source) => TopLevelGrammar::from_json_schema(parsed(source)?),
            Self::Regex(source) => TopLevelGrammar::from_regex(source),
            Self::Lark(source) => TopLevelGrammar::from_lark(source.clone()),
            Self::Gbnf(source) => TopLevelGrammar::from_lark(gbnf::lark(source)?),
        })
    }
}

/// Schema of any object, in the fixed form.
pub(crate) fn any_object() -> Value {
    with_form(Map::from_iter([("type".to_owned(), "object".into())]))
}

fn parsed(source: &str) -> std::result::Result<Value, String> {
    serde_json::from_str(source).map_err(|error| error.to_string()).and_then(in_fixed_form)
}

/// The schema with one form for white space, `{"a": 1, "b": 2}`: free white space lets a model
/// write line ends for ever, and a fixed one forces more tokens.
pub(crate) fn in_fixed_form(schema: Value) -> std::result::Result<Value, String> {
    match schema {
        Value::Object(schema) => Ok(with_form(schema)),
        Value::Bool(true) => Ok(with_form(Map::new())),
        Value::Bool(false) => Err("it accepts nothing".to_owned()),
        _ => Err("expected an object or true".to_owned()),
    }
}

fn with_form(mut schema: Map<String, Value>) -> Value {
    let form = json!({ "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": " });
    schema.insert(OPTIONS.to_owned(), form);
    Value::Object(schema)
}
