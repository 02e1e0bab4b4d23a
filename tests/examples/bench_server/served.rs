//! A server in a process of its own, which ends with it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use foretoken_tests::window::application;

pub struct Served {
    child: Child,
    /// "127.0.0.1:8642"
    pub at: String,
}

impl Served {
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(application().with_file_name("foretoken-cli"));
        command.args(["serve", "--port", "0"]).args(arguments).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
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
