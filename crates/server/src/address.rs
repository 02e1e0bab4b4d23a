//! Address and key of the server.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Default port.
pub const DEFAULT_PORT: u16 = 8642;

/// Host that only this computer can reach.
pub const LOOPBACK: &str = "127.0.0.1";

/// Address to listen on, and the key that clients need.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// An IP address of this computer or a name for one; [`LOOPBACK`] unless other computers should
    /// reach it.
    pub host: String,
    /// Port; 0 for any free one.
    pub port: u16,
    /// Key that clients send as `Authorization: Bearer KEY`; empty for none, which only loopback
    /// allows.
    pub key: String,
}

/// Keeps the key out of logs.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Reasons why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("Other computers can reach {0}, so the server needs a key. Set one, or listen on {LOOPBACK}.")]
    NeedsKey(String),

    #[error(
        "The server's key can contain letters, digits and punctuation, but no spaces. Choose another key."
    )]
    BadKey,

    #[error("Port {port} of {host} is in use. Choose another port, or close the program that listens there.")]
    InUse { host: String, port: u16 },

    #[error("Foretoken doesn't have permission to listen on port {port}. Choose a port above 1023.")]
    Forbidden { port: u16 },

    #[error(
        "'{0}' is not an address of this computer. Listen on {LOOPBACK}, or on 0.0.0.0 for every address."
    )]
    NotHere(String),

    #[error("The server could not be started: {0}.")]
    Io(#[from] io::Error),
}

impl Address {
    /// Binds the port.
    ///
    /// # Errors
    /// Returns the reasons of [`StartError`].
    pub(crate) fn listen(&self) -> Result<TcpListener, StartError> {
        if !self.key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(StartError::BadKey);
        }
        let not_here = |_| StartError::NotHere(self.host.clone());
        // Windows could not resolve the empty name to its own addresses.
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

/// A key as its digest: comparing two takes the same time whatever their content and length.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// Creates a key; `None` if it is empty and therefore not required.
    pub fn of(key: &str) -> Option<Self> {
        (!key.is_empty()).then(|| Self(Sha256::digest(key).into()))
    }

    pub fn is(&self, other: &str) -> bool {
        let other: [u8; 32] = Sha256::digest(other).into();
        self.0.ct_eq(&other).into()
    }
}

/// Returns whether a host, with or without a port, needs no name server: `localhost` or an IP
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
    fn an_address_that_other_computers_reach_needs_a_key() {
        assert!(address("127.0.0.1", "").listen().is_ok());
        assert!(address("localhost", "").listen().is_ok());
        assert!(matches!(address("0.0.0.0", "").listen(), Err(StartError::NeedsKey(_))));
        assert!(matches!(address("::", "").listen(), Err(StartError::NeedsKey(_))));
        assert!(address("0.0.0.0", "secret").listen().is_ok());
    }

    #[test]
    fn an_unavailable_address_is_refused_with_its_reason() {
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
    fn only_the_exact_key_is_accepted() {
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
