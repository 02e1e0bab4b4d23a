//! Arguments in Gemma's notation: objects with sorted keys without quotes, and texts between two
//! tokens.

use serde_json::Value;

use super::text::{push_escaped, sort_key, take};
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
        loop {
            let goes_on = match self.next {
                Next::Text => self.text(held, json),
                Next::Key if !held.starts_with('}') => self.key(held, json),
                Next::Key | Next::Other => {
                    if held.starts_with(&self.quote) {
                        held.drain(..self.quote.len());
                        json.push('"');
                        self.next = Next::Text;
                        true
                    } else if self.quote.starts_with(held.as_str()) {
                        false
                    } else if self.sign(held, json) {
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

    fn text(&mut self, held: &mut String, json: &mut String) -> bool {
        let Some(end) = held.find(&self.quote) else {
            let certain = held.len() - kept(held, &self.quote);
            push_escaped(json, &take(held, certain));
            return false;
        };
        push_escaped(json, &held[..end]);
        json.push('"');
        held.drain(..end + self.quote.len());
        self.next = Next::Other;
        true
    }

    fn key(&mut self, held: &mut String, json: &mut String) -> bool {
        let Some((key, rest)) = held.split_once(':') else { return false };
        json.push('"');
        push_escaped(json, &key.replace(&self.quote, ""));
        json.push_str("\": ");
        *held = rest.to_owned();
        self.next = Next::Other;
        true
    }

    /// Reads a character of other values; returns `true` at the end of the object.
    fn sign(&mut self, held: &mut String, json: &mut String) -> bool {
        let Some(sign) = held.chars().next() else { return false };
        held.drain(..sign.len_utf8());
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
