//! Texts around the parts of a call.

use super::ToolCall;
use super::arguments::ArgumentForm;
use super::mark::{HEADER, MARKS};
use crate::template::python_json;

/// Texts around the parts of a reply's calls: `begin`, then for each call `open`, `before_name`,
/// its name, `before_arguments`, its arguments and `close`, then `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallForm<T = &'static str> {
    /// Text before the first call; empty where the calls are no list.
    pub begin: T,
    /// Text that begins a call.
    pub open: T,
    /// Text between `open` and the tool's name.
    pub before_name: T,
    /// Text between the name and the arguments.
    pub before_arguments: T,
    pub arguments: ArgumentForm<T>,
    /// Text after the arguments, which ends the call.
    pub close: T,
    /// Text between two calls; `None` where a reply has one call at most.
    pub between: Option<T>,
    /// Text after the last call of a list.
    pub end: T,
    /// Position of a call within a reply.
    pub place: Place,
}

/// Position of a call within a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// After any text.
    Anywhere,
    /// At the beginning of the reply alone.
    First,
    /// In gpt-oss's channels, where the texts are those of [`crate::channels`].
    Channel,
}

/// One letter or digit of a call's id in the texts of a form.
pub const ID_PART: char = '#';

/// Letters and digits of a call's id.
pub const ID_LENGTH: usize = 9;

impl<T> CallForm<T> {
    /// Returns the form with other texts.
    pub fn map<U>(self, change: impl Fn(T) -> U) -> CallForm<U> {
        CallForm {
            begin: change(self.begin),
            open: change(self.open),
            before_name: change(self.before_name),
            before_arguments: change(self.before_arguments),
            arguments: self.arguments.map(&change),
            close: change(self.close),
            between: self.between.map(&change),
            end: change(self.end),
            place: self.place,
        }
    }
}

impl CallForm {
    /// Text that begins the calls of a reply.
    pub fn trigger(&self) -> String {
        [self.begin, self.open].concat()
    }

    /// Returns whether calls begin with a marker that may be a token.
    pub fn has_mark(&self) -> bool {
        MARKS.iter().any(|mark| *mark != HEADER && self.trigger().starts_with(mark))
    }

    /// Returns a call as a model writes it.
    pub fn written(&self, call: &ToolCall) -> String {
        let arguments = self.arguments.written(&call.arguments);
        let parts = [self.open, self.before_name, &call.name, self.before_arguments, &arguments, self.close];
        parts.concat().replace(&ID_PART.to_string().repeat(ID_LENGTH), &call.id)
    }

    /// Returns calls as a model writes them one after the other.
    pub fn all_written(&self, calls: &[ToolCall]) -> String {
        let written: Vec<String> = calls.iter().map(|call| self.written(call)).collect();
        [self.begin, &written.join(self.between.unwrap_or_default()), self.end].concat()
    }

    /// Returns a call as a template writes it, where this is the model's form.
    pub(crate) fn in_template(&self, call: &ToolCall) -> String {
        if self.place == Place::Channel {
            let arguments = python_json(&call.arguments);
            return format!(" to=functions.{}<|channel|>commentary json<|message|>{arguments}", call.name);
        }
        self.all_written(std::slice::from_ref(call))
    }
}
