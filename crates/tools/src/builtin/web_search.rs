//! Searches the web with the engine that the person has set: SearXNG, Brave or Tavily, by their
//! documented protocols.

use reqwest::header::AUTHORIZATION;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;
use ts_rs::TS;

use super::request::{CONNECT, TIME, body, failed, wait};
use crate::error::{Error, Result};

/// Most results, and the longest title, address and excerpt of one in characters.
const MOST: usize = 8;
const LONGEST_TITLE: usize = 200;
const LONGEST_ADDRESS: usize = 500;
const LONGEST_EXCERPT: usize = 500;

/// Longest query in characters.
const LONGEST_QUERY: usize = 400;

/// Service that searches the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum SearchService {
    /// A server of the person's, without a key.
    Searxng,
    Brave,
    Tavily,
}

impl SearchService {
    /// Returns whether it wants a key; the others want an address.
    pub fn wants_key(self) -> bool {
        self != Self::Searxng
    }
}

/// A service with its address and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchEngine {
    pub service: SearchService,
    /// Address of a SearXNG server; empty for that of the service.
    pub address: String,
    pub key: Option<String>,
}

/// A result.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Found {
    title: Option<String>,
    url: Option<String>,
    #[serde(alias = "description")]
    content: Option<String>,
}

/// Results of SearXNG and Tavily.
#[derive(Deserialize)]
struct Results {
    results: Vec<Found>,
}

/// Results of Brave; without `web` if there are none.
#[derive(Deserialize)]
struct BraveResults {
    web: Option<Results>,
}

pub(super) fn search(
    engine: Option<SearchEngine>,
    query: &str,
    runtime: &Handle,
    stop: &dyn Fn() -> bool,
) -> Result<String> {
    let Some(engine) = engine else {
        let message = "No search engine is set. Choose one in Settings > Tools.";
        return Err(Error::Builtin(message.to_owned()));
    };
    let query: String = query.chars().take(LONGEST_QUERY).collect();
    let found = wait(async move { engine.ask(&query).await }, runtime, stop)?;
    Ok(if found.is_empty() { "Nothing was found.".to_owned() } else { listed(&found) })
}

fn listed(found: &[Found]) -> String {
    let cut = |text: &Option<String>, most: usize| -> String {
        let words: Vec<&str> = text.as_deref().unwrap_or_default().split_whitespace().collect();
        words.join(" ").chars().take(most).collect()
    };
    let entry = |(index, found): (usize, &Found)| {
        let (title, address) = (cut(&found.title, LONGEST_TITLE), cut(&found.url, LONGEST_ADDRESS));
        format!("{}. {title}\n{address}\n{}", index + 1, cut(&found.content, LONGEST_EXCERPT))
    };
    let entries: Vec<String> = found.iter().take(MOST).enumerate().map(entry).collect();
    entries.join("\n\n")
}

impl SearchEngine {
    async fn ask(&self, query: &str) -> Result<Vec<Found>> {
        let client = client()?;
        let key = self.key.as_deref().unwrap_or_default();
        match self.service {
            SearchService::Searxng => {
                let query = [("q", query), ("format", "json")];
                let request = client.get(self.url("", "search")?).query(&query);
                Ok(self.answer::<Results>(request).await?.results)
            }
            SearchService::Brave => {
                let count = MOST.to_string();
                let query = [("q", query), ("count", &count), ("text_decorations", "false")];
                let url = self.url("https://api.search.brave.com", "res/v1/web/search")?;
                let request = client.get(url).query(&query).header("X-Subscription-Token", key);
                Ok(self.answer::<BraveResults>(request).await?.web.map_or_else(Vec::new, |web| web.results))
            }
            SearchService::Tavily => {
                let body = json!({ "query": query, "max_results": MOST });
                let request = client.post(self.url("https://api.tavily.com", "search")?).json(&body);
                let request = request.header(AUTHORIZATION, format!("Bearer {key}"));
                Ok(self.answer::<Results>(request).await?.results)
            }
        }
    }

    /// Returns the address of `path` on the service.
    fn url(&self, standard: &str, path: &str) -> Result<Url> {
        let base = if self.address.is_empty() { standard } else { self.address.trim_end_matches('/') };
        let url = Url::parse(&format!("{base}/{path}")).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        url.ok_or_else(|| {
            Error::Builtin("The search engine has no address. Set it in Settings > Tools.".to_owned())
        })
    }

    async fn answer<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        let response = self.accepted(request.send().await.map_err(failed)?)?;
        let unreadable = |_| Error::Builtin("The search engine's answer cannot be read.".to_owned());
        serde_json::from_slice(&body(response).await?).map_err(unreadable)
    }

    fn accepted(&self, response: Response) -> Result<Response> {
        let message = match response.status() {
            status if status.is_success() => return Ok(response),
            StatusCode::FORBIDDEN if !self.service.wants_key() => {
                "The search engine does not answer in JSON. Add json to search.formats in its settings."
                    .to_owned()
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::UNPROCESSABLE_ENTITY => {
                "The search engine refused the key. Set it in Settings > Tools.".to_owned()
            }
            StatusCode::TOO_MANY_REQUESTS => {
                "The search engine has had too many requests. Try again later.".to_owned()
            }
            status => format!("The search engine answered with the status {status}."),
        };
        Err(Error::Builtin(message))
    }
}

