//! A piece of a reply as servers write it, read leniently: what is missing or of another type is not there.

use foretoken_engine::trace::Finish;
use serde_json::Value;

use crate::error::{Error, Result, Said};
use crate::refusal;

/// What one event says.
#[derive(Debug, Default, PartialEq)]
pub struct Piece {
    pub thinking: String,
    pub text: String,
    pub finish: Option<Finish>,
    /// As they were sent.
    pub usage: Value,
    pub timings: Value,
    pub metrics: Value,
}

impl Piece {
    /// # Errors
    /// `Error::Garbled` for what is no JSON object, `Error::FailedInReply` and `Error::Filtered` for what the server
    /// says of itself, `Error::Cut` where it gave up.
    pub fn read(data: &str) -> Result<Self> {
        let mut json: Value =
            serde_json::from_str(data).map_err(|_| Error::Garbled("a piece of the reply is no JSON"))?;
        if !json.is_object() {
            return Err(Error::Garbled("a piece of the reply is no JSON object"));
        }
        // Errors of newer servers have a field of their own; older ones are an object called so.
        if !json["error"].is_null() || json["object"] == "error" {
            return Err(Error::FailedInReply(Said::of(refusal::message(&json).as_deref())));
        }
        let [usage, timings, metrics] = ["usage", "timings", "metrics"].map(|name| json[name].take());
        let Some(choice) = json["choices"].as_array().and_then(|choices| choices.first()) else {
            return Ok(Self { usage, timings, metrics, ..Self::default() });
        };
        let delta = &choice["delta"];
        let word = |name: &str| delta[name].as_str().unwrap_or_default();
        // Two names are in use for the same; who sends both repeats itself.
        let thinking =
            Some(word("reasoning_content")).filter(|text| !text.is_empty()).unwrap_or(word("reasoning"));
        Ok(Self {
            thinking: thinking.to_owned(),
            text: word("content").to_owned(),
            finish: choice["finish_reason"].as_str().map(finish).transpose()?,
            usage,
            timings,
            metrics,
        })
    }
}

/// What ends a reply, by the names that servers have for it.
fn finish(reason: &str) -> Result<Finish> {
    match reason {
        "length" | "max_tokens" => Ok(Finish::Length),
        "content_filter" => Err(Error::Filtered),
        "abort" | "error" => Err(Error::Cut),
        _ => Ok(Finish::Stop),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: &Value) -> Result<Piece> {
        Piece::read(&json.to_string())
    }

    #[test]
    fn text_thinking_and_endings_are_read_under_every_name_they_have() {
        let delta =
            |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
        let said = |json: &Value| read(json).map(|piece| (piece.thinking, piece.text)).unwrap();
        let pair = |thinking: &str, text: &str| (thinking.to_owned(), text.to_owned());
        assert_eq!(said(&delta(json!({ "role": "assistant", "content": "Hi" }))), pair("", "Hi"));
        assert_eq!(said(&delta(json!({ "content": null, "reasoning_content": "Hm" }))), pair("Hm", ""));
        assert_eq!(said(&delta(json!({ "reasoning": "Hm" }))), pair("Hm", ""));
        assert_eq!(said(&delta(json!({ "reasoning": "Hm", "reasoning_content": "Hm" }))), pair("Hm", ""));
        assert_eq!(said(&delta(json!({ "content": 7 }))), pair("", ""));
        assert_eq!(said(&json!({ "choices": [] })), pair("", ""));
        assert_eq!(said(&json!({})), pair("", ""));
        let ended = |reason: Value| {
            read(&json!({ "choices": [{ "delta": {}, "finish_reason": reason }] })).map(|piece| piece.finish)
        };
        assert_eq!(ended(json!(null)), Ok(None));
        assert_eq!(ended(json!("stop")), Ok(Some(Finish::Stop)));
        assert_eq!(ended(json!("tool_calls")), Ok(Some(Finish::Stop)));
        assert_eq!(ended(json!("length")), Ok(Some(Finish::Length)));
        assert_eq!(ended(json!("content_filter")), Err(Error::Filtered));
        assert_eq!(ended(json!("abort")), Err(Error::Cut));
    }

    #[test]
    fn errors_in_the_middle_are_told_in_the_servers_words() {
        let told = |json: Value| read(&json).unwrap_err().to_string();
        let expected = "The server failed in the middle of the reply. It says: out of memory";
        assert_eq!(told(json!({ "error": { "message": "out of memory", "code": 500 } })), expected);
        assert_eq!(told(json!({ "object": "error", "message": "out of memory" })), expected);
        assert_eq!(told(json!({ "error": "out of memory" })), expected);
        assert_eq!(told(json!({ "error": " out\u{7}of\n\u{1b} memory" })), expected);
        assert!(matches!(Piece::read("<html>"), Err(Error::Garbled(_))));
        assert!(matches!(Piece::read("[]"), Err(Error::Garbled(_))));
    }
}
