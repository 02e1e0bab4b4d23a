//! The local server next to the window: enabled and disabled by the settings, with the loaded
//! models.

use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use foretoken_app::ipc::{ServerSettings, ServerStatus};
use foretoken_tests::client::{Answer, asked, get, post};
use serde_json::{Value, json};

use super::Fixture;

const CHAT: &str = "/v1/chat/completions";

/// Returns a port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn story(more: &Value) -> String {
    let mut body = json!({ "messages": [{ "role": "user", "content": "Tell me a story about a fox." }] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body.to_string()
}

fn text(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

/// Starts an application with the server enabled; returns its address too.
pub fn serving() -> (Fixture, String) {
    let fixture = Fixture::new();
    let server = ServerSettings { enabled: true, port: free_port(), ..ServerSettings::default() };
    let at = format!("127.0.0.1:{}", server.port);
    fixture.set(|settings| settings.server = server);
    assert_eq!(fixture.app.server_status().url, Some(format!("http://{at}/v1")));
    (fixture, at)
}

#[test]
fn programs_get_the_windows_reply_and_the_window_keeps_none_of_it() {
    let (fixture, at) = serving();
    let (reply, _) = fixture.send(None, "Tell me a story about a fox.");
    let answer = post(&at, CHAT, &story(&json!({})));
    assert_eq!(text(&answer), reply.reply.text);
    assert!(answer.json()["usage"]["accepted"].as_u64().unwrap() > 0, "{}", answer.body);
    assert_eq!(answer.json()["model"], "starter");
    assert_eq!(fixture.app.conversations().unwrap().len(), 1);
    let refused = post(&at, CHAT, &story(&json!({ "temperature": 9 })));
    assert_eq!((refused.status, refused.message().as_str()), (400, "temperature: expected 0 to 5, found 9."));
}

#[test]
fn requests_are_listed_without_their_texts_while_the_server_runs() {
    let (fixture, at) = serving();
    text(&post(&at, CHAT, &story(&json!({}))));
    assert_eq!(get(&at, "/v1/models").status, 200);
    let requests = fixture.app.server_requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/v1/models", CHAT]);
    let reply = &requests[1];
    assert_eq!((reply.model.as_deref(), reply.status), (Some("starter"), Some(200)));
    assert!(reply.tokens.unwrap() > 1 && reply.tokens_per_second.unwrap() > 0.0, "{reply:?}");
    assert!(!serde_json::to_string(&requests).unwrap().contains("fox"));
    fixture.set(|settings| settings.server.enabled = false);
    assert_eq!(fixture.app.server_requests(), []);
}

#[test]
fn the_window_waits_for_at_most_one_reply_of_the_server() {
    let (fixture, at) = serving();
    let alone = Instant::now();
    text(&post(&at, CHAT, &story(&json!({}))));
    let alone = alone.elapsed();
    let clients: Vec<TcpStream> = (0..30).map(|_| asked(&at, CHAT, &story(&json!({ "seed": 1 })))).collect();
    thread::sleep(Duration::from_millis(20));
    let begun = Instant::now();
    let (reply, _) = fixture.send(None, "Tell me a story about a fox.");
    assert!(begun.elapsed() < 6 * alone + Duration::from_secs(1), "{:?} of {alone:?}", begun.elapsed());
    for client in clients {
        assert_eq!(text(&foretoken_tests::client::answer(client)), reply.reply.text);
    }
}

#[test]
fn the_server_follows_the_settings_and_reports_a_port_in_use() {
    let (fixture, at) = serving();
    let set = |change: &dyn Fn(&mut ServerSettings)| {
        fixture.set(|settings| change(&mut settings.server));
        fixture.app.server_status()
    };
    assert_eq!(get(&at, "/v1/models").status, 200);
    // The same port, now with a key.
    assert!(set(&|server| server.key = "secret".to_owned()).url.is_some());
    assert_eq!(get(&at, "/v1/models").status, 401);
    assert_eq!(set(&|server| server.enabled = false), ServerStatus::default());
    assert!(TcpStream::connect(&at).is_err());

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let refused = set(&|server| (server.enabled, server.port) = (true, port));
    assert_eq!(refused.url, None);
    assert!(refused.problem.unwrap().starts_with(&format!("Port {port} of 127.0.0.1 is in use.")));
    // Retried only when it is enabled again, not at other changes.
    drop(taken);
    assert_eq!(set(&|_| ()).url, None);
    set(&|server| server.enabled = false);
    assert_eq!(set(&|server| server.enabled = true).url, Some(format!("http://127.0.0.1:{port}/v1")));

    let refused = set(&|server| (server.host, server.key) = ("0.0.0.0".to_owned(), String::new()));
    assert!(refused.problem.unwrap().starts_with("Other computers can reach 0.0.0.0"));
}

#[test]
fn a_switched_server_is_stored_and_its_watchers_see_every_state() {
    let fixture = Fixture::new();
    let port = free_port();
    fixture.set(|settings| settings.server = ServerSettings { port, ..ServerSettings::default() });
    let seen = Arc::<Mutex<Vec<ServerStatus>>>::default();
    let states = Arc::clone(&seen);
    fixture.app.watch_server(move |status| {
        states.lock().unwrap().push(status.clone());
        true
    });
    let running = ServerStatus { url: Some(format!("http://127.0.0.1:{port}/v1")), problem: None };
    assert!(fixture.app.switch_server(true).unwrap().server.enabled);
    assert_eq!(fixture.app.server_status(), running);
    assert!(!fixture.app.switch_server(false).unwrap().server.enabled);
    let stopped = ServerStatus::default();
    assert_eq!(*seen.lock().unwrap(), [stopped.clone(), running.clone(), stopped]);

    // A server that could not be started is tried again.
    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    fixture.app.switch_server(true).unwrap();
    assert!(fixture.app.server_status().problem.is_some());
    drop(taken);
    fixture.app.switch_server(true).unwrap();
    assert_eq!(fixture.app.server_status(), running);
}

#[test]
fn an_enabled_server_starts_again_at_the_next_start_and_stops_with_the_application() {
    let (fixture, at) = serving();
    let fixture = fixture.restart();
    assert_eq!(get(&at, "/health").json(), json!({ "status": "ok" }));
    let app = Arc::clone(&fixture.app);
    drop(fixture);
    assert_eq!(Arc::strong_count(&app), 1);
    drop(app);
    assert!(TcpStream::connect(&at).is_err());
}
