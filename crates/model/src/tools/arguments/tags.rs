//! Arguments between tags.

use serde_json::{Map, Value};

use super::text::{push_escaped, take};
use crate::template::{kept, python_json};
use crate::tools::Tool;

/// Texts before an argument's name, between it and the value, and after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tags<T = &'static str> {
    pub open: T,
    pub named: T,
    pub close: T,
}

impl Tags {
    pub(super) fn written(&self, arguments: &Map<String, Value>) -> String {
        let tagged = |(name, value): (&String, &Value)| {
            let value = value.as_str().map_or_else(|| python_json(value), str::to_owned);
            [self.open, name, self.named, &value, self.close].concat()
        };
        arguments.iter().map(tagged).collect()
    }
}

/// Reads arguments between tags.
#[derive(Debug, Clone)]
pub struct Reader {
    tags: Tags<String>,
    /// Tool whose schema says which arguments are texts.
    tool: Option<Tool>,
    /// `true` once there was an argument.
    has_any: bool,
    value: Option<Kind>,
}

/// Kind of a value that is read.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    /// JSON, or a text if it is none.
    Other,
}

impl Reader {
    pub fn new(tags: &Tags<String>, tool: Option<&Tool>) -> Self {
        Self { tags: tags.clone(), tool: tool.cloned(), has_any: false, value: None }
    }

    /// See `Reader::read` of the module above.
    pub fn read(&mut self, held: &mut String, json: &mut String) -> bool {
        loop {
            let goes_on = match self.value {
                None if held.starts_with(&self.tags.open) => self.name(held, json),
                None if self.tags.open.starts_with(held.as_str()) => false,
                None => {
                    json.push_str(if self.has_any { "}" } else { "{}" });
                    return true;
                }
                Some(kind) => self.value(kind, held, json),
            };
            if !goes_on {
                return false;
            }
        }
    }

    /// Reads a name; returns `false` if it goes on.
    fn name(&mut self, held: &mut String, json: &mut String) -> bool {
        let Some((name, rest)) = held[self.tags.open.len()..].split_once(&self.tags.named) else {
            return false;
        };
        let is_text = self.tool.as_ref().is_some_and(|tool| tool.takes_text(name));
        json.push_str(if self.has_any { ", \"" } else { "{\"" });
        push_escaped(json, name);
        json.push_str(if is_text { "\": \"" } else { "\": " });
        self.value = Some(if is_text { Kind::Text } else { Kind::Other });
        self.has_any = true;
        *held = rest.to_owned();
        true
    }

    /// Reads a value; returns `false` if it goes on.
    fn value(&mut self, kind: Kind, held: &mut String, json: &mut String) -> bool {
        let found = held.find(&self.tags.close);
        match (kind, found) {
            (Kind::Other, None) => return false,
            (Kind::Other, Some(end)) => match serde_json::from_str::<Value>(&held[..end]) {
                Ok(_) => json.push_str(&held[..end]),
                Err(_) => json.push_str(&Value::from(&held[..end]).to_string()),
            },
            (Kind::Text, None) => {
                let certain = held.len() - kept(held, &self.tags.close);
                push_escaped(json, &take(held, certain));
                return false;
            }
            (Kind::Text, Some(end)) => {
                push_escaped(json, &held[..end]);
                json.push('"');
            }
        }
        let end = found.unwrap_or_default() + self.tags.close.len();
        held.drain(..end);
        self.value = None;
        true
    }
}
