//! A model's own chat template, rendered as Hugging Face renders it. Knows nothing of tokens; a
//! template that runs too long, recurses or refuses is an error in its own words.

use std::fmt::Write;
use std::path::PathBuf;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, ErrorKind, context};
use serde::Serialize;

use crate::error::{Error, Result};

/// Instructions a rendering may take: a long conversation needs some thousands, an endless loop is
/// stopped within a second.
const FUEL: u64 = 20_000_000;

const NAME: &str = "chat";

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    pub role: Role,
    pub content: String,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
}

impl Role {
    /// The name templates know it by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A compiled template.
pub struct ChatTemplate {
    path: PathBuf,
    environment: Environment<'static>,
}

impl ChatTemplate {
    /// Compiles `source`. `bos` and `eos` are the texts of those tokens, where the model has them;
    /// `path` is for messages.
    ///
    /// # Errors
    /// `Error::Template` when the source is not valid Jinja.
    pub fn new(path: PathBuf, source: String, bos: Option<&str>, eos: Option<&str>) -> Result<Self> {
        let failed =
            |error: minijinja::Error| Error::Template { path: path.clone(), reason: describe(&error) };
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        let syntax = syntax.map_err(failed)?;
        let mut environment = Environment::new();
        environment.set_syntax(syntax);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        environment.add_filter("tojson", to_json);
        for (name, text) in [("bos_token", bos), ("eos_token", eos)] {
            if let Some(text) = text {
                environment.add_global(name, text.to_owned());
            }
        }
        environment.add_template_owned(NAME, source).map_err(failed)?;
        Ok(Self { path, environment })
    }

    /// The text the model is to continue. `add_generation_prompt` opens the assistant's next turn.
    ///
    /// # Errors
    /// `Error::Template` with the template's own words when it refuses, or with what went wrong.
    pub fn render(&self, messages: &[ChatMessage], add_generation_prompt: bool) -> Result<String> {
        let messages: Vec<Value> = messages
            .iter()
            .map(|m| context! { role => m.role.as_str(), content => m.content.as_str() })
            .collect();
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(context! { messages, add_generation_prompt }))
            .map_err(|error| Error::Template { path: self.path.clone(), reason: describe(&error) })
    }
}

/// One line: what went wrong and where, or the template's own words alone.
fn describe(error: &minijinja::Error) -> String {
    let detail = error.detail().unwrap_or_default();
    match error.kind() {
        RAISED => detail.to_owned(),
        ErrorKind::OutOfFuel => "it runs too long".into(),
        kind => {
            let line = error.line().map(|n| format!(" (line {n})")).unwrap_or_default();
            let colon = if detail.is_empty() { "" } else { ": " };
            format!("{kind}{colon}{detail}{line}")
        }
    }
}

/// The kind of error that `raise_exception` makes; the engine itself raises none of it here, as
/// nothing is included from elsewhere.
const RAISED: ErrorKind = ErrorKind::BadInclude;

fn raise_exception(message: String) -> std::result::Result<Value, minijinja::Error> {
    Err(minijinja::Error::new(RAISED, message))
}

/// The local time, in the form that `format` describes.
fn strftime_now(format: &str) -> std::result::Result<String, minijinja::Error> {
    let mut text = String::new();
    // An unknown directive is a formatting error.
    write!(text, "{}", chrono::Local::now().format(format)).map_err(|_| {
        minijinja::Error::new(ErrorKind::InvalidOperation, format!("unknown date format '{format}'"))
    })?;
    Ok(text)
}

/// JSON as Python writes it: a space after commas and colons, nothing escaped for HTML.
fn to_json(value: &Value, options: Kwargs) -> std::result::Result<String, minijinja::Error> {
    let indent: Option<usize> = options.get("indent")?;
    options.assert_all_used()?;
    let mut text = Vec::new();
    let written = match indent {
        None => value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, OneLine)),
        Some(width) => {
            let width = " ".repeat(width.min(16));
            let pretty = serde_json::ser::PrettyFormatter::with_indent(width.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, pretty))
        }
    };
    let failed = |error: String| minijinja::Error::new(ErrorKind::BadSerialization, error);
    written.map_err(|error| failed(error.to_string()))?;
    String::from_utf8(text).map_err(|error| failed(error.to_string()))
}

/// Python's separators, ", " and ": ".
struct OneLine;

impl serde_json::ser::Formatter for OneLine {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}
