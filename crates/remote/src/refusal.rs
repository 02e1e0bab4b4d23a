//! Maps an error response to an error, by status, headers and body.

use std::error::Error as _;
use std::io;

use foretoken_json::repaired;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::Value;

use crate::address::Address;
use crate::body::Body;
use crate::error::{Error, ServerMessage};

/// A response that is not a reply.
pub struct Refusal<'a> {
    pub address: &'a Address,
    pub status: u16,
    pub headers: &'a HeaderMap,
    /// Beginning of the body.
    pub body: &'a [u8],
    /// `true` if the request contained a key.
    pub keyed: bool,
    /// Requested model, if there was one.
    pub model: Option<&'a str>,
}

impl Refusal<'_> {
    pub fn error(&self) -> Error {
        let detail = self.detail();
        // Some servers, like FastAPI, name the field outside the message.
        let extra = || Body::extra_in(&String::from_utf8_lossy(self.body));
        match self.status {
            300..=399 => self.redirect(),
            401 | 403 => Error::Key { sent: self.keyed, detail },
            404 | 405 | 501 => self.unknown(detail),
            429 => Error::Busy {
                after: self.header(RETRY_AFTER).and_then(|seconds| seconds.trim().parse().ok()),
                detail,
            },
            503 => Error::NotReady { detail },
            500.. => Error::Failed { status: self.status, detail },
            400..=499 if is_about_length(self.body) => Error::PromptTooLong { detail },
            status @ (400 | 422) => match extra() {
                Some(name) => Error::Extra { name, detail },
                None => Error::Refused { status, detail },
            },
            status => Error::Refused { status, detail },
        }
    }

    /// Returns the server's message, unless the body is a web page.
    pub fn detail(&self) -> ServerMessage {
        let json = serde_json::from_str::<Value>(&repaired(self.body)).ok();
        let plain = || {
            let text = std::str::from_utf8(self.body).ok().filter(|_| !self.is_web_page())?;
            Some(text.to_owned())
        };
        ServerMessage::of(json.map_or_else(plain, |json| message(&json)).as_deref())
    }

    pub fn is_web_page(&self) -> bool {
        let html = self.header(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/html"));
        html || self.body.trim_ascii_start().starts_with(b"<")
    }

    /// Returns the error for an unknown path or model. Servers with the protocol name a missing
    /// model in JSON.
    fn unknown(&self, detail: ServerMessage) -> Error {
        match self.model {
            Some(model) if detail.text().contains(model) => {
                Error::NoModel { model: model.to_owned(), detail }
            }
            _ if self.is_web_page() => Error::WebPage { host: self.address.host() },
            _ => Error::OtherProtocol { address: self.address.to_string(), detail },
        }
    }

    fn redirect(&self) -> Error {
        let to = self.header(LOCATION).unwrap_or("an unknown address");
        Error::Redirect { host: self.address.host(), to: ServerMessage::of(Some(to)).text().to_owned() }
    }

    fn header(&self, name: reqwest::header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Returns the message in an error response: in the format of OpenAI or FastAPI, or plain.
pub fn message(json: &Value) -> Option<String> {
    let places = ["/error/message", "/error", "/message", "/detail/0/msg", "/detail"];
    places.iter().find_map(|place| json.pointer(place)?.as_str().map(str::to_owned))
}

/// Returns whether an error is about a prompt that is too long. OpenAI has a code for it,
/// llama-server a type, the others a text.
fn is_about_length(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_lowercase();
    let signs = [
        "context_length_exceeded",
        "exceed_context_size",
        "maximum context length",
        "context length",
        "context size",
        "context window",
        "maximum allowed length",
    ];
    signs.iter().any(|sign| text.contains(sign))
}

/// Returns the error for a failed connection.
pub fn connection_error(address: &Address, error: &reqwest::Error) -> Error {
    let host = address.host();
    let causes = || {
        std::iter::successors(error.source(), |cause: &&(dyn std::error::Error + 'static)| (*cause).source())
    };
    let last = causes().last().map_or_else(|| error.to_string(), ToString::to_string);
    let io = causes().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let mentions = |words: &[&str]| {
        causes().any(|cause| {
            let text = cause.to_string().to_lowercase();
            words.iter().any(|word| text.contains(word))
        })
    };
    if error.is_timeout() {
        Error::Unreachable { host, reason: "the connection timed out".to_owned() }
    } else if mentions(&["certificate", "corrupt message", "handshake", "tls"]) {
        Error::Tls { host, reason: last }
    } else if mentions(&["dns error", "failed to lookup"]) {
        Error::NoHost { host }
    } else if io == Some(io::ErrorKind::ConnectionRefused) {
        Error::NothingListens { host }
    } else if mentions(&["invalid http", "parse error"]) {
        Error::OtherProtocol { address: address.to_string(), detail: ServerMessage::default() }
    } else {
        Error::Unreachable { host, reason: last }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn refused(status: u16, headers: &[(HeaderName, &str)], body: &str) -> Error {
        let address = Address::read("http://gpu:8000").unwrap();
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect();
        let body = body.as_bytes();
        Refusal { address: &address, status, headers: &headers, body, keyed: true, model: Some("fox-7b") }
            .error()
    }

    #[test]
    fn a_too_long_prompt_is_recognised_from_every_server() {
        // OpenAI, vLLM, llama-server, SGLang.
        for body in [
            r#"{"error":{"message":"Too long.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.","type":"BadRequestError","param":null,"code":400}}"#,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
            r#"{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","type":"BadRequestError","param":null,"code":400}"#,
        ] {
            let error = refused(400, &[], body);
            assert!(matches!(&error, Error::PromptTooLong { .. }), "{error}");
        }
        assert!(matches!(refused(400, &[], r#"{"error":{"message":"temperature"}}"#), Error::Refused { .. }));
    }

    #[test]
    fn each_status_has_its_own_message() {
        let cases = [
            (401, "", "", "The server rejected this key. Check it in Settings > Remote."),
            (403, "", r#"{"error":"Invalid"}"#, "Check it in Settings > Remote. Server message: Invalid"),
            (404, "", r#"{"detail":"Not Found"}"#, "http://gpu:8000/v1 doesn't seem to be a server"),
            (
                404,
                "",
                r#"{"error":{"message":"The model `fox-7b` does not exist."}}"#,
                "no longer has the model 'fox-7b'",
            ),
            (404, "", "<!doctype html>", "responded with a web page"),
            (429, "7", "", "Try again in 7 seconds."),
            (429, "", "", "Try again in a moment."),
            (503, "", r#"{"error":{"message":"Loading model"}}"#, "ready yet"),
            (502, "", "<html>", "failed with status 502"),
            (500, "", r#"{"detail":[{"msg":"boom"}]}"#, "Server message: boom"),
            (
                418,
                "",
                "I am a teapot.",
                "refused the request with status 418. Server message: I am a teapot.",
            ),
            (302, "", "", "redirects to an unknown address"),
        ];
        for (status, retry, body, expected) in cases {
            let headers: &[_] = if retry.is_empty() { &[] } else { &[(RETRY_AFTER, retry)] };
            let error = refused(status, headers, body).to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = refused(307, &[(LOCATION, "http://evil.example/v1")], "").to_string();
        assert!(error.contains("redirects to http://evil.example/v1. Redirects aren't followed"), "{error}");
    }

    #[test]
    fn a_server_message_is_shortened_to_one_line() {
        let error =
            refused(500, &[], &format!("{{\"error\":\"one\\n\\ntwo {}\"}}", "ü".repeat(1000))).to_string();
        assert!(error.contains("Server message: one two ü") && error.ends_with("ü…"), "{error}");
        assert!(error.chars().count() < 400, "{error}");
    }
}
