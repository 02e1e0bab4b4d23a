//! A chunk of a reply, parsed leniently: missing fields and fields of another type are ignored.

use foretoken_engine::trace::Finish;
use serde_json::Value;

use crate::calls::CallPart;
use crate::error::{Error, Result, ServerMessage};
use crate::refusal;

/// Content of one event.
#[derive(Debug, Default, PartialEq)]
pub struct Piece {
    pub thinking: String,
    pub text: String,
    pub calls: Vec<CallPart>,
    pub finish: Option<Finish>,
    /// Usage as the server sent it.
    pub usage: Value,
    pub timings: Value,
    pub metrics: Value,
}

impl Piece {
    /// # Errors
    /// Returns `Error::Garbled` for data that is not a JSON object, `Error::FailedInReply` and
    /// `Error::Filtered` for the server's own errors, `Error::Cut` if the server gave up.
    pub fn read(data: &str) -> Result<Self> {
        let mut json: Value =
            serde_json::from_str(data).map_err(|_| Error::Garbled("a chunk of the reply is not JSON"))?;
        if !json.is_object() {
            return Err(Error::Garbled("a chunk of the reply is not a JSON object"));
        }
        // Newer servers have an `error` field; older ones send an object with `"object": "error"`.
        if !json["error"].is_null() || json["object"] == "error" {
            return Err(Error::FailedInReply(ServerMessage::of(refusal::message(&json).as_deref())));
        }
        let [usage, timings, metrics] = ["usage", "timings", "metrics"].map(|name| json[name].take());
        let Some(choice) = json["choices"].as_array().and_then(|choices| choices.first()) else {
            return Ok(Self { usage, timings, metrics, ..Self::default() });
        };
        let delta = &choice["delta"];
        let word = |name: &str| delta[name].as_str().unwrap_or_default();
        // Servers use two names for reasoning; with both, the second repeats the first.
        let thinking =
            Some(word("reasoning_content")).filter(|text| !text.is_empty()).unwrap_or(word("reasoning"));
        Ok(Self {
            thinking: thinking.to_owned(),
            text: word("content").to_owned(),
            calls: CallPart::all(delta),
            // Some servers send an empty reason with every chunk before the last.
            finish: choice["finish_reason"]
                .as_str()
                .filter(|reason| !reason.is_empty())
                .map(finish)
                .transpose()?,
            usage,
            timings,
            metrics,
        })
    }
}

/// Maps a server's finish reason.
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
    fn text_reasoning_and_finish_reasons_are_read_under_every_name() {
        let delta =
            |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
        let detail = |json: &Value| read(json).map(|piece| (piece.thinking, piece.text)).unwrap();
        let pair = |thinking: &str, text: &str| (thinking.to_owned(), text.to_owned());
        assert_eq!(detail(&delta(json!({ "role": "assistant", "content": "Hi" }))), pair("", "Hi"));
        assert_eq!(detail(&delta(json!({ "content": null, "reasoning_content": "Hm" }))), pair("Hm", ""));
        assert_eq!(detail(&delta(json!({ "reasoning": "Hm" }))), pair("Hm", ""));
        assert_eq!(detail(&delta(json!({ "reasoning": "Hm", "reasoning_content": "Hm" }))), pair("Hm", ""));
        assert_eq!(detail(&delta(json!({ "content": 7 }))), pair("", ""));
        assert_eq!(detail(&json!({ "choices": [] })), pair("", ""));
        assert_eq!(detail(&json!({})), pair("", ""));
        let ended = |reason: Value| {
            read(&json!({ "choices": [{ "delta": {}, "finish_reason": reason }] })).map(|piece| piece.finish)
        };
        assert_eq!(ended(json!(null)), Ok(None));
        assert_eq!(ended(json!("")), Ok(None));
        assert_eq!(ended(json!("stop")), Ok(Some(Finish::Stop)));
        assert_eq!(ended(json!("tool_calls")), Ok(Some(Finish::Stop)));
        assert_eq!(ended(json!("length")), Ok(Some(Finish::Length)));
        assert_eq!(ended(json!("content_filter")), Err(Error::Filtered));
        assert_eq!(ended(json!("abort")), Err(Error::Cut));
    }

    #[test]
    fn errors_during_a_reply_quote_the_server() {
        let message = |json: Value| read(&json).unwrap_err().to_string();
        let expected = "The server failed during the reply. Server message: out of memory";
        assert_eq!(message(json!({ "error": { "message": "out of memory", "code": 500 } })), expected);
        assert_eq!(message(json!({ "object": "error", "message": "out of memory" })), expected);
        assert_eq!(message(json!({ "error": "out of memory" })), expected);
        assert_eq!(message(json!({ "error": " out\u{7}of\n\u{1b} memory" })), expected);
        assert!(matches!(Piece::read("<html>"), Err(Error::Garbled(_))));
        assert!(matches!(Piece::read("[]"), Err(Error::Garbled(_))));
    }
}
