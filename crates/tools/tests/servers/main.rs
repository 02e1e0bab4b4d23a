//! Servers that behave and that do not, and one from a package registry.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod contents;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use foretoken_tools::{
    Error, McpFile, Outcome, Progress, Result, ServerConfig, ServerState, Source, Toolbox, Transport,
};
use serde_json::{Map, Value, json};

fn config(mode: &str) -> ServerConfig {
    let command = foretoken_tests::mcp_server().display().to_string();
    let args = vec![mode.to_owned()];
    ServerConfig { transport: Transport::Process { command, args, env: Default::default(), folder: None } }
}

fn started(mode: &str) -> Toolbox {
    let toolbox = Toolbox::new().unwrap().with_times(Duration::from_secs(2), Duration::from_secs(20));
    toolbox.switch_on("test", &config(mode));
    toolbox.wait(&|| false);
    toolbox
}

fn call(toolbox: &Toolbox, tool: &str, arguments: Value) -> Result<Outcome> {
    call_until(toolbox, tool, arguments, &|| false)
}

fn call_until(toolbox: &Toolbox, tool: &str, arguments: Value, stop: &dyn Fn() -> bool) -> Result<Outcome> {
    let Value::Object(arguments) = arguments else { panic!("{arguments}") };
    let source = Source::Server { server: "test".to_owned(), tool: tool.to_owned() };
    toolbox.call(&source, arguments, &(), stop, &|_| {})
}

fn state(toolbox: &Toolbox) -> ServerState {
    toolbox.servers().remove(0).state
}

#[test]
fn tools_are_listed_and_called() {
    let toolbox = started("");
    assert_eq!(state(&toolbox), ServerState::Ready);
    let offers = toolbox.offers(&[]);
    let add = offers.iter().find(|offer| offer.name == "test__add").unwrap();
    assert_eq!((add.server(), add.tool(), add.description.as_str()), (Some("test"), "add", "add."));
    assert_eq!(add.parameters["required"], json!(["a", "b"]));
    let text = |outcome: Result<Outcome>| outcome.unwrap().text;
    assert_eq!(text(call(&toolbox, "add", json!({ "a": 2, "b": 40 }))), "42");
    assert_eq!(text(call(&toolbox, "echo", json!({ "text": "ä\u{1b}[31m\nb" }))), "ä[31m\nb");
    let failed = call(&toolbox, "fail", json!({})).unwrap();
    assert_eq!((failed.text.as_str(), failed.is_error), ("no such file", true));
    let big = call(&toolbox, "big", json!({})).unwrap().text;
    assert!(big.ends_with("[234464 more bytes were left out]"), "{}", &big[big.len() - 60..]);
    assert_eq!(call(&toolbox, "none", json!({})), Err(Error::NoTool("none".to_owned())));
    toolbox.switch_off("test");
    assert_eq!(call(&toolbox, "add", json!({})), Err(Error::NotRunning("test".to_owned())));
    assert!(toolbox.offers(&[]).is_empty());
}

#[test]
fn a_server_gets_a_clean_environment() {
    let toolbox = started("");
    let names = call(&toolbox, "env", json!({})).unwrap().text;
    assert!(names.split(' ').any(|name| name == "PATH"), "{names}");
    let others = names.split(' ').filter(|name| name.starts_with("CARGO") || name.starts_with("FORETOKEN"));
    assert_eq!(others.count(), 0, "{names}");
}

#[test]
fn progress_is_reported_and_extends_the_time() {
    let toolbox = Toolbox::new().unwrap().with_times(Duration::from_millis(400), Duration::from_secs(20));
    toolbox.switch_on("test", &config(""));
    toolbox.wait(&|| false);
    let reports = RefCell::new(Vec::new());
    let source = Source::Server { server: "test".to_owned(), tool: "progress".to_owned() };
    let on_progress = |report: Progress| reports.borrow_mut().push(report);
    let outcome = toolbox.call(&source, Map::new(), &(), &|| false, &on_progress).unwrap();
    assert_eq!(outcome.text, "done");
    let reports = reports.into_inner();
    assert!(reports.len() >= 2, "{reports:?}");
    assert_eq!(reports[0].total, Some(4.0));
}

#[test]
fn a_call_that_hangs_ends_in_time_or_when_it_is_stopped() {
    let toolbox = started("");
    let begun = Instant::now();
    assert_eq!(call_until(&toolbox, "hang", json!({}), &|| true), Err(Error::Stopped));
    assert!(begun.elapsed() < Duration::from_secs(2));
    let toolbox = started("");
    assert_eq!(call(&toolbox, "hang", json!({})), Err(Error::TimedOut(Duration::from_secs(2))));
}

