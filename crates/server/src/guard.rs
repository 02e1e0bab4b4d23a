//! Access control. Pages in a browser are refused, whatever their origin: they would reach a server
//! meant only for this computer. A host name that a foreign name server resolves to this computer
//! (DNS rebinding) is refused too, and so is a request without the key.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use axum::middleware::Next;
use axum::response::Response;
use foretoken_engine::owner::Owner;
use sha2::{Digest, Sha256};

use crate::address::{Key, is_literal};
use crate::refusal::Refusal;

/// Path of the readiness check, which needs no key.
pub const HEALTH: &str = "/health";

/// Header with which browsers name the site that made a request; "none" is a person.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Header of Anthropic's protocol with the key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Rules for requests; see the module.
#[derive(Clone)]
pub struct Guard {
    pub key: Option<Key>,
    /// `true` if only this computer can reach the server.
    pub loopback: bool,
}

pub async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Result<Response, Refusal> {
    guard.admit(&request)?;
    Ok(next.run(request).await)
}

impl Guard {
    fn admit(&self, request: &Request) -> Result<(), Refusal> {
        let headers = request.headers();
        let authority = request.uri().authority().map(|authority| authority.as_str());
        let local = only(headers, HOST).is_some_and(is_literal) && authority.is_none_or(is_literal);
        if self.loopback && !local {
            let message = "The Host header does not name this computer. Use 127.0.0.1 or localhost.";
            return Err(Refusal::forbidden(message));
        }
        // Browsers send no `Origin` where a page loads an address as a picture or a script.
        let by_page = headers.contains_key(ORIGIN)
            || headers.contains_key(FETCH_SITE) && only(headers, FETCH_SITE) != Some("none");
        if by_page {
            return Err(Refusal::forbidden("This server does not accept requests from web pages."));
        }
        match &self.key {
            Some(key) if request.uri().path() != HEALTH && !has_key(headers, key) => Err(Refusal::no_key()),
            _ => Ok(()),
        }
    }
}

fn has_key(headers: &HeaderMap, key: &Key) -> bool {
    said_key(headers).is_some_and(|said| key.is(said))
}

/// Returns the key that a client sent, whether or not the server needs one.
fn said_key(headers: &HeaderMap) -> Option<&str> {
    if !headers.contains_key(AUTHORIZATION) {
        return only(headers, API_KEY).map(str::trim);
    }
    let (scheme, said) = only(headers, AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| said.trim())
}

/// Returns the owner of a client's texts. Clients without a key share theirs.
pub fn owner(headers: &HeaderMap) -> Owner {
    Owner::Client(Sha256::digest(said_key(headers).unwrap_or_default()).into())
}

/// Returns the value of a header that occurs exactly once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    const LOCAL: Guard = Guard { key: None, loopback: true };

    fn admits(guard: &Guard, uri: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        guard.admit(&request.body(Body::empty()).unwrap()).is_ok()
    }

    #[test]
    fn a_host_name_that_needs_a_name_server_is_refused() {
        assert!(admits(&LOCAL, "/v1/models", &[("host", "127.0.0.1:8642")]));
        assert!(admits(&LOCAL, "http://localhost/v1/models", &[("host", "localhost")]));
        for headers in [
            &[("host", "evil.example:8642")][..],
            &[],
            &[("host", "localhost"), ("host", "evil.example")],
            &[("host", "localhost.")],
        ] {
            assert!(!admits(&LOCAL, "/health", headers), "{headers:?}");
        }
        assert!(!admits(&LOCAL, "http://evil.example/v1/models", &[("host", "localhost")]));
    }

    #[test]
    fn requests_of_web_pages_are_refused_whatever_their_origin() {
        for origin in ["https://evil.example", "null", "http://127.0.0.1:8642", ""] {
            assert!(!admits(&LOCAL, "/v1/models", &[("host", "localhost"), ("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn pages_that_load_an_address_as_a_picture_or_a_script_are_refused() {
        let from = |site| admits(&LOCAL, "/health", &[("host", "localhost"), ("sec-fetch-site", site)]);
        assert!(!from("cross-site") && !from("same-site") && !from("same-origin") && !from("anything"));
        // A person who opens the address in a browser.
        assert!(from("none"));
        let twice = [("host", "localhost"), ("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")];
        assert!(!admits(&LOCAL, "/health", &twice));
    }

    #[test]
    fn the_key_is_required_everywhere_except_for_health() {
        let guard = Guard { key: Key::of("secret"), loopback: false };
        let with = |value| admits(&guard, "/v1/models", &[("host", "any.example"), ("authorization", value)]);
        assert!(with("Bearer secret") && with("bearer secret"));
        for wrong in ["", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secret2", "Basic secret"] {
            assert!(!with(wrong), "{wrong}");
        }
        assert!(!admits(&guard, "/v1/models", &[]) && admits(&guard, "/health", &[]));
        let twice = [("authorization", "Bearer x"), ("authorization", "Bearer secret")];
        assert!(!admits(&guard, "/v1/models", &twice));
        let by_key = |value| admits(&guard, "/v1/messages", &[("host", "any.example"), ("x-api-key", value)]);
        assert!(by_key("secret") && !by_key("secre") && !by_key("Bearer secret") && !by_key(""));
        // Two different keys are ambiguous, so only one header counts.
        let both = [("host", "any.example"), ("authorization", "Bearer x"), ("x-api-key", "secret")];
        assert!(!admits(&guard, "/v1/messages", &both));
    }
}
