//! Arguments of a call in Python, `a='x', b=[1, True]`.

use serde_json::{Map, Value};

use super::text::push_escaped;
use crate::template::python_json;

pub(super) fn written(arguments: &Map<String, Value>) -> String {
    let argument = |(name, argument): (&String, &Value)| format!("{name}={}", value(argument));
    arguments.iter().map(argument).collect::<Vec<_>>().join(", ")
}

/// Returns a value as a literal. LFM's template writes mappings as JSON.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => {
            let escaped = text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
            format!("'{escaped}'")
        }
        Value::Array(list) => {
            format!("[{}]", list.iter().map(self::value).collect::<Vec<_>>().join(", "))
        }
        Value::Number(_) | Value::Object(_) => python_json(value),
    }
}

/// Reads arguments up to the bracket that ends the call.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    state: State,
    /// `true` once there was an argument.
    has_any: bool,
    /// Name or literal that goes on.
    word: String,
    /// Brackets that are open within a value.
    depth: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum State {
    #[default]
    Name,
    Value,
    /// Text between two of these quotes.
    Text(char),
    /// After a backslash in such a text.
    Escape(char),
}

impl Reader {
    /// See `Reader::read` of the module above. The bracket that ends the call stays in `held`.
    pub fn read(&mut self, held: &mut String, json: &mut String) -> bool {
        for (at, sign) in held.char_indices() {
            match self.state {
                State::Text(quote) => self.text(quote, sign, json),
                State::Escape(quote) => {
                    push_escape(sign, json);
                    self.state = State::Text(quote);
                }
                State::Name | State::Value if sign == ')' && self.depth == 0 => {
                    self.end_word(json);
                    json.push_str(if self.has_any { "}" } else { "{}" });
                    held.drain(..at);
                    return true;
                }
                State::Name => self.name(sign, json),
                State::Value => self.value(sign, json),
            }
        }
        held.clear();
        false
    }

    fn text(&mut self, quote: char, sign: char, json: &mut String) {
        match sign {
            '\\' => self.state = State::Escape(quote),
            _ if sign == quote => {
                json.push('"');
                self.state = State::Value;
            }
            _ => push_escaped(json, sign.encode_utf8(&mut [0; 4])),
        }
    }

    fn name(&mut self, sign: char, json: &mut String) {
        match sign {
            '=' => {
                json.push_str(if self.has_any { ", \"" } else { "{\"" });
                push_escaped(json, &std::mem::take(&mut self.word));
                json.push_str("\": ");
                self.has_any = true;
                self.state = State::Value;
            }
            ',' => {}
            _ if sign.is_whitespace() => {}
            _ => self.word.push(sign),
        }
    }

    fn value(&mut self, sign: char, json: &mut String) {
        if sign.is_alphanumeric() || "._+-".contains(sign) {
            self.word.push(sign);
            return;
        }
        self.end_word(json);
        match sign {
            '\'' | '"' => {
                json.push('"');
                self.state = State::Text(sign);
            }
            ',' if self.depth == 0 => self.state = State::Name,
            ',' => json.push_str(", "),
            ':' => json.push_str(": "),
            '[' | '{' => {
                self.depth += 1;
                json.push(sign);
            }
            ']' | '}' => {
                self.depth = self.depth.saturating_sub(1);
                json.push(sign);
            }
            _ => {}
        }
    }

    fn end_word(&mut self, json: &mut String) {
        let word = std::mem::take(&mut self.word);
        json.push_str(match word.as_str() {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            other => other,
        });
    }
}

/// Appends the character of an escape sequence.
fn push_escape(sign: char, json: &mut String) {
    match sign {
        '\'' => json.push('\''),
        // JSON has these, too.
        '\\' | '"' | 'n' | 'r' | 't' | 'b' | 'f' | 'u' | '/' => json.extend(['\\', sign]),
        _ => {
            json.push_str("\\\\");
            push_escaped(json, sign.encode_utf8(&mut [0; 4]));
        }
    }
}
