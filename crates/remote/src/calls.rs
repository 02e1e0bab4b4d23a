//! Calls of tools in a reply: their parts as servers send them, joined in order.

use foretoken_model::Tool;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::reply_event::ReplyEvent;

/// Most calls of a reply.
const MAX_CALLS: usize = 128;

/// Part of a call, parsed leniently.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CallPart {
    /// Place among the calls of the reply, if the server sends it.
    index: Option<u64>,
    id: String,
    /// Name of the tool, in the first part of a call and sometimes in all.
    name: String,
    arguments: String,
}

impl CallPart {
    /// Returns the parts in a chunk's `delta`.
    pub fn all(delta: &Value) -> Vec<Self> {
        delta["tool_calls"].as_array().into_iter().flatten().map(Self::of).collect()
    }

    fn of(json: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let arguments = &json["function"]["arguments"];
        Self {
            index: json["index"].as_u64(),
            id: text(&json["id"]),
            name: text(&json["function"]["name"]),
            // Some servers send the arguments as an object.
            arguments: if arguments.is_object() { arguments.to_string() } else { text(arguments) },
        }
    }

    /// Number of bytes of name and arguments.
    pub fn bytes(&self) -> usize {
        self.name.len() + self.arguments.len()
    }

    /// Returns whether `part` begins another call.
    fn is_before(&self, part: &Self) -> bool {
        let differs = |ours: &str, theirs: &str| !theirs.is_empty() && ours != theirs;
        part.index.is_some_and(|index| self.index.is_some_and(|own| own != index))
            || differs(&self.id, &part.id)
            // Without indices and ids, only a name separates calls.
            || part.index.is_none() && part.id.is_empty() && !part.name.is_empty()
    }
}

/// Calls of a reply while it is received, in the order in which they began.
#[derive(Debug, Default)]
pub struct Calls {
    began: usize,
    /// First part of the last call with all its arguments so far; `None` once it is complete.
    open: Option<CallPart>,
}

impl Calls {
    /// Adds a part.
    ///
    /// # Errors
    /// `Error::Garbled` for a part of no call or a name that no tool can have, `Error::TooLarge`
    /// for too many calls, and those of [`Self::end`].
    pub fn take(&mut self, part: CallPart, on: &mut dyn FnMut(ReplyEvent<'_>)) -> Result<()> {
        match &mut self.open {
            Some(open) if !open.is_before(&part) => {
                open.arguments.push_str(&part.arguments);
                on(ReplyEvent::Arguments(&part.arguments));
                Ok(())
            }
            _ => self.begin(part, on),
        }
    }

    fn begin(&mut self, part: CallPart, on: &mut dyn FnMut(ReplyEvent<'_>)) -> Result<()> {
        self.end(on)?;
        if !Tool::is_name(&part.name) {
            return Err(Error::Garbled("a call has no valid name of a tool"));
        }
        if self.began == MAX_CALLS {
            return Err(Error::TooLarge("too many calls of tools"));
        }
        self.began += 1;
        on(ReplyEvent::Call(&part.name));
        if !part.arguments.is_empty() {
            on(ReplyEvent::Arguments(&part.arguments));
        }
        self.open = Some(part);
        Ok(())
    }

    /// Completes the last call.
    ///
    /// # Errors
    /// `Error::Arguments` if its arguments are not a JSON object.
    pub fn end(&mut self, on: &mut dyn FnMut(ReplyEvent<'_>)) -> Result<()> {
        let Some(CallPart { name, arguments, .. }) = self.open.take() else { return Ok(()) };
        // A call without arguments may have none at all.
        if arguments.trim().is_empty() {
            on(ReplyEvent::Arguments("{}"));
        } else if serde_json::from_str::<Map<String, Value>>(&arguments).is_err() {
            return Err(Error::Arguments { name });
        }
        on(ReplyEvent::CallEnded);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Events of a reply with these parts: `+name`, arguments, `.` for the end of a call.
    fn events(parts: &[Value]) -> Result<Vec<String>> {
        let (mut calls, mut events) = (Calls::default(), Vec::new());
        let mut on = |event: ReplyEvent<'_>| {
            events.push(match event {
                ReplyEvent::Call(name) => format!("+{name}"),
                ReplyEvent::Arguments(json) => json.to_owned(),
                ReplyEvent::CallEnded => ".".to_owned(),
                event => panic!("{event:?}"),
            });
        };
        for part in CallPart::all(&json!({ "tool_calls": parts })) {
            calls.take(part, &mut on)?;
        }
        calls.end(&mut on)?;
        Ok(events)
    }

    fn part(index: u64, id: &str, name: &str, arguments: &str) -> Value {
        json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } })
    }

    #[test]
    fn parts_of_calls_are_joined_whatever_marks_the_next_call() {
        let both = ["+add", "{\"a\":", "1}", ".", "+now", "{}", "."];
        // OpenAI, vLLM and llama-server: the id and the name are in the first part.
        let usual = [part(0, "x", "add", "{\"a\":"), part(0, "", "", "1}"), part(1, "y", "now", "{}")];
        assert_eq!(events(&usual).unwrap(), both);
        // In all parts.
        let repeated = [part(0, "x", "add", "{\"a\":"), part(0, "x", "add", "1}"), part(1, "y", "now", "{}")];
        assert_eq!(events(&repeated).unwrap(), both);
        // All calls have the index 0.
        let unnumbered = [part(0, "x", "add", "{\"a\":"), part(0, "x", "", "1}"), part(0, "y", "now", "{}")];
        assert_eq!(events(&unnumbered).unwrap(), both);
        let bare = [
            json!({ "function": { "name": "add", "arguments": { "a": 1 } } }),
            json!({ "function": { "name": "now" } }),
        ];
        assert_eq!(events(&bare).unwrap(), ["+add", "{\"a\":1}", ".", "+now", "{}", "."]);
        assert_eq!(events(&[]).unwrap(), [""; 0]);
    }

    #[test]
    fn calls_that_cannot_run_are_errors() {
        let cut = events(&[part(0, "x", "add", "{\"a\":")]).unwrap_err();
        assert_eq!(cut, Error::Arguments { name: "add".to_owned() });
        assert!(events(&[part(0, "x", "add", "[1]")]).is_err());
        for nameless in [part(0, "x", "", "{}"), part(0, "x", "rm -rf", "{}"), json!(7), json!({})] {
            assert!(matches!(events(&[nameless]), Err(Error::Garbled(_))));
        }
        let many: Vec<_> = (0..=MAX_CALLS as u64).map(|n| part(n, "", "now", "")).collect();
        assert_eq!(events(&many), Err(Error::TooLarge("too many calls of tools")));
        assert!(events(&many[..MAX_CALLS]).is_ok());
    }
}
