//! Server addresses as people write them: with or without `http://`, `/v1`, a trailing slash, or
//! the path of a request.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use crate::error::{Error, Result};

/// Base of every request's address, without a trailing slash: "http://192.168.1.5:8000/v1".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(Url);

/// Request paths that may follow the base.
const REQUESTS: [&str; 3] = ["/chat/completions", "/completions", "/models"];

impl Address {
    /// Parses an address. Without a scheme it uses https, but http on this computer and in its
    /// network.
    ///
    /// # Errors
    /// Returns `Error::Address` if `text` is not the address of a server.
    pub fn read(text: &str) -> Result<Self> {
        let text = text.trim();
        let wrong = |reason: &'static str| Error::Address { found: text.to_owned(), reason };
        let schemed = match text.split_once("://") {
            Some((scheme, _)) if is_http(scheme) => text.to_owned(),
            Some(_) => return Err(wrong("only http:// and https:// are supported")),
            None => format!("http://{text}"),
        };
        let mut url = Url::parse(&schemed).map_err(|_| wrong("it is not a web address"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("it must not contain a name or password; the key has a field of its own"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it must not contain a query or fragment"));
        }
        let path = url.path().trim_end_matches('/');
        let base = REQUESTS.iter().find_map(|request| path.strip_suffix(request)).unwrap_or(path);
        let base = if base.split('/').any(is_version) { base.to_owned() } else { format!("{base}/v1") };
        url.set_path(&base);
        let address = Self(url);
        if schemed.len() == text.len() || address.is_local() {
            return Ok(address);
        }
        // A port says nothing about the scheme, so it stays.
        let mut url = Url::parse(&format!("https://{text}")).map_err(|_| wrong("it is not a web address"))?;
        url.set_path(&base);
        Ok(Self(url))
    }

    /// Returns the address of a request, for example of "models".
    pub(crate) fn request(&self, path: &str) -> String {
        format!("{self}/{path}")
    }

    /// Returns the host, with the port if there is one: "192.168.1.5:8000".
    pub fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns whether the server is on this computer or its network: requests bypass proxies, and
    /// few such servers have certificates.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        match host.trim_matches(['[', ']']).parse() {
            Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
            Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
            Err(_) => {
                !host.contains('.')
                    || [".local", ".lan", ".home.arpa", ".localhost"].iter().any(|end| host.ends_with(end))
            }
        }
    }
}

/// Returns whether a scheme is http or https, ignoring case.
fn is_http(scheme: &str) -> bool {
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Returns whether a path segment is a version: "v1", "v1beta".
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        Address::read(text).map_or_else(|error| error.to_string(), |address| address.to_string())
    }

    #[test]
    fn all_spellings_of_an_address_have_the_same_base() {
        let base = "http://192.168.1.5:8000/v1";
        for text in [
            base,
            "192.168.1.5:8000",
            "  http://192.168.1.5:8000 ",
            "Http://192.168.1.5:8000",
            "http://192.168.1.5:8000/",
            "192.168.1.5:8000/v1/",
            "192.168.1.5:8000/v1/chat/completions",
            "192.168.1.5:8000/v1/models/",
            "192.168.1.5:8000/completions",
        ] {
            assert_eq!(read(text), base, "{text}");
        }
        assert_eq!(read("gpu:8000"), "http://gpu:8000/v1");
        assert_eq!(read("[::1]:80"), "http://[::1]/v1");
        assert_eq!(read("https://example.org/vllm"), "https://example.org/vllm/v1");
        assert_eq!(read("https://example.org/v1beta/openai"), "https://example.org/v1beta/openai");
    }

    #[test]
    fn without_a_scheme_public_hosts_use_tls_and_local_ones_do_not() {
        assert_eq!(read("api.example.org"), "https://api.example.org/v1");
        assert_eq!(read("gpu.example.org:8000/v1"), "https://gpu.example.org:8000/v1");
        assert_eq!(read("8.8.8.8:8000"), "https://8.8.8.8:8000/v1");
        for near in ["localhost:1", "127.0.0.1:1", "10.1.2.3:1", "gpu.local:1", "[fd00::1]:1"] {
            assert_eq!(read(near), format!("http://{near}/v1"));
        }
    }

    #[test]
    fn invalid_addresses_are_refused_with_a_reason() {
        let wrong = [
            ("", "it is not a web address"),
            ("http://", "it is not a web address"),
            ("ftp://example.org", "only http"),
            ("http://a b", "it is not a web address"),
            ("host:99999", "it is not a web address"),
            ("http://me:secret@host", "the key has a field of its own"),
            ("http://host/v1?key=1", "query or fragment"),
            ("http://host/#x", "query or fragment"),
        ];
        for (text, reason) in wrong {
            assert!(read(text).contains(reason), "{text}: {}", read(text));
        }
        assert!(!read("http://me:secret@host").contains("secret"), "{}", read("http://me:secret@host"));
    }
}