/// A client that follows no redirects: a key goes to its service alone.
fn client() -> Result<Client> {
    let client = Client::builder().redirect(Policy::none()).connect_timeout(CONNECT).timeout(TIME);
    client.referer(false).build().map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use super::*;

    /// Answers one request with a status and a body; returns the address and the request.
    fn served(status: &'static str, body: String) -> (String, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut request, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(found) = line.to_lowercase().strip_prefix("content-length:") {
                    length = found.trim().parse().unwrap();
                }
                request.push_str(&line);
                if line == "\r\n" {
                    break;
                }
            }
            let mut sent = vec![0; length];
            reader.read_exact(&mut sent).unwrap();
            request.push_str(&String::from_utf8(sent).unwrap());
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
            request
        });
        (address, thread)
    }

    fn ask(
        service: SearchService,
        status: &'static str,
        body: impl ToString,
        stop: bool,
    ) -> (Result<String>, String) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let (address, request) = served(status, body.to_string());
        let key = service.wants_key().then(|| "secret".to_owned());
        let engine = SearchEngine { service, address, key };
        let found = search(Some(engine), "fox & hen", runtime.handle(), &|| stop);
        (found, request.join().unwrap())
    }

    #[test]
    fn each_service_is_asked_by_its_protocol_and_its_results_are_listed() {
        let results = json!([
            { "title": "A <b>fox</b>", "url": "https://a.example/x", "content": "Red\n and quick." },
            { "title": null, "url": "https://b.example/" },
        ]);
        let plain = json!({ "query": "x", "results": results });
        let brave = json!({ "web": { "results": [
            { "title": "A <b>fox</b>", "url": "https://a.example/x", "description": "Red\n and quick." },
            { "title": "", "url": "https://b.example/" },
        ] } });
        let listed = "1. A <b>fox</b>\nhttps://a.example/x\nRed and quick.\n\n2. \nhttps://b.example/\n";
        for (service, answer, asked) in [
            (SearchService::Searxng, &plain, "GET /search?q=fox+%26+hen&format=json HTTP/1.1\r\n"),
            (SearchService::Brave, &brave, "GET /res/v1/web/search?q=fox+%26+hen&count=8"),
            (SearchService::Tavily, &plain, "POST /search HTTP/1.1\r\n"),
        ] {
            let (found, request) = ask(service, "200 OK", answer, false);
            assert_eq!(found.as_deref(), Ok(listed), "{service:?}");
            assert!(request.starts_with(asked), "{request}");
            let keys = ["x-subscription-token: secret\r\n", "authorization: Bearer secret\r\n"];
            let sent = keys.map(|key| request.contains(key));
            let expected = [service == SearchService::Brave, service == SearchService::Tavily];
            assert_eq!(sent, expected, "{request}");
            if service == SearchService::Tavily {
                assert!(request.contains("{\"query\":\"fox & hen\",\"max_results\":8}"), "{request}");
            }
        }
        let none = ask(SearchService::Brave, "200 OK", "{}", false).0;
        assert_eq!(none.as_deref(), Ok("Nothing was found."));
    }

    #[test]
    fn results_are_bounded_in_number_and_length() {
        let found: Vec<_> = (0..20)
            .map(|_| json!({ "title": "t".repeat(9000), "url": "u".repeat(9000), "content": "c ".repeat(9000) }))
            .collect();
        let (found, _) = ask(SearchService::Searxng, "200 OK", json!({ "results": found }), false);
        let found = found.unwrap();
        assert!(found.contains("\n\n8. ") && !found.contains("\n\n9. "));
        assert!(found.len() < MOST * (LONGEST_TITLE + LONGEST_ADDRESS + LONGEST_EXCERPT + 10));
        let (found, _) = ask(SearchService::Searxng, "200 OK", "x".repeat(3 << 20), false);
        assert!(found.unwrap_err().to_string().contains("larger than 2 MB"));
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let error = |service, status| ask(service, status, "{}", false).0.unwrap_err().to_string();
        assert!(error(SearchService::Searxng, "403 Forbidden").contains("search.formats"));
        assert!(error(SearchService::Brave, "403 Forbidden").contains("refused the key"));
        assert!(error(SearchService::Tavily, "401 Unauthorized").contains("refused the key"));
        assert!(error(SearchService::Tavily, "429 Too Many Requests").contains("later"));
        assert!(error(SearchService::Brave, "302 Found").contains("302"), "redirects are not followed");
        assert!(error(SearchService::Searxng, "200 OK").contains("cannot be read"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let unset = search(None, "fox", runtime.handle(), &|| false).unwrap_err().to_string();
        assert!(unset.contains("Settings > Tools"), "{unset}");
        for address in ["", "ftp://a", "not an address"] {
            let engine =
                SearchEngine { service: SearchService::Searxng, address: address.to_owned(), key: None };
            assert!(engine.url("", "search").is_err(), "{address}");
        }
    }

    #[test]
    fn a_search_that_is_stopped_ends_at_once() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let engine = SearchEngine { service: SearchService::Searxng, address, key: None };
        let runtime = runtime.unwrap();
        assert_eq!(search(Some(engine), "fox", runtime.handle(), &|| true), Err(Error::Stopped));
    }
}
