//! A `serve` process, which ends when it is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A server that runs until it is dropped.
pub struct Served {
    pub child: Child,
    /// "127.0.0.1:8642"
    pub at: String,
}

impl Served {
    /// Starts `command`, which runs `serve` on any free port.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let at = line.trim().strip_prefix("Listening on http://").and_then(|url| url.strip_suffix("/v1"));
        Self { child, at: at.unwrap_or_else(|| panic!("no address: {line:?}")).to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
