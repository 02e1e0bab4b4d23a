//! Markers of calls that are tokens of their own in some vocabularies. There the token alone is a
//! marker: the same letters in other tokens are text.

use std::borrow::Cow;

/// Character before the text of a marker that came as a token. It is a noncharacter of Unicode, for
/// use within programs.
pub const MARK: char = '\u{FDD0}';

/// Markers of calls, their parts and gpt-oss's headers.
pub const MARKS: [&str; 22] = [
    "<tool_call>",
    "</tool_call>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "<|tool_call>",
    "<tool_call|>",
    "<|\"|>",
    "[TOOL_CALLS]",
    "[CALL_ID]",
    "[ARGS]",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "<|tool_call|>",
    "<|/tool_call|>",
    HEADER,
];

/// Begins a header in gpt-oss's messages.
pub const HEADER: &str = "<|channel|>";

/// Returns `text` with a [`MARK`] before each marker that `is_token`.
pub fn marked(text: &str, is_token: impl Fn(&str) -> bool) -> String {
    let mut all = text.to_owned();
    for mark in MARKS.into_iter().filter(|mark| text.contains(mark) && is_token(mark)) {
        all = all.replace(mark, &format!("{MARK}{mark}"));
    }
    all
}

/// Returns the text of a special token with a [`MARK`] before the marker in it, if there is one.
/// What was held back before it may precede it.
pub fn marked_last(text: &str) -> Cow<'_, str> {
    let Some(at) = MARKS.iter().filter_map(|mark| text.rfind(mark)).min() else { return text.into() };
    let (before, mark) = text.split_at(at);
    format!("{}{MARK}{mark}", unmarked(before)).into()
}

/// Returns `text` without [`MARK`]s.
pub fn unmarked(text: &str) -> Cow<'_, str> {
    if text.contains(MARK) { text.replace(MARK, "").into() } else { text.into() }
}
