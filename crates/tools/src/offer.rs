//! Tools as models see them: with names that differ, bounded descriptions, and a hash of what a
//! person approved.

use std::collections::HashSet;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::builtin::Builtin;
use crate::log::Log;

/// Longest name in bytes, and longest description in characters.
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 4_000;

/// Largest schema of arguments in bytes.
const LARGEST_SCHEMA: usize = 64 << 10;

/// Most tools of one server.
pub(crate) const MOST_TOOLS: usize = 128;

/// Owner of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Builtin(Builtin),
    /// Server of this name, and the tool's name there.
    Server {
        server: String,
        tool: String,
    },
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Name for the model: that of the server and of the tool, in letters that every model writes.
    pub name: String,
    pub source: Source,
    /// Words of the server, untrusted.
    pub description: String,
    /// JSON schema of the arguments.
    pub parameters: Value,
    /// SHA-256 of name, description and schema: a tool that changes has another one.
    pub digest: String,
}

/// A tool as its server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Map<String, Value>,
}

impl ListedTool {
    /// Reads an entry of a server's list; `None` with a remark if its schema is too large.
    pub(crate) fn of(tool: rmcp::model::Tool, log: &Log) -> Option<Self> {
        let bytes = serde_json::to_string(&*tool.input_schema).map_or(usize::MAX, |json| json.len());
        if bytes > LARGEST_SCHEMA {
            log.add(&format!("The tool {} was left out: its schema is too large.", tool.name));
            return None;
        }
        Some(Self {
            name: tool.name.to_string(),
            description: tool.description.unwrap_or_default().chars().take(LONGEST_DESCRIPTION).collect(),
            parameters: (*tool.input_schema).clone(),
        })
    }
}

impl Offer {
    fn new(name: String, source: Source, description: String, parameters: Value) -> Self {
        let own_name = match &source {
            Source::Builtin(_) => &name,
            Source::Server { tool, .. } => tool,
        };
        let mut hash = Sha256::new();
        for part in [own_name, &description, &parameters.to_string()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { name, source, description, parameters, digest }
    }

    pub(crate) fn builtin(builtin: Builtin) -> Self {
        let (description, parameters) = builtin.described();
        let name = builtin.name().to_owned();
        Self::new(name, Source::Builtin(builtin), description.to_owned(), parameters)
    }

    pub(crate) fn of_server(server: &str, tool: &ListedTool) -> Self {
        let source = Source::Server { server: server.to_owned(), tool: tool.name.clone() };
        let parameters = Value::Object(closed(tool.parameters.clone()));
        Self::new(model_name(server, &tool.name), source, tool.description.clone(), parameters)
    }

    /// Returns the server's name; `None` for a built-in tool.
    pub fn server(&self) -> Option<&str> {
        match &self.source {
            Source::Builtin(_) => None,
            Source::Server { server, .. } => Some(server),
        }
    }

    /// Returns the tool's own name.
    pub fn tool(&self) -> &str {
        match &self.source {
            Source::Builtin(builtin) => builtin.name(),
            Source::Server { tool, .. } => tool,
        }
    }
}

/// Closes a schema that says nothing of arguments beyond those that it names: models would make
/// some up.
fn closed(mut schema: Map<String, Value>) -> Map<String, Value> {
    const OPEN: [&str; 7] = [
        "additionalProperties",
        "patternProperties",
        "unevaluatedProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
    ];
    if schema.contains_key("properties") && !OPEN.iter().any(|keyword| schema.contains_key(*keyword)) {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
    schema
}

/// Returns built-in tools as models see them.
pub fn builtin_offers(builtins: &[Builtin]) -> Vec<Offer> {
    builtins.iter().map(|&builtin| Offer::builtin(builtin)).collect()
}

/// Gives later tools of a name that is taken a number.
pub(crate) fn tell_apart(offers: &mut [Offer]) {
    let mut taken = HashSet::new();
    for offer in offers {
        let mut number = 2;
        let plain = offer.name.clone();
        while !taken.insert(offer.name.clone()) {
            let suffix = format!("_{number}");
            let room = plain.len().min(LONGEST_NAME - suffix.len());
            offer.name = format!("{}{suffix}", &plain[..room]);
            number += 1;
        }
    }
}

/// Name for the model: `server__tool` in ASCII letters, digits, `_` and `-`.
fn model_name(server: &str, tool: &str) -> String {
    let plain = |letter: char| match letter {
        letter if letter.is_ascii_alphanumeric() || "_-".contains(letter) => letter,
        _ => '_',
    };
    let name: String = server.chars().chain("__".chars()).chain(tool.chars()).map(plain).collect();
    name.chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(name: &str, description: &str) -> ListedTool {
        let Value::Object(parameters) = json!({ "type": "object" }) else { unreachable!() };
        ListedTool { name: name.into(), description: description.into(), parameters }
    }

    #[test]
    fn tools_of_one_name_are_told_apart_by_server_and_then_by_number() {
        let mut offers =
            [("a", "read"), ("b", "read"), ("a", "read"), ("ä b", "lies!"), (&"x".repeat(70), "r")]
                .map(|(server, tool)| Offer::of_server(server, &listed(tool, "")));
        offers[4].name.clone_from(&"y".repeat(64));
        let long = offers[4].clone();
        let mut offers = [&offers[..], &[long]].concat();
        tell_apart(&mut offers);
        let names: Vec<_> = offers.iter().map(|offer| offer.name.as_str()).collect();
        let (y64, y62) = ("y".repeat(64), "y".repeat(62) + "_2");
        assert_eq!(names, ["a__read", "b__read", "a__read_2", "__b__lies_", &y64, &y62]);
    }

    #[test]
    fn only_a_schema_that_names_arguments_and_leaves_others_open_is_closed() {
        let parameters = |schema: Value| {
            let Value::Object(parameters) = schema else { unreachable!() };
            Offer::of_server("s", &ListedTool { parameters, ..listed("read", "Reads.") }).parameters
        };
        assert_eq!(parameters(json!({ "properties": {} }))["additionalProperties"], json!(false));
        for open in [
            json!({ "type": "object" }),
            json!({ "properties": {}, "additionalProperties": true }),
            json!({ "properties": {}, "anyOf": [] }),
        ] {
            assert_eq!(parameters(open.clone()), open);
        }
    }

    #[test]
    fn a_changed_description_or_schema_changes_the_digest() {
        let offer = |tool: &ListedTool| Offer::of_server("s", tool).digest;
        let tool = listed("read", "Reads.");
        let mut other = tool.clone();
        other.parameters.insert("title".to_owned(), json!("x"));
        let digests = [offer(&tool), offer(&listed("read", "Reads all.")), offer(&other)];
        assert_eq!(offer(&tool), digests[0]);
        assert_eq!(digests.iter().collect::<HashSet<_>>().len(), 3);
        assert_eq!(digests[0].len(), 64);
    }
}
