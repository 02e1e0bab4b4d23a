//! Who may ask. A page in a browser may not, wherever it comes from: it would reach a server that only this computer
//! is meant to. Neither may a name that a stranger's name server made one of this computer (DNS rebinding), nor on
//! a server with a key who does not know it.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use axum::middleware::Next;
use axum::response::Response;

use crate::address::{Key, is_literal};
use crate::refusal::Refusal;

/// Where it is asked whether a model is ready, for which no key is needed.
pub const HEALTH: &str = "/health";

/// See the module.
#[derive(Clone)]
pub struct Guard {
    pub key: Option<Key>,
    /// Only this computer reaches the server.
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
            let message = "The host is not this computer: ask for 127.0.0.1 or localhost.";
            return Err(Refusal::forbidden(message));
        }
        if headers.contains_key(ORIGIN) {
            return Err(Refusal::forbidden("Pages in a browser may not use this server."));
        }
        match &self.key {
            Some(key) if request.uri().path() != HEALTH && !knows(headers, key) => Err(Refusal::no_key()),
            _ => Ok(()),
        }
    }
}

fn knows(headers: &HeaderMap, key: &Key) -> bool {
    let said = only(headers, AUTHORIZATION).and_then(|said| said.split_once(' '));
    said.is_some_and(|(scheme, said)| scheme.eq_ignore_ascii_case("bearer") && key.is(said.trim()))
}

/// The value of a header that is there once.
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
    fn a_name_that_others_decide_on_is_no_host() {
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
    fn no_page_may_ask_wherever_it_comes_from() {
        for origin in ["https://evil.example", "null", "http://127.0.0.1:8642", ""] {
            assert!(!admits(&LOCAL, "/v1/models", &[("host", "localhost"), ("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn the_key_is_asked_for_everywhere_but_for_the_health() {
        let guard = Guard { key: Key::of("secret"), loopback: false };
        let with = |value| admits(&guard, "/v1/models", &[("host", "any.example"), ("authorization", value)]);
        assert!(with("Bearer secret") && with("bearer secret"));
        for wrong in ["", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secret2", "Basic secret"] {
            assert!(!with(wrong), "{wrong}");
        }
        assert!(!admits(&guard, "/v1/models", &[]) && admits(&guard, "/health", &[]));
        let twice = [("authorization", "Bearer x"), ("authorization", "Bearer secret")];
        assert!(!admits(&guard, "/v1/models", &twice));
    }
}
