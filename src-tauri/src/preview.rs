//! Sealed preview of HTML that a reply contains, at addresses of its own scheme.
//!
//! A document in `srcdoc` would have the page's policy, which allows no inline styles. Here it has
//! one of its own: no scripts, no network, no forms, and an origin that it shares with nothing.

use std::sync::{Arc, Mutex, PoisonError};

use tauri::Url;
use tauri::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use tauri::http::{HeaderValue, Request, Response, StatusCode};

/// Scheme of the addresses.
pub const SCHEME: &str = "preview";

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; \
    base-uri 'none'; form-action 'none'; sandbox";

/// The document shown last, with its number.
#[derive(Clone, Default)]
pub struct Preview(Arc<Mutex<(u32, String)>>);

impl Preview {
    /// Holds `document` in place of the one before, and returns its address.
    pub fn show(&self, document: String) -> String {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = (shown.0.wrapping_add(1), document);
        let number = shown.0;
        if cfg!(windows) {
            format!("http://{SCHEME}.localhost/{number}")
        } else {
            format!("{SCHEME}://localhost/{number}")
        }
    }

    /// Answers a request for an address: only the last one has a document.
    pub fn respond(&self, request: &Request<Vec<u8>>) -> Response<Vec<u8>> {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = shown.0 > 0 && request.uri().path() == format!("/{}", shown.0);
        let (status, document) =
            if found { (StatusCode::OK, shown.1.as_str()) } else { (StatusCode::NOT_FOUND, "") };
        let mut response = Response::new(document.as_bytes().to_vec());
        *response.status_mut() = status;
        let headers = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CONTENT_SECURITY_POLICY, POLICY),
            (REFERRER_POLICY, "no-referrer"),
            (CACHE_CONTROL, "no-store"),
        ];
        for (name, value) in headers {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Returns whether a preview may be at `url`.
pub fn is_preview(url: &Url) -> bool {
    let (scheme, host) = if cfg!(windows) { ("http", "preview.localhost") } else { (SCHEME, "localhost") };
    url.scheme() == scheme && url.host_str() == Some(host) && url.port().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(preview: &Preview, address: &str) -> Response<Vec<u8>> {
        preview.respond(&Request::get(address).body(Vec::new()).unwrap())
    }

    #[test]
    fn only_the_last_document_is_held() {
        let preview = Preview::default();
        let root = if cfg!(windows) { "http://preview.localhost/" } else { "preview://localhost/" };
        for number in [0, 1] {
            assert_eq!(answer(&preview, &format!("{root}{number}")).status(), StatusCode::NOT_FOUND);
        }
        let first = preview.show("<p>one".to_owned());
        assert!(is_preview(&Url::parse(&first).unwrap()));
        assert_eq!(answer(&preview, &first).body(), b"<p>one");
        let second = preview.show("<p>two".to_owned());
        assert_eq!(answer(&preview, &second).body(), b"<p>two");
        let gone = answer(&preview, &first);
        assert_eq!((gone.status(), gone.body().len()), (StatusCode::NOT_FOUND, 0));
    }

    #[test]
    fn a_document_runs_nothing_and_loads_nothing() {
        let preview = Preview::default();
        let address = preview.show("<script>alert(1)</script>".to_owned());
        let policy = answer(&preview, &address).headers()[CONTENT_SECURITY_POLICY].clone();
        let policy = policy.to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        assert!(policy.ends_with("; sandbox"), "{policy}");
        for source in ["script-src", "http", "*", "'self'", "connect-src", "frame-src"] {
            assert!(!policy.contains(source), "{policy}");
        }
    }
}
