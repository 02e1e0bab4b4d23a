//! Requests to the update server, which is untrusted: limits on bytes, silence and time, and no way
//! from HTTPS to HTTP.

use std::time::Duration;

use foretoken_app::ipc::UpdateProblem;
use reqwest::{Client, StatusCode, Url};

/// Longest silence of a server.
const SILENCE: Duration = Duration::from_secs(30);

/// Limits of a response.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub bytes: u64,
    /// Time for the whole response.
    pub time: Duration,
}

/// Body of a response; `None` if the server has nothing (204).
type Fetched = Result<Option<Vec<u8>>, UpdateProblem>;

/// Requests `url`, with redirects. `on_progress` is called with the received bytes and the length
/// of the response, if the server reports it.
///
/// # Errors
/// Returns `Unreachable`, `ConnectionLost` or `TooLarge`.
pub async fn fetch(url: Url, limits: Limits, on_progress: impl Fn(u64, Option<u64>)) -> Fetched {
    let unreachable = |error: reqwest::Error| {
        tracing::warn!("the update server cannot be reached: {error}");
        UpdateProblem::Unreachable
    };
    let client = Client::builder()
        .user_agent(concat!("foretoken/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(SILENCE)
        .read_timeout(SILENCE)
        .timeout(limits.time)
        .https_only(url.scheme() == "https")
        .build()
        .map_err(unreachable)?;
    let response = client.get(url).send().await.and_then(reqwest::Response::error_for_status);
    let mut response = response.map_err(unreachable)?;
    if response.status() == StatusCode::NO_CONTENT {
        return Ok(None);
    }
    let total = response.content_length();
    if total.is_some_and(|total| total > limits.bytes) {
        return Err(UpdateProblem::TooLarge);
    }
    let mut received = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(lost)? {
        if (received.len() + piece.len()) as u64 > limits.bytes {
            return Err(UpdateProblem::TooLarge);
        }
        received.extend_from_slice(&piece);
        on_progress(received.len() as u64, total);
    }
    Ok(Some(received))
}

fn lost(error: reqwest::Error) -> UpdateProblem {
    tracing::warn!("the connection to the update server was lost: {error}");
    UpdateProblem::ConnectionLost
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::TcpListener;

    use foretoken_tests::update_server::{Response, UpdateServer};
    use tauri::async_runtime::block_on;

    use super::*;

    const LIMITS: Limits = Limits { bytes: 1000, time: Duration::from_secs(20) };

    /// Fetches what a server sends, and the last progress.
    fn fetched(sent: Response, limits: Limits) -> (Fetched, (u64, Option<u64>)) {
        let server = UpdateServer::start();
        server.set_description(sent);
        let last = Cell::new((0, None));
        let url = Url::parse(&server.endpoint()).unwrap();
        let outcome = block_on(fetch(url, limits, |done, total| last.set((done, total))));
        (outcome, last.get())
    }

    #[test]
    fn a_response_is_fetched_with_its_progress() {
        let (outcome, last) = fetched(Response::of(&[7; 1000]), LIMITS);
        assert_eq!((outcome, last), (Ok(Some(vec![7; 1000])), (1000, Some(1000))));
        assert_eq!(fetched(Response { status: 204, ..Response::default() }, LIMITS).0, Ok(None));
    }

    #[test]
    fn a_response_that_is_too_long_is_refused_with_and_without_a_length() {
        let (outcome, last) = fetched(Response::of(&[7; 1001]), LIMITS);
        assert_eq!((outcome, last.0), (Err(UpdateProblem::TooLarge), 0), "nothing was received");
        let endless = Response { endless: true, ..Response::of(&[7; 100]) };
        let (outcome, last) = fetched(endless, LIMITS);
        assert_eq!(outcome, Err(UpdateProblem::TooLarge));
        assert!(last.0 <= 1000, "{last:?}");
    }

    #[test]
    fn a_response_that_ends_early_or_takes_too_long_is_refused() {
        let cut = Response { cut_after: Some(100), ..Response::of(&[7; 1000]) };
        assert_eq!(fetched(cut, LIMITS).0, Err(UpdateProblem::ConnectionLost));
        let stalled = Response { stall_after: Some(100), ..Response::of(&[7; 1000]) };
        let short = Limits { time: Duration::from_millis(300), ..LIMITS };
        assert_eq!(fetched(stalled, short).0, Err(UpdateProblem::ConnectionLost));
    }

    #[test]
    fn a_server_that_refuses_or_is_gone_is_unreachable() {
        let refused = Response { status: 500, ..Response::of(b"no") };
        assert_eq!(fetched(refused, LIMITS).0, Err(UpdateProblem::Unreachable));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let gone = Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
        assert_eq!(block_on(fetch(gone, LIMITS, |_, _| ())), Err(UpdateProblem::Unreachable));
    }

    #[test]
    fn a_dropped_request_closes_its_connection() {
        let server = UpdateServer::start();
        server.set_description(Response { stall_after: Some(100), ..Response::of(&[7; 1000]) });
        let url = Url::parse(&server.endpoint()).unwrap();
        let task = tauri::async_runtime::spawn(fetch(url, LIMITS, |_, _| ()));
        server.wait_until_stalled();
        task.abort();
        server.wait_until_closed();
    }
}
