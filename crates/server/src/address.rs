//! Where a server listens, and what it asks of clients there.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The port to listen on where none is chosen.
pub const DEFAULT_PORT: u16 = 8642;

/// The host that only this computer reaches.
pub const LOOPBACK: &str = "127.0.0.1";

/// Where to listen, and what clients must know.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// An IP address of this computer, or a name for one; [`LOOPBACK`] unless others shall reach it.
    pub host: String,
    /// 0 for any that is free.
    pub port: u16,
    /// What clients send as `Authorization: Bearer KEY`; empty for none, which loopback alone can do without.
    pub key: String,
}

/// Keeps the key out of logs.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Why a server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "Other computers can reach {0}, so the server needs a key there. Set one, or listen on {LOOPBACK}."
    )]
    NeedsKey(String),

    #[error("The server's key can have letters, digits and punctuation, and no spaces. Choose another key.")]
    BadKey,

    #[error("Port {port} of {host} is in use. Choose another port, or close the program that listens there.")]
    InUse { host: String, port: u16 },

    #[error(
        "Listening on port {port} needs rights that this program does not have. Choose a port above 1023."
    )]
    Forbidden { port: u16 },

    #[error("'{0}' is no address of this computer. Listen on {LOOPBACK}, or on 0.0.0.0 for every address.")]
    NotHere(String),

    #[error("The server cannot be started: {0}.")]
    Io(#[from] io::Error),
}

impl Address {
    /// Opens the port.
    ///
    /// # Errors
    /// See [`StartError`].
    pub(crate) fn listen(&self) -> Result<TcpListener, StartError> {
        if !self.key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(StartError::BadKey);
        }
        let not_here = |_| StartError::NotHere(self.host.clone());
        // Windows takes no name for its own, which nobody asked for.
        if self.host.is_empty() {
            return Err(StartError::NotHere(self.host.clone()));
        }
        let found = (self.host.as_str(), self.port).to_socket_addrs().map_err(not_here)?;
        let found: Vec<SocketAddr> = found.collect();
        if self.key.is_empty() && !found.iter().all(|address| address.ip().is_loopback()) {
            return Err(StartError::NeedsKey(self.host.clone()));
        }
        let listener = TcpListener::bind(&found[..]).map_err(|error| self.explained(error))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    fn explained(&self, error: io::Error) -> StartError {
        let (host, port) = (self.host.clone(), self.port);
        match error.kind() {
            io::ErrorKind::AddrInUse => StartError::InUse { host, port },
            io::ErrorKind::PermissionDenied => StartError::Forbidden { port },
            io::ErrorKind::AddrNotAvailable => StartError::NotHere(host),
            _ => StartError::Io(error),
        }
    }
}

/// A key as its digest: two are compared in a time that tells nothing of either, not even its length.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// `None` for an empty one: none is asked for.
    pub fn of(key: &str) -> Option<Self> {
        (!key.is_empty()).then(|| Self(Sha256::digest(key).into()))
    }

    pub fn is(&self, other: &str) -> bool {
        let other: [u8; 32] = Sha256::digest(other).into();
        self.0.ct_eq(&other).into()
    }
}

/// Whether a name of a host, with or without a port, is one that no name server has a say in: `localhost`, or an
/// address.
pub(crate) fn is_literal(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &str, key: &str) -> Address {
        Address { host: host.to_owned(), port: 0, key: key.to_owned() }
    }

    #[test]
    fn what_other_computers_reach_needs_a_key() {
        assert!(address("127.0.0.1", "").listen().is_ok());
        assert!(address("localhost", "").listen().is_ok());
        assert!(matches!(address("0.0.0.0", "").listen(), Err(StartError::NeedsKey(_))));
        assert!(matches!(address("::", "").listen(), Err(StartError::NeedsKey(_))));
        assert!(address("0.0.0.0", "secret").listen().is_ok());
    }

    #[test]
    fn an_address_that_cannot_be_had_is_refused_with_its_reason() {
        let taken = address("127.0.0.1", "").listen().unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = Address { port, ..address("127.0.0.1", "") }.listen().unwrap_err();
        assert!(error.to_string().starts_with(&format!("Port {port} of 127.0.0.1 is in use.")), "{error}");
        for host in ["", "no such host", "192.0.2.1"] {
            let error = address(host, "secret").listen().unwrap_err();
            assert!(matches!(&error, StartError::NotHere(found) if found == host), "{error}");
        }
        for key in ["a key", "schlüssel", "a\nkey"] {
            assert!(matches!(address("127.0.0.1", key).listen(), Err(StartError::BadKey)), "{key:?}");
        }
    }

    #[test]
    fn a_key_is_the_same_to_the_last_letter_or_another() {
        let key = Key::of("secret").unwrap();
        assert!(key.is("secret"));
        for other in ["", "secre", "secrets", "Secret"] {
            assert!(!key.is(other), "{other}");
        }
        assert!(Key::of("").is_none());
        assert_eq!(format!("{:?}", address("a", "secret")), "a:0");
    }

    #[test]
    fn only_names_that_need_no_name_server_are_literal() {
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8642", "[::1]", "[::1]:80", "10.0.0.7"]
        {
            assert!(is_literal(host), "{host}");
        }
        for host in
            ["", ":80", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "localhost:x"]
        {
            assert!(!is_literal(host), "{host}");
        }
    }
}