#[test]
fn a_server_that_dies_or_floods_says_so_and_can_be_started_again() {
    for (tool, expected) in [("die", "out of cheese"), ("huge", "more than 8 MB")] {
        let toolbox = started("");
        let error = call(&toolbox, tool, json!({})).unwrap_err().to_string();
        assert!(error.contains(expected), "{tool}: {error}");
        assert!(matches!(state(&toolbox), ServerState::Failed(_)), "{tool}");
        let again = call(&toolbox, "add", json!({ "a": 1, "b": 1 })).unwrap_err();
        assert_eq!(again.to_string(), error, "the reason stays");
        toolbox.switch_on("test", &config(""));
        toolbox.wait(&|| false);
        assert_eq!(call(&toolbox, "add", json!({ "a": 1, "b": 1 })).unwrap().text, "2");
    }
}

#[test]
fn bytes_that_are_no_message_are_skipped_and_logged() {
    let toolbox = started("");
    assert_eq!(call(&toolbox, "binary", json!({})).unwrap().text, "after");
    let log = toolbox.servers().remove(0).log;
    assert!(!log.is_empty() && log.iter().all(|line| !line.contains('\0')), "{log:?}");
}

#[test]
fn a_server_that_does_not_become_ready_says_why() {
    let reason = |mode: &str| match state(&started(mode)) {
        ServerState::Failed(error) => error.to_string(),
        state => panic!("{mode}: {state:?}"),
    };
    assert!(reason("ended").contains("this server has no licence"), "{}", reason("ended"));
    assert!(reason("noisy").contains("Welcome to this server!"), "{}", reason("noisy"));
    let toolbox = Toolbox::new().unwrap();
    let file = McpFile::parse(r#"{"mcpServers": {"gone": {"command": "no-such-command-here"}}}"#).unwrap();
    toolbox.switch_on("gone", file.servers()[0].1.as_ref().unwrap());
    toolbox.wait(&|| false);
    assert_eq!(state(&toolbox), ServerState::Failed(Error::NoCommand("no-such-command-here".to_owned())));
    // Waiting for a silent server can be stopped.
    let toolbox = Toolbox::new().unwrap();
    toolbox.switch_on("silent", &config("silent"));
    toolbox.wait(&|| true);
    assert_eq!(state(&toolbox), ServerState::Starting);
}

#[test]
fn requests_of_a_server_for_the_model_folders_and_the_person_are_refused() {
    let toolbox = started("");
    let answers = call(&toolbox, "ask", json!({})).unwrap().text;
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |id: &str| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(of("sampling/createMessage")["error"]["code"], -32601);
    assert_eq!(of("roots/list")["error"]["code"], -32601);
    assert_eq!(of("elicitation/create")["result"]["action"], "decline");
    assert_eq!(toolbox.servers().remove(0).log.len(), 3);
}

#[test]
fn a_changed_tool_is_listed_again_with_another_digest() {
    let toolbox = started("");
    let digest = || toolbox.offers(&[]).into_iter().find(|offer| offer.tool() == "echo").unwrap().digest;
    let before = digest();
    assert_eq!(call(&toolbox, "change", json!({})).unwrap().text, "changed");
    let end = Instant::now() + Duration::from_secs(10);
    while digest() == before {
        assert!(Instant::now() < end, "the change was not noticed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn servers_and_what_they_started_end_with_the_toolbox() {
    let toolbox = started("stays");
    let ids = call(&toolbox, "stay", json!({})).unwrap().text;
    let runs = |id: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    assert!(ids.split(' ').all(runs), "{ids}");
    drop(toolbox);
    let end = Instant::now() + Duration::from_secs(5);
    while ids.split(' ').any(runs) {
        assert!(Instant::now() < end, "{ids} still run");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_that_cannot_be_reached_over_http_says_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let toolbox = Toolbox::new().unwrap();
    let transport = Transport::Http { url, headers: Default::default() };
    toolbox.switch_on("far", &ServerConfig { transport });
    toolbox.wait(&|| false);
    let ServerState::Failed(error) = state(&toolbox) else { panic!("{:?}", state(&toolbox)) };
    assert!(matches!(error, Error::Unreachable(_)), "{error}");
}

/// Runs the reference server for files, which npm downloads once.
#[test]
fn a_server_from_a_package_registry_lists_and_reads_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note.txt"), "The fox is red.").unwrap();
    let entry = json!({ "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", folder.path()] });
    let file = McpFile::parse(&json!({ "mcpServers": { "test": entry } }).to_string()).unwrap();
    let toolbox = Toolbox::new().unwrap();
    toolbox.switch_on("test", file.servers()[0].1.as_ref().unwrap());
    toolbox.wait(&|| false);
    assert_eq!(state(&toolbox), ServerState::Ready, "{:?}", toolbox.servers());
    let path = folder.path().join("note.txt");
    let outcome = call(&toolbox, "read_text_file", json!({ "path": path })).unwrap();
    assert_eq!(outcome, Outcome { text: "The fox is red.".to_owned(), is_error: false });
    let outside = call(&toolbox, "read_text_file", json!({ "path": "/etc/hostname" })).unwrap();
    assert!(outside.is_error && outside.text.contains("denied"), "{}", outside.text);
}
