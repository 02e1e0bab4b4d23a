//! Compiles and renders chat templates as Hugging Face does, within this process: for the child
//! that `child` starts, and for tests. Templates that loop, recurse or raise an exception return
//! errors. Does not bound memory and stack.

use std::fmt::Write;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value};
use minijinja::{Environment, ErrorKind, context};
use serde::Serialize;

use super::ask::{Answer, Ask, Prompt, Source, TOO_LONG};
use super::message::{ChatMessage, Role};
use super::{python, thinking};

/// Instructions per rendering. A long conversation needs some thousands; an endless loop stops
/// within a second.
const FUEL: u64 = 20_000_000;

const NAME: &str = "chat";

/// Compiles and renders templates; caches the last one compiled.
#[derive(Default)]
pub(super) struct Jinja {
    last: Option<Compiled>,
}

/// A compiled template.
pub(super) struct Compiled {
    source: Source,
    pub(super) environment: Environment<'static>,
}

impl Jinja {
    /// Answers a request.
    pub(super) fn answer(&mut self, ask: &Ask<'_>) -> Answer {
        let compiled = match self.last.take().filter(|last| last.source == *ask.source) {
            Some(same) => same,
            None => Compiled::new(&ask.source).map_err(|error| describe(&error))?,
        };
        let compiled = self.last.insert(compiled);
        ask.prompt
            .as_ref()
            .map_or(Ok(String::new()), |prompt| compiled.render(prompt).map_err(|error| describe(&error)))
    }
}

impl Compiled {
    pub(super) fn new(source: &Source) -> Result<Self, minijinja::Error> {
        let mut environment = environment()?;
        for (name, text) in [("bos_token", &source.bos), ("eos_token", &source.eos)] {
            if let Some(text) = text {
                environment.add_global(name, text.clone());
            }
        }
        environment
            .add_template_owned(NAME, python::rewritten(&without_marks(&with_newlines(&source.text))))?;
        Ok(Self { source: source.clone(), environment })
    }

    pub(super) fn render(&self, prompt: &Prompt<'_>) -> Result<String, minijinja::Error> {
        let messages = prompt.messages.iter();
        let mut messages: Vec<Value> =
            messages.map(|message| message_value(message, &prompt.messages, prompt.in_parts)).collect();
        if !prompt.tools.is_empty() && self.source.text.contains(TOOLS_IN_SYSTEM) {
            put_into_system(&mut messages, prompt);
        }
        let add_generation_prompt = prompt.add_generation_prompt;
        // Hugging Face's renderer passes `tools` and `documents`, None by default.
        let tools: Vec<Value> = prompt.tools.iter().map(|tool| Value::from(Serde(tool.json()))).collect();
        let (tools, documents) = (Some(tools).filter(|tools| !tools.is_empty()), ());
        let given = context! { messages, add_generation_prompt, tools, documents };
        // Left undefined if unset, so that the template's default applies.
        let said = prompt.thinking.into_iter();
        let said = Value::from_pairs(said.flat_map(|thinks| thinking::SWITCHES.map(|name| (name, thinks))));
        self.environment.get_template(NAME)?.render(context! { ..given, ..said })
    }
}

/// Text of templates that read the tools in the system message, as Phi-4-mini's does.
const TOOLS_IN_SYSTEM: &str = "message['tools']";

/// Gives the first system message the tools as JSON; without one, that of Phi-4-mini's makers.
fn put_into_system(messages: &mut Vec<Value>, prompt: &Prompt<'_>) {
    const SYSTEM: &str = "You are a helpful assistant with some tools.";
    let functions: Vec<_> = prompt.tools.iter().map(|tool| tool.json()["function"].take()).collect();
    let tools = python_json(&functions);
    match messages.first_mut().filter(|_| prompt.messages[0].role == Role::System) {
        Some(system) => *system = context! { tools, ..system.clone() },
        None => messages.insert(0, context! { role => "system", content => SYSTEM, tools }),
    }
}

/// Message as templates see it. Those that ask whether a message has calls see none otherwise.
fn message_value(message: &ChatMessage, all: &[ChatMessage], in_parts: bool) -> Value {
    let content = match in_parts || !message.pictures.is_empty() {
        true => Value::from_iter(message.parts().into_iter().map(part_value)),
        false => Value::from(message.content.as_str()),
    };
    let value = context! { role => message.role.as_str(), content };
    if !message.calls.is_empty() {
        let calls: Vec<Value> = message.calls.iter().map(|call| Value::from(Serde(call.json()))).collect();
        let value = context! { tool_calls => calls, ..value };
        let Some(thinking) = &message.thinking else { return value };
        let fields = thinking::FIELDS.map(|(name, _)| (name, thinking.as_str()));
        return context! { ..value, ..Value::from_pairs(fields) };
    }
    let Some(id) = &message.call_id else { return value };
    let name = all.iter().flat_map(|before| &before.calls).find(|call| call.id == *id);
    let name = name.map(|call| call.name.as_str()).unwrap_or_default();
    context! { tool_call_id => id.as_str(), name, ..value }
}

