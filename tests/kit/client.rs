//! An HTTP client without a library's restrictions: sends any bytes and can stop midway. Asserts
//! only that the response is HTTP.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::Value;

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// In lower case.
    head: String,
    pub body: String,
}

/// A connection on which `request` was sent. With HTTP/1.0 the response ends with the connection
/// and has no chunks.
pub fn send(to: impl ToSocketAddrs, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // A server that rejects a long request closes the connection before it received everything.
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

/// Head of a request with a body of `length` bytes.
pub fn head(method: &str, path: &str, headers: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}Content-Length: \
         {length}\r\n\r\n"
    )
}

pub fn get(to: impl ToSocketAddrs, path: &str) -> Answer {
    answer(send(to, &head("GET", path, "", 0)))
}

/// Sends a request and returns without waiting for the response.
pub fn asked(to: impl ToSocketAddrs, path: &str, body: &str) -> TcpStream {
    send(to, &(head("POST", path, "", body.len()) + body))
}

pub fn post(to: impl ToSocketAddrs, path: &str, body: &str) -> Answer {
    answer(asked(to, path, body))
}

/// Closes the connection without notice, as a killed program does.
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

    /// The response's error message.
    pub fn message(&self) -> String {
        self.json()["error"]["message"]
            .as_str()
            .unwrap_or_else(|| panic!("no error: {}", self.body))
            .to_owned()
    }

    /// Data of a stream's events; the last may not be JSON.
    pub fn events(&self) -> Vec<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
    }
}
