//! An HTTP client that can do what no library lets one do: send anything, and stop in the middle. Asserts nothing but that
//! what comes is HTTP.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::Value;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// In small letters.
    head: String,
    pub body: String,
}

/// A connection on which `request` was sent. In HTTP/1.0 the answer ends with the connection and has no chunks.
pub fn send(to: impl ToSocketAddrs, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // A server that refuses a long request closes before it has all of it.
    let _ = stream.write_all(request.as_bytes());
    stream
}

pub fn answer(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// The head of a request of which `length` bytes follow.
pub fn head(method: &str, path: &str, headers: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}Content-Length: \
         {length}\r\n\r\n"
    )
}

pub fn get(to: impl ToSocketAddrs, path: &str) -> Answer {
    answer(send(to, &head("GET", path, "", 0)))
}

/// Begins to ask.
pub fn asked(to: impl ToSocketAddrs, path: &str, body: &str) -> TcpStream {
    send(to, &(head("POST", path, "", body.len()) + body))
}

pub fn post(to: impl ToSocketAddrs, path: &str, body: &str) -> Answer {
    answer(asked(to, path, body))
}

/// Leaves without a word, as a program does that is ended.
pub fn leave(stream: TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// What an error says.
    pub fn message(&self) -> String {
        self.json()["error"]["message"]
            .as_str()
            .unwrap_or_else(|| panic!("no error: {}", self.body))
            .to_owned()
    }

    /// The data of a stream's events; the last may be no JSON.
    pub fn events(&self) -> Vec<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
    }
}
