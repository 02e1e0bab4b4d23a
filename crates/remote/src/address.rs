//! Where a server is, as people write it: with or without `http://`, `/v1`, a slash at the end, or the path of a
//! request.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use crate::error::{Error, Result};

/// The base of every request's address, without a slash at its end: "http://192.168.1.5:8000/v1".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(Url);

/// What may stand behind the base.
const REQUESTS: [&str; 3] = ["/chat/completions", "/completions", "/models"];

impl Address {
    /// Reads what a person wrote. Without a scheme it is https, except on this computer and in its network.
    ///
    /// # Errors
    /// `Error::Address` for what is no address of a server.
    pub fn read(text: &str) -> Result<Self> {
        let text = text.trim();
        let wrong = |reason: &'static str| Error::Address { found: text.to_owned(), reason };
        let schemed = match text.split_once("://") {
            Some((scheme, _)) if is_asked(scheme) => text.to_owned(),
            Some(_) => return Err(wrong("only http:// and https:// can be asked")),
            None => format!("http://{text}"),
        };
        let mut url = Url::parse(&schemed).map_err(|_| wrong("this is no address"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("a name or password does not belong in it: the key has a field of its own"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("nothing may follow its path"));
        }
        let path = url.path().trim_end_matches('/');
        let base = REQUESTS.iter().find_map(|request| path.strip_suffix(request)).unwrap_or(path);
        let base = if base.split('/').any(is_version) { base.to_owned() } else { format!("{base}/v1") };
        url.set_path(&base);
        let address = Self(url);
        if schemed.len() == text.len() || address.is_near() {
            return Ok(address);
        }
        // A port says nothing about the scheme, so it stays.
        let mut url = Url::parse(&format!("https://{text}")).map_err(|_| wrong("this is no address"))?;
        url.set_path(&base);
        Ok(Self(url))
    }

    /// The address of a request: "models".
    pub(crate) fn request(&self, path: &str) -> String {
        format!("{self}/{path}")
    }

    /// Host and port, as far as they are said: "192.168.1.5:8000".
    pub fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether it is this computer, or in its network: no proxy leads there, and few servers there have
    /// certificates.
    pub(crate) fn is_near(&self) -> bool {
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

/// Whether a scheme is one of a server's, in whatever letters.
fn is_asked(scheme: &str) -> bool {
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// "v1", "v1beta".
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
    fn however_an_address_is_written_it_is_the_same_base() {
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
    fn without_a_scheme_what_is_far_is_asked_with_tls_and_what_is_near_without() {
        assert_eq!(read("api.example.org"), "https://api.example.org/v1");
        assert_eq!(read("gpu.example.org:8000/v1"), "https://gpu.example.org:8000/v1");
        assert_eq!(read("8.8.8.8:8000"), "https://8.8.8.8:8000/v1");
        for near in ["localhost:1", "127.0.0.1:1", "10.1.2.3:1", "gpu.local:1", "[fd00::1]:1"] {
            assert_eq!(read(near), format!("http://{near}/v1"));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_in_a_sentence() {
        let wrong = [
            ("", "this is no address"),
            ("http://", "this is no address"),
            ("ftp://example.org", "only http"),
            ("http://a b", "this is no address"),
            ("host:99999", "this is no address"),
            ("http://me:secret@host", "the key has a field of its own"),
            ("http://host/v1?key=1", "nothing may follow"),
            ("http://host/#x", "nothing may follow"),
        ];
        for (text, reason) in wrong {
            assert!(read(text).contains(reason), "{text}: {}", read(text));
        }
        assert!(!read("http://me:secret@host").contains("secret"), "{}", read("http://me:secret@host"));
    }
}