/// Part of a message as templates see it: a text, or a picture.
fn part_value(text: Option<&str>) -> Value {
    match text {
        Some(text) => context! { type => "text", text },
        None => context! { type => "image" },
    }
}

/// Builds the environment with the functions and filters that Hugging Face provides.
fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(python::unknown_method);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_filter("tojson", to_json);
    environment.add_test("iterable", is_iterable);
    Ok(environment)
}

/// Describes an error in one line: cause and position, or the template's own message alone.
pub(super) fn describe(error: &minijinja::Error) -> String {
    let detail = error.detail().unwrap_or_default();
    match error.kind() {
        RAISED => detail.to_owned(),
        ErrorKind::OutOfFuel => TOO_LONG.into(),
        kind => {
            let line = error.line().map(|n| format!(" (line {n})")).unwrap_or_default();
            let colon = if detail.is_empty() { "" } else { ": " };
            format!("{kind}{colon}{detail}{line}")
        }
    }
}

/// Kind of error for `raise_exception`. The engine itself never raises it here, as no template
/// includes another.
const RAISED: ErrorKind = ErrorKind::BadInclude;

fn raise_exception(message: String) -> Result<Value, minijinja::Error> {
    Err(minijinja::Error::new(RAISED, message))
}

/// Formats the local time.
fn strftime_now(format: &str) -> Result<String, minijinja::Error> {
    let mut text = String::new();
    // An unknown directive is a formatting error.
    write!(text, "{}", chrono::Local::now().format(format)).map_err(|_| {
        minijinja::Error::new(ErrorKind::InvalidOperation, format!("unknown date format '{format}'"))
    })?;
    Ok(text)
}

/// Replaces line ends by newlines, as Jinja2 does.
fn with_newlines(source: &str) -> String {
    source.replace("\r\n", "\n").replace('\r', "\n")
}

/// Replaces `{% generation %}` blocks, which mark the assistant's text for training.
fn without_marks(source: &str) -> String {
    let mut whole = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let end = rest[start..].find("%}").map_or(rest.len(), |end| start + end + 2);
        let tag = &rest[start..end];
        let word = tag.trim_matches(['{', '}', '%', '-', '+']).trim();
        whole.push_str(&rest[..start]);
        match word {
            "generation" => whole.push_str(&tag.replace(word, "if true")),
            "endgeneration" => whole.push_str(&tag.replace(word, "endif")),
            _ => whole.push_str(tag),
        }
        rest = &rest[end..];
    }
    whole.push_str(rest);
    whole
}

/// Returns whether a value can be iterated as in Python, where None cannot; MiniJinja treats it as
/// empty.
fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

/// Formats JSON as Python does: a space after commas and colons, no HTML escapes.
fn to_json(value: &Value, options: Kwargs) -> Result<String, minijinja::Error> {
    let indent: Option<usize> = options.get("indent")?;
    let ascii = options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    let sorted = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    options.assert_all_used()?;
    let text = if sorted {
        serde_json::to_value(value).and_then(|mut value| {
            value.sort_all_objects();
            written(&value, indent)
        })
    } else {
        written(value, indent)
    };
    let text = text.map_err(|error| minijinja::Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    Ok(if ascii { in_ascii(&text) } else { text })
}

/// Formats JSON in one line as Python does, as templates write tools and calls.
pub(crate) fn python_json(value: &impl Serialize) -> String {
    // JSON without numbers as keys can always be written.
    written(value, None).unwrap_or_default()
}

fn written(value: &impl Serialize, indent: Option<usize>) -> serde_json::Result<String> {
    let mut text = Vec::new();
    match indent {
        None => value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, OneLine))?,
        Some(width) => {
            let width = " ".repeat(width.min(16));
            let pretty = serde_json::ser::PrettyFormatter::with_indent(width.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, pretty))?;
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Escapes characters beyond ASCII as UTF-16; in JSON they occur only in strings.
fn in_ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            text.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

/// Formatter with Python's separators, ", " and ": ".
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
