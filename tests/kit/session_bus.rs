//! A session bus for one test, which ends with it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use zbus::blocking::Connection;
use zbus::blocking::connection::Builder;

/// A bus that no other program knows.
pub struct SessionBus {
    daemon: Child,
    /// Its address, for the variable `DBUS_SESSION_BUS_ADDRESS`.
    pub address: String,
}

impl SessionBus {
    pub fn start() -> Self {
        let mut daemon = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon is missing: `make setup-tests` installs what the window test needs");
        let mut address = String::new();
        BufReader::new(daemon.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        Self { daemon, address: address.trim().to_owned() }
    }

    pub fn connect(&self) -> Connection {
        Builder::address(self.address.as_str()).unwrap().build().unwrap()
    }
}

impl Drop for SessionBus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
