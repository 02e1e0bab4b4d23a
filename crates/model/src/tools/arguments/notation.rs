//! Arguments in Gemma's notation: objects with sorted keys without quotes, and texts between two
//! tokens.

use serde_json::Value;

use super::text::{push_escaped, sort_key};
use crate::template::kept;

pub(super) fn written(value: &Value, quote: &str) -> String {
    match value {
        Value::String(text) => [quote, text, quote].concat(),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(|item| written(item, quote)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| sort_key(name));
            let fields = fields.iter().map(|(name, value)| format!("{name}:{}", written(value, quote)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Reads an object.
#[derive(Debug, Clone)]
pub struct Reader {
    quote: String,
    /// Objects (`true`) and lists that are open, the innermost last.
    open: Vec<bool>,
    next: Next,
}

/// Part that is read next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Next {
    Key,
    Text,
    Other,
}

impl Reader {
    pub fn new(quote: &str) -> Self {
        Self { quote: quote.to_owned(), open: Vec::new(), next: Next::Other }
    }

    /// See `Reader::read` of the module above.
    pub fn read(&mut self, held: &mut String, json: &mut String) -> bool {
        let mut rest = held.as_str();
        let ended = self.read_from(&mut rest, json);
        let length = held.len() - rest.len();
        held.drain(..length);
        ended
    }

    /// Reads the beginning of `rest`, and leaves what has to wait for more.
    fn read_from(&mut self, rest: &mut &str, json: &mut String) -> bool {
        loop {
            let goes_on = match self.next {
                Next::Text => self.text(rest, json),
                Next::Key if !rest.starts_with('}') => self.key(rest, json),
                Next::Key | Next::Other => {
                    if let Some(text) = rest.strip_prefix(&self.quote) {
                        *rest = text;
                        json.push('"');
                        self.next = Next::Text;
                        true
                    } else if self.quote.starts_with(*rest) {
                        false
                    } else if self.sign(rest, json) {
                        return true;
                    } else {
                        true
                    }
                }
            };
            if !goes_on {
                return false;
            }
        }
    }

    fn text(&mut self, rest: &mut &str, json: &mut String) -> bool {
        let Some((text, after)) = rest.split_once(&self.quote) else {
            let certain = rest.len() - kept(rest, &self.quote);
            push_escaped(json, &rest[..certain]);
            *rest = &rest[certain..];
            return false;
        };
        push_escaped(json, text);
        json.push('"');
        *rest = after;
        self.next = Next::Other;
        true
    }

    fn key(&mut self, rest: &mut &str, json: &mut String) -> bool {
        let Some((key, after)) = rest.split_once(':') else { return false };
        json.push('"');
        push_escaped(json, &key.replace(&self.quote, ""));
        json.push_str("\": ");
        *rest = after;
        self.next = Next::Other;
        true
    }

    /// Reads a character of other values; returns `true` at the end of the object.
    fn sign(&mut self, rest: &mut &str, json: &mut String) -> bool {
        let Some(sign) = rest.chars().next() else { return false };
        *rest = &rest[sign.len_utf8()..];
        match sign {
            '{' | '[' => {
                self.open.push(sign == '{');
                self.next = if sign == '{' { Next::Key } else { Next::Other };
            }
            '}' | ']' => {
                self.open.pop();
                self.next = Next::Other;
            }
            ',' => {
                json.push_str(", ");
                self.next = if self.open.last() == Some(&true) { Next::Key } else { Next::Other };
                return false;
            }
            _ => {}
        }
        json.push(sign);
        self.open.is_empty() && sign == '}'
    }
}
