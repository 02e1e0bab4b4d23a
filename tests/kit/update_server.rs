//! A small update server on this computer: a description of the latest release and its package,
//! signed with a key of its own, with faults on demand.

use std::io::{self, BufRead, BufReader, Cursor, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minisign::KeyPair;
use serde_json::{Value, json};

/// Longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two pieces of a stalled response, which notice that the client has gone.
const STALL: Duration = Duration::from_millis(20);

/// Bytes written at a time.
const CHUNK: usize = 64 * 1024;

/// A response, and its faults.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub body: Vec<u8>,
    /// Bytes after which the connection ends.
    pub cut_after: Option<usize>,
    /// Bytes after which the rest comes a byte at a time.
    pub stall_after: Option<usize>,
    /// Repeats the body without end and without a length.
    pub endless: bool,
}

impl Default for Response {
    fn default() -> Self {
        Self { status: 200, body: Vec::new(), cut_after: None, stall_after: None, endless: false }
    }
}

impl Response {
    pub fn of(body: &[u8]) -> Self {
        Self { body: body.to_vec(), ..Self::default() }
    }
}

/// A running server. It runs until the process ends.
#[derive(Clone)]
pub struct UpdateServer {
    url: String,
    key: Arc<KeyPair>,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    description: Response,
    package: Response,
    /// Requested paths.
    requests: Vec<String>,
    /// Stalled responses.
    stalled: usize,
    /// Stalled responses whose client has gone.
    closed: usize,
}

impl UpdateServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let key = Arc::new(KeyPair::generate_unencrypted_keypair().unwrap());
        let server = Self { url, key, state: Arc::default() };
        let serving = server.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let server = serving.clone();
                // A client that disconnects is not an error.
                thread::spawn(move || drop(server.serve(connection)));
            }
        });
        server
    }

    /// Address of the description.
    pub fn endpoint(&self) -> String {
        format!("{}/latest.json", self.url)
    }

    /// Public key of the packages.
    pub fn public_key(&self) -> String {
        STANDARD.encode(self.key.pk.to_box().unwrap().to_string())
    }

    /// Releases a package that is signed for `version`.
    pub fn release(&self, version: &str, notes: &str, package: &[u8]) {
        self.announce(version, notes, &self.sign(package, version));
        self.set_package(Response::of(package));
    }

    /// Describes a release with any signature.
    pub fn announce(&self, version: &str, notes: &str, signature: &str) {
        let url = format!("{}/package", self.url);
        let description: Value =
            json!({ "version": version, "notes": notes, "url": url, "signature": signature });
        self.set_description(Response::of(description.to_string().as_bytes()));
    }

    /// Signature of a package, with its version in the trusted comment.
    pub fn sign(&self, package: &[u8], version: &str) -> String {
        let comment = format!("timestamp:1\tfile:package\tversion:{version}");
        let (public, secret) = (Some(&self.key.pk), &self.key.sk);
        let signature = minisign::sign(public, secret, Cursor::new(package), Some(&comment), None).unwrap();
        STANDARD.encode(signature.to_string())
    }

    pub fn set_description(&self, response: Response) {
        self.lock().description = response;
    }

    pub fn set_package(&self, response: Response) {
        self.lock().package = response;
    }

    /// Requested paths so far.
    pub fn requests(&self) -> Vec<String> {
        self.lock().requests.clone()
    }

    /// Waits until a response is stalled.
    pub fn wait_until_stalled(&self) {
        self.wait(|state| state.stalled > 0);
    }

    /// Waits until the client of a stalled response has gone.
    pub fn wait_until_closed(&self) {
        self.wait(|state| state.closed > 0);
    }

    fn wait(&self, is_reached: impl Fn(&State) -> bool) {
        let (_, changed) = &*self.state;
        let wait = changed.wait_timeout_while(self.lock(), PATIENCE, |state| !is_reached(state));
        assert!(!wait.unwrap().1.timed_out(), "no client came or left");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().unwrap()
    }

    fn serve(&self, connection: TcpStream) -> io::Result<()> {
        let mut lines = BufReader::new(connection.try_clone()?).lines();
        let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
        for line in lines {
            if line?.is_empty() {
                break;
            }
        }
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let is_package = path == "/package";
        let mut state = self.lock();
        state.requests.push(path);
        let response = if is_package { &state.package } else { &state.description }.clone();
        drop(state);
        self.send(connection, &response)
    }

    fn send(&self, mut to: TcpStream, response: &Response) -> io::Result<()> {
        let Response { status, body, cut_after, stall_after, endless } = response;
        let length = if *endless { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        to.write_all(format!("HTTP/1.1 {status} Status\r\n{length}Connection: close\r\n\r\n").as_bytes())?;
        if *endless {
            loop {
                to.write_all(body)?;
            }
        }
        let end = cut_after.unwrap_or(body.len());
        let stall = stall_after.unwrap_or(end);
        for piece in body[..stall].chunks(CHUNK) {
            to.write_all(piece)?;
        }
        if stall < end {
            let rest = self.stall(&mut to, &body[stall..end]);
            self.lock().closed += usize::from(rest.is_err());
            self.state.1.notify_all();
        }
        Ok(())
    }

    /// Sends a byte now and then.
    fn stall(&self, to: &mut TcpStream, rest: &[u8]) -> io::Result<()> {
        self.lock().stalled += 1;
        self.state.1.notify_all();
        for byte in rest {
            thread::sleep(STALL);
            to.write_all(&[*byte])?;
        }
        Ok(())
    }
}
