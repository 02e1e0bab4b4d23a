//! A reply taken apart: its text, and the calls that can be run.

use serde_json::Map;

use super::{Piece, ToolCall};

/// A reply so far, from its [`Piece`]s.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Text outside of calls.
    pub text: String,
    /// Complete calls whose arguments are an object, without ids.
    pub calls: Vec<ToolCall>,
    /// Name and arguments of a call that has not ended.
    pub open: Option<(String, String)>,
}

impl Written {
    /// Adds a part.
    pub fn push(&mut self, piece: Piece) {
        match piece {
            Piece::Text(text) => self.text.push_str(&text),
            Piece::Call(name) => self.open = Some((name, String::new())),
            Piece::Arguments(json) => {
                if let Some((_, arguments)) = &mut self.open {
                    arguments.push_str(&json);
                }
            }
            Piece::End => {
                let Some((name, json)) = self.open.take() else { return };
                let arguments: serde_json::Result<Map<_, _>> = serde_json::from_str(&json);
                if let Ok(arguments) = arguments {
                    self.calls.push(ToolCall { id: String::new(), name, arguments });
                }
            }
        }
    }
}

/// Id of call `number` of a conversation: nine letters and digits, as some templates require.
pub fn call_id(number: usize) -> String {
    format!("call{number:05}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{CallForm, CallParser};

    #[test]
    fn only_complete_calls_with_an_object_as_arguments_can_be_run() {
        let written = |text: &str| {
            let mut parser = CallParser::new(CallForm::HERMES, None, false);
            let mut written = Written::default();
            parser.push(text).into_iter().chain(parser.finish()).for_each(|piece| written.push(piece));
            written
        };
        let call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";
        let found = written(&format!("Look:\n{call}\n{call}"));
        assert_eq!((found.text.as_str(), found.calls.len(), &found.open), ("Look:", 2, &None));
        assert_eq!((found.calls[0].name.as_str(), &found.calls[0].arguments["a"]), ("f", &1.into()));
        let cut = written(&call[..call.len() - 20]);
        assert!(cut.calls.is_empty() && cut.open.is_some_and(|(name, _)| name == "f"));
        let broken = written(&call.replace("{\"a\": 1}", "{\"a\" 1}"));
        assert_eq!((broken.calls, broken.open), (Vec::new(), None));
        assert_eq!((call_id(7).len(), call_id(7)), (9, "call00007".to_owned()));
    }
}
