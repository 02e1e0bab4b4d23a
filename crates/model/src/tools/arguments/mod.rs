//! Forms of a call's arguments: how models write them, and their JSON while they are written.

mod json;
mod notation;
mod python;
mod tags;
mod text;

use serde_json::{Map, Value};

use super::Tool;
use crate::template::python_json;
pub use tags::Tags;
pub use text::sort_key;

/// Form of a call's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentForm<T = &'static str> {
    /// One JSON object.
    Json,
    /// One after the other between tags, a text as it is and other values as JSON; see
    /// [`Tool::takes_text`].
    Tags(Tags<T>),
    /// Gemma's objects: keys without quotes, sorted, and texts between two `quote`s.
    Notation { quote: T },
    /// Arguments of a call in Python.
    Python,
}

impl<T> ArgumentForm<T> {
    /// Returns the form with other texts.
    pub fn map<U>(self, change: impl Fn(T) -> U) -> ArgumentForm<U> {
        match self {
            Self::Json => ArgumentForm::Json,
            Self::Tags(Tags { open, named, close }) => {
                ArgumentForm::Tags(Tags { open: change(open), named: change(named), close: change(close) })
            }
            Self::Notation { quote } => ArgumentForm::Notation { quote: change(quote) },
            Self::Python => ArgumentForm::Python,
        }
    }
}

impl ArgumentForm {
    /// Returns arguments as a model writes them.
    pub fn written(&self, arguments: &Map<String, Value>) -> String {
        match self {
            Self::Json => python_json(arguments),
            Self::Tags(tags) => tags.written(arguments),
            Self::Notation { quote } => notation::written(&Value::Object(arguments.clone()), quote),
            Self::Python => python::written(arguments),
        }
    }

    /// Returns a value within the arguments as a model writes it.
    pub fn value(&self, value: &Value) -> String {
        match self {
            Self::Json => python_json(value),
            Self::Tags(_) => value.as_str().map_or_else(|| python_json(value), str::to_owned),
            Self::Notation { quote } => notation::written(value, quote),
            Self::Python => python::value(value),
        }
    }
}

/// Reads arguments while they are written.
#[derive(Debug, Clone)]
pub(super) enum Reader {
    Json(json::Reader),
    Tags(tags::Reader),
    Notation(notation::Reader),
    Python(python::Reader),
}

impl Reader {
    /// Begins to read the arguments of a call of `tool`, if it is known.
    pub fn new(form: &ArgumentForm<String>, tool: Option<&Tool>) -> Self {
        match form {
            ArgumentForm::Json => Self::Json(json::Reader::default()),
            ArgumentForm::Tags(tags) => Self::Tags(tags::Reader::new(tags, tool)),
            ArgumentForm::Notation { quote } => Self::Notation(notation::Reader::new(quote)),
            ArgumentForm::Python => Self::Python(python::Reader::default()),
        }
    }

    /// Takes what is certain from `held`, up to the end of the arguments. Returns its JSON, and
    /// `true` at their end.
    pub fn read(&mut self, held: &mut String) -> (String, bool) {
        let mut json = String::new();
        let ended = match self {
            Self::Json(reader) => reader.read(held, &mut json),
            Self::Tags(reader) => reader.read(held, &mut json),
            Self::Notation(reader) => reader.read(held, &mut json),
            Self::Python(reader) => reader.read(held, &mut json),
        };
        (json, ended)
    }
}
