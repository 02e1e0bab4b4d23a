//! Tools: servers that a person switches on, calls with their approval, results and the next part.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use foretoken_app::cancel::Cancel;
use foretoken_app::conversations::reply::Events;
use foretoken_app::engine::replier::{Chat, Ending, Event, Replier};
use foretoken_app::error::Result;
use foretoken_app::ipc::{
    Attached, AttachmentKind, Builtin, Call, CallDecision, CallState, ErrorCode, Export, ExportForm,
    FilledArgument, Message, PromptSize, Reply, ReplyCheck, ReplyEvent, SearchService, Sent, ServerContents,
    Settings, ToolMode, ToolRule, ToolServerState,
};
use foretoken_engine::trace::Finish;
use foretoken_model::{Role, Tool};
use foretoken_tests::mcp_server;
use serde_json::json;

use super::serving::serving;
use super::{Fixture, listen};

/// Writer that calls the tool "test__WORD" or "WORD" for a question whose last line is "WORD
/// ARGUMENTS" if it has the tool, and repeats the results of calls.
struct Caller;

impl Replier for Caller {
    fn reply(
        &mut self,
        chat: &Chat,
        _: &Settings,
        _: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending> {
        on(Event::Started { target: "Caller", draft: None });
        let last = chat.messages.last().unwrap();
        let asked = last.content.lines().last().unwrap_or_default();
        let (word, arguments) = asked.split_once(' ').unwrap_or((asked, "{}"));
        let mut tools = chat.tools.iter().flat_map(|asked| &asked.tools);
        let tool = tools.find(|tool| tool.name == word || tool.name == format!("test__{word}"));
        match (last.role, tool) {
            (Role::User, Some(Tool { name, .. })) => {
                on(Event::Text { delta: "Ä first: <call>" });
                on(Event::CallBegan { name, start: "Ä first:".len() });
                on(Event::CallArguments { json: arguments });
                on(Event::CallEnded { tokens: None });
            }
            (Role::Tool, _) => {
                let results: Vec<_> = chat.messages.iter().filter(|turn| turn.role == Role::Tool).collect();
                let asked = &chat.messages[chat.messages.len() - 2];
                assert_eq!((asked.content.as_str(), asked.calls.len()), ("Ä first:", 1));
                assert_eq!(asked.calls[0].id, *last.call_id.as_ref().unwrap());
                on(Event::Text { delta: &format!("{} results: {}", results.len(), last.content) });
            }
            _ => on(Event::Text { delta: "no tools" }),
        }
        Ok(Ending { finish: Finish::Stop, summary: None })
    }

    fn measure(&mut self, _: &Chat, _: &Settings) -> Result<PromptSize> {
        Ok(PromptSize { tokens: 1, context: 4096 })
    }
}

/// Starts an application with the server for tests in `mcp.json`.
fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let servers = json!({ "mcpServers": { "test": { "command": mcp_server() } } });
    std::fs::write(folder.path().join("mcp.json"), servers.to_string()).unwrap();
    Fixture::with(folder, Caller)
}

fn switched_on() -> Fixture {
    let fixture = fixture();
    let status = fixture.app.switch_tool_server("test", true).unwrap();
    assert_eq!(status.servers[0].line, mcp_server().display().to_string());
    let settings = Settings { tools: ToolMode::Auto, ..fixture.app.settings() };
    fixture.app.save_settings(settings).unwrap();
    fixture
}

/// Decides each call that waits by `decide`, which gets the number of questions so far.
fn deciding(
    fixture: &Fixture,
    decide: impl Fn(usize, &Call) -> Option<CallDecision> + Send + Sync + 'static,
) -> (Events, Arc<Mutex<Vec<ReplyEvent>>>) {
    let (events, received) = listen();
    let app = Arc::clone(&fixture.app);
    let asked = Mutex::new(0);
    let act = move |event: ReplyEvent| {
        let calls = match &event {
            ReplyEvent::PartEnded { reply } => reply.calls.clone(),
            ReplyEvent::Call { call } => vec![call.clone()],
            _ => Vec::new(),
        };
        events(event);
        for call in calls {
            let decision = decide(*asked.lock().unwrap(), &call);
            if let (CallState::Asked, Some(decision)) = (call.state, decision) {
                *asked.lock().unwrap() += 1;
                app.decide_call(call.id, decision);
            }
        }
    };
    (Arc::new(act), received)
}

fn send(
    fixture: &Fixture,
    conversation: Option<i64>,
    text: &str,
    decision: Option<CallDecision>,
) -> (Reply, Vec<ReplyEvent>) {
    let (events, received) = deciding(fixture, move |_, _| decision);
    let app = Arc::clone(&fixture.app);
    let text = text.to_owned();
    // A call that nobody decides about is stopped at last.
    let reply = std::thread::spawn(move || app.send(conversation, text.as_str(), events));
    let end = Instant::now() + Duration::from_secs(30);
    while !reply.is_finished() {
        if decision.is_none() && waits(&received.lock().unwrap()) {
            fixture.app.stop();
        }
        assert!(Instant::now() < end, "the reply does not end: {:?}", received.lock().unwrap());
        std::thread::sleep(Duration::from_millis(10));
    }
    let reply = reply.join().unwrap().unwrap();
    (reply, received.lock().unwrap().drain(..).collect())
}

/// Returns whether a part with calls has ended.
fn waits(events: &[ReplyEvent]) -> bool {
    events.iter().any(|event| matches!(event, ReplyEvent::PartEnded { .. }))
}

fn messages(fixture: &Fixture, reply: &Reply) -> Vec<Message> {
    fixture.app.messages(reply.conversation.id).unwrap()
}

const ADD: &str = "add {\"a\": 2, \"b\": 40}";

#[test]
fn a_call_waits_runs_once_it_is_allowed_and_the_reply_goes_on_with_its_result() {
    let fixture = switched_on();
    let (reply, events) = send(&fixture, None, ADD, Some(CallDecision::Once));
    assert_eq!(reply.reply.text, "1 results: 42");
    let stored = messages(&fixture, &reply);
    assert_eq!(stored.len(), 3);
    let call = &stored[1].calls[0];
    assert_eq!(
        (call.server.as_deref(), call.tool.as_str(), call.state),
        (Some("test"), "add", CallState::Done)
    );
    assert_eq!((call.arguments.as_str(), call.result.as_str()), ("{\"a\":2,\"b\":40}", "42"));
    assert!(call.took_ms.is_some());
    // The page counts in UTF-16.
    assert_eq!((stored[1].text.as_str(), stored[1].calls_start), ("Ä first: <call>", Some(8)));
    let began = ReplyEvent::CallBegan { server: Some("test".to_owned()), tool: "add".to_owned(), start: 8 };
    assert!(events.contains(&began), "{events:?}");
    let states: Vec<CallState> = events
        .iter()
        .filter_map(|event| if let ReplyEvent::Call { call } = event { Some(call.state) } else { None })
        .collect();
    assert_eq!(states, [CallState::Running, CallState::Done]);
    // Both are part of what the model gets later; another part is a sibling of the last.
    let again = fixture.app.regenerate(reply.reply.id, listen().0).unwrap();
    assert_eq!((again.reply.text.as_str(), again.reply.parent), ("1 results: 42", reply.reply.parent));
    let (more, _) = send(&fixture, Some(reply.conversation.id), ADD, Some(CallDecision::Once));
    assert_eq!(more.reply.text, "2 results: 42");
}

#[test]
fn a_refused_call_does_not_run_and_a_tool_that_never_may_is_not_offered() {
    let fixture = switched_on();
    let (reply, _) = send(&fixture, None, ADD, Some(CallDecision::Refuse));
    assert_eq!(reply.reply.text, "1 results: The person did not allow this call.");
    assert_eq!(messages(&fixture, &reply)[1].calls[0].state, CallState::Refused);
    let (reply, _) = send(&fixture, None, ADD, Some(CallDecision::Never));
    assert_eq!(messages(&fixture, &reply)[1].calls[0].state, CallState::Refused);
    assert_eq!(send(&fixture, None, ADD, None).0.reply.text, "no tools");
}

#[test]
fn a_decision_holds_in_its_conversation_or_in_all_until_the_tool_changes() {
    let fixture = switched_on();
    let (reply, _) = send(&fixture, None, ADD, Some(CallDecision::Conversation));
    let here = Some(reply.conversation.id);
    let runs = |conversation, text: &str| {
        let (reply, _) = send(&fixture, conversation, text, None);
        messages(&fixture, &reply)
            .into_iter()
            .rev()
            .find_map(|message| message.calls.first().map(|call| call.state))
    };
    assert_eq!(runs(here, ADD), Some(CallState::Done), "not asked again");
    assert_eq!(runs(None, ADD), Some(CallState::Stopped), "asked in another conversation");
    send(&fixture, None, ADD, Some(CallDecision::Always));
    assert_eq!(runs(None, ADD), Some(CallState::Done));
    let before = fixture.app.tools_status().unwrap();
    let rule = |name: &str| {
        let tools = fixture.app.tools_status().unwrap().tools;
        tools.into_iter().find(|tool| tool.name == name).unwrap()
    };
    assert_eq!((rule("add").rule, rule("echo").rule), (ToolRule::Always, ToolRule::Ask));
    // The server changes its descriptions.
    send(&fixture, None, "change", Some(CallDecision::Once));
    let end = Instant::now() + Duration::from_secs(10);
    while fixture.app.tools_status().unwrap().tools == before.tools {
        assert!(Instant::now() < end, "the change was not noticed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(rule("add").rule, ToolRule::Ask);
    assert_eq!(runs(here, ADD), Some(CallState::Stopped), "a changed tool asks again");
    let echo = rule("echo");
    fixture.app.set_tool_rule(echo.server.as_deref(), &echo.digest, ToolRule::Never).unwrap();
    assert_eq!(runs(None, "echo {\"text\": \"a\"}"), None);
}

#[test]
fn stop_cancels_a_running_call_and_the_reply_can_be_continued() {
    let fixture = switched_on();
    let (events, received) = deciding(&fixture, |_, _| Some(CallDecision::Once));
    let app = Arc::clone(&fixture.app);
    let reply = std::thread::spawn(move || app.send(None, "hang", events).unwrap());
    let runs =
        |event: &ReplyEvent| matches!(event, ReplyEvent::Call { call } if call.state == CallState::Running);
    while !received.lock().unwrap().iter().any(runs) {
        std::thread::sleep(Duration::from_millis(5));
    }
    fixture.app.stop();
    let begun = Instant::now();
    let reply = reply.join().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(reply.reply.calls[0].state, CallState::Stopped);
    let more = fixture.app.continue_reply(reply.reply.id, listen().0).unwrap();
    assert_eq!(more.reply.text, "1 results: The person stopped this call.");
    assert_eq!(more.reply.parent, Some(reply.reply.id));
}

#[test]
fn a_call_that_fails_tells_the_model_why() {
    let fixture = switched_on();
    let (reply, _) = send(&fixture, None, "die", Some(CallDecision::Once));
    assert!(reply.reply.text.ends_with("Its last line: out of cheese"), "{}", reply.reply.text);
    let call = &messages(&fixture, &reply)[1].calls[0];
    assert_eq!((call.state, call.is_error), (CallState::Failed, true));
    let servers = fixture.app.tools_status().unwrap().servers;
    assert_eq!(servers[0].state, ToolServerState::Failed);
    assert_eq!(servers[0].log, ["out of cheese"]);
    // The next message starts the server again.
    assert_eq!(send(&fixture, None, ADD, Some(CallDecision::Once)).0.reply.text, "1 results: 42");
}

#[test]
fn no_server_starts_before_it_is_switched_on_or_after_its_entry_has_changed() {
    let fixture = fixture();
    fixture.app.save_settings(Settings { tools: ToolMode::Auto, ..fixture.app.settings() }).unwrap();
    let state = || fixture.app.tools_status().unwrap().servers[0].state;
    assert_eq!(send(&fixture, None, ADD, None).0.reply.text, "no tools");
    assert_eq!(state(), ToolServerState::Off);
    fixture.app.switch_tool_server("test", true).unwrap();
    let file = fixture.folder.path().join("mcp.json");
    let changed = json!({ "mcpServers": { "test": { "command": mcp_server(), "args": ["more"] } } });
    std::fs::write(&file, changed.to_string()).unwrap();
    assert_eq!(state(), ToolServerState::Changed);
    assert_eq!(send(&fixture, None, ADD, None).0.reply.text, "no tools");
    fixture.app.switch_tool_server("test", true).unwrap();
    assert_eq!(send(&fixture, None, ADD, Some(CallDecision::Once)).0.reply.text, "1 results: 42");
    fixture.app.switch_tool_server("test", false).unwrap();
    assert_eq!(send(&fixture, None, ADD, None).0.reply.text, "no tools");
    // Tools are off by default.
    fixture.app.switch_tool_server("test", true).unwrap();
    fixture.app.save_settings(Settings { tools: ToolMode::Off, ..fixture.app.settings() }).unwrap();
    assert_eq!(send(&fixture, None, ADD, None).0.reply.text, "no tools");
    assert_eq!(fixture.app.switch_tool_server("none", true).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn servers_are_added_and_removed_and_a_text_that_is_none_is_refused() {
    let fixture = fixture();
    let added = fixture.app.add_tool_servers(r#"{"servers": {"far": {"url": "http://a/mcp"}, "test": {}}}"#);
    let names = |servers: &[foretoken_app::ipc::ToolServer]| -> Vec<String> {
        servers.iter().map(|server| server.name.clone()).collect()
    };
    let servers = added.unwrap().servers;
    assert_eq!(names(&servers), ["test", "far"]);
    assert_eq!((servers[1].line.as_str(), servers[1].state), ("http://a/mcp", ToolServerState::Off));
    assert_eq!(servers[0].line, mcp_server().display().to_string(), "an entry that is there stays");
    assert_eq!(fixture.app.add_tool_servers("[]").unwrap_err().code, ErrorCode::BadSetting);
    assert_eq!(names(&fixture.app.remove_tool_server("test").unwrap().servers), ["far"]);
    std::fs::write(fixture.folder.path().join("mcp.json"), "{").unwrap();
    let status = fixture.app.tools_status().unwrap();
    assert!(status.servers.is_empty() && status.problem.is_some());
}

#[test]
fn calls_are_exported_and_imported_and_an_imported_one_that_waits_is_lost() {
    let fixture = switched_on();
    let (reply, _) = send(&fixture, None, ADD, Some(CallDecision::Once));
    let export = Export {
        conversation: Some(reply.conversation.id),
        form: ExportForm::Json,
        traces: true,
        you: "You".into(),
    };
    let path = fixture.app.export_conversations(&export).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"state\":\"done\"", "\"state\":\"running\"")).unwrap();
    let other = Fixture::with(tempfile::tempdir().unwrap(), Caller);
    let imported = other.app.import_conversations(&path, &mut |_| ()).unwrap();
    let calls = other.app.messages(imported.last.unwrap()).unwrap()[1].calls.clone();
    let original = messages(&fixture, &reply)[1].calls.clone();
    assert_eq!((calls[0].state, &calls[0].result), (CallState::Lost, &original[0].result));
    assert_eq!((&calls[0].tool, &calls[0].arguments), (&original[0].tool, &original[0].arguments));
}

/// A server that answers every request with this JSON.
fn answering(json: serde_json::Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut call in listener.incoming().flatten() {
            let _ = call.read(&mut [0; 8192]);
            let body = json.to_string();
            let length = body.len();
            let _ = write!(
                call,
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    address
}

#[test]
fn built_in_tools_search_other_conversations_and_the_web_and_read_attachments() {
    let fixture = Fixture::with(tempfile::tempdir().unwrap(), Caller);
    fixture.set(|settings| {
        settings.tools = ToolMode::Auto;
        settings.builtin_tools = Builtin::ALL.to_vec();
    });
    let once = |sent: Sent| {
        let (events, _) = deciding(&fixture, |_, _| Some(CallDecision::Once));
        fixture.app.send(None, sent, events).unwrap().reply.text
    };
    assert_eq!(once("Where do foxes light lanterns?".into()), "no tools");
    let found = once("search_conversations {\"words\": \"lanterns fox\"}".into());
    assert!(found.contains("In \"Where do foxes light lanterns?\", 2"), "{found}");
    assert!(found.ends_with("the person wrote: Where do foxes light lanterns?"), "{found}");
    let none = once("search_conversations {\"words\": \"search_conversations\"}".into());
    assert!(none.contains("In \"search_conversations"), "an earlier one: {none}");
    let attached =
        vec![Attached { name: "a.txt".into(), kind: AttachmentKind::Text, text: "x\nfox\n".into() }];
    let text = "read_attachment {\"file\": \"a.txt\", \"words\": \"fox\"}".to_owned();
    let read = once(Sent { text, attached, ..Sent::default() });
    assert!(read.ends_with("by number:\n2: fox\n"), "{read}");
    let search = "web_search {\"query\": \"fox\"}";
    assert_eq!(once(search.into()), "no tools", "no service is set");
    fixture.set(|settings| {
        settings.search_service = Some(SearchService::Searxng);
        settings.searxng_address = answering(
            json!({ "results": [{ "title": "Fox", "url": "https://a.example", "content": "Red." }] }),
        );
    });
    assert!(once(search.into()).ends_with("1. Fox\nhttps://a.example\nRed."));
    // A service that wants a key is offered once it has one.
    fixture.set(|settings| settings.search_service = Some(SearchService::Brave));
    let has = |name: &str| {
        let tools = fixture.app.tools_status().unwrap().tools;
        tools.iter().any(|tool| tool.name == name)
    };
    assert!(!has("web_search") && !fixture.app.tools_status().unwrap().has_search_key);
    assert!(fixture.app.set_search_key(SearchService::Brave, Some(" secret ")).unwrap().has_search_key);
    assert!(has("web_search"));
    assert!(!fixture.app.set_search_key(SearchService::Brave, None).unwrap().has_search_key);
}

#[test]
fn a_file_that_is_too_long_for_the_context_can_be_asked_about_with_the_tool() {
    let fixture = Fixture::new();
    let text: String = (0..20_000).map(|number| format!("Line {number} about foxes.\n")).collect();
    let sent = || Sent {
        text: "What is it about?".to_owned(),
        attached: vec![Attached { name: "long.txt".into(), kind: AttachmentKind::Text, text: text.clone() }],
        ..Sent::default()
    };
    fixture.set(|settings| {
        settings.tools = ToolMode::Auto;
        settings.builtin_tools = vec![Builtin::ReadAttachment];
        settings.max_tokens = 8;
    });
    let (events, _) = deciding(&fixture, |_, _| Some(CallDecision::Refuse));
    let reply = fixture.app.send(None, sent(), events).unwrap();
    let used = fixture.app.context_use(Some(reply.conversation.id)).unwrap();
    assert!(used.attachments.tokens < 1_000, "{used:?}");
    let first = &messages(&fixture, &reply)[1];
    let check = fixture.app.check_reply(first.id, Box::new(|_| ())).unwrap();
    assert!(matches!(check, ReplyCheck::Text { difference: None, .. }), "{check:?}");
}

#[test]
fn a_real_model_calls_a_builtin_tool_first_and_answers_with_its_result() {
    let fixture = Fixture::new();
    fixture.set(|settings| {
        settings.tools = ToolMode::First;
        settings.builtin_tools = vec![Builtin::Now];
    });
    let (events, _) = deciding(&fixture, |_, _| Some(CallDecision::Always));
    let reply = fixture.app.send(None, "What day is it?", events).unwrap();
    let stored = messages(&fixture, &reply);
    assert_eq!(stored.len(), 3, "{stored:?}");
    let call = &stored[1].calls[0];
    assert_eq!((call.tool.as_str(), call.server.clone(), call.state), ("now", None, CallState::Done));
    assert!(call.result.contains("UTC"), "{}", call.result);
    let summary = stored[1].summary.as_ref().unwrap();
    let tokens = call.tokens.unwrap();
    assert!(tokens.forced > 0, "what the grammar forces is drafted: {tokens:?}");
    assert!(tokens.written <= summary.tokens && tokens.drafted + tokens.forced <= summary.accepted);
    // Each part is checked with the tools that it was offered.
    fixture.set(|settings| settings.builtin_tools = Vec::new());
    for part in [1, 2] {
        let check = fixture.app.check_reply(stored[part].id, Box::new(|_| ())).unwrap();
        assert!(matches!(check, ReplyCheck::Text { difference: None, .. }), "{check:?}");
    }
}

#[test]
fn a_model_on_a_server_calls_tools_of_this_computer() {
    let (_far, at) = serving();
    let fixture = Fixture::new();
    fixture.app.add_server("far", &at, None).unwrap();
    fixture.app.test_server("far").unwrap();
    let settings = Settings {
        target: "remote:far/starter".to_owned(),
        max_tokens: 40,
        tools: ToolMode::First,
        builtin_tools: vec![Builtin::Now],
        ..fixture.app.settings()
    };
    fixture.app.save_settings(settings).unwrap();
    fixture.wait_for(|status| status.device.name == "far");
    let (events, received) = deciding(&fixture, |_, _| Some(CallDecision::Always));
    let reply = fixture.app.send(None, "What day is it?", events).unwrap();
    let stored = messages(&fixture, &reply);
    assert_eq!(stored.len(), 3, "{stored:?}");
    let call = &stored[1].calls[0];
    assert_eq!((call.tool.as_str(), call.state, call.tokens), ("now", CallState::Done, None));
    assert!(call.result.contains("UTC"), "{}", call.result);
    assert_eq!(stored[1].target.as_deref(), Some("starter · far"));
    assert!(stored[1].summary.is_some(), "the server's counts include the call");
    let began = |event: &ReplyEvent| matches!(event, ReplyEvent::CallBegan { tool, .. } if tool == "now");
    assert!(received.lock().unwrap().iter().any(began));
}

fn filled(name: &str, value: &str) -> FilledArgument {
    FilledArgument { name: name.to_owned(), value: value.to_owned() }
}

/// Starts the servers and waits until their lists are there.
fn contents(fixture: &Fixture) -> ServerContents {
    let mut contents = fixture.app.server_contents(true).unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while contents.is_starting {
        assert!(Instant::now() < end, "a server does not start");
        std::thread::sleep(Duration::from_millis(20));
        contents = fixture.app.server_contents(false).unwrap();
    }
    contents
}

#[test]
fn prompts_and_resources_of_servers_that_are_switched_on_are_picked() {
    let fixture = fixture();
    let app = &fixture.app;
    assert_eq!(contents(&fixture), ServerContents::default(), "no server is switched on");
    let off = app.fetch_prompt("test", "mixed", Vec::new()).unwrap_err();
    assert!(off.message.contains("is not running"), "{}", off.message);
    app.switch_tool_server("test", true).unwrap();
    let listed = contents(&fixture);
    assert_eq!(
        (listed.prompts[0].title.as_str(), listed.resources[0].name.as_str()),
        ("Greet someone", "fox.txt")
    );
    let greeting = |name: &str| app.fetch_prompt("test", "greet", vec![filled("name", name)]);
    assert_eq!(greeting("fox").unwrap(), "Greet fox.");
    let missing = greeting("").unwrap_err();
    assert_eq!(
        (missing.code, missing.message.as_str()),
        (ErrorCode::BadAttachment, "A value for name is missing.")
    );
    let fox = app.fetch_resource("test", "note://fox", Vec::new()).unwrap();
    assert_eq!((fox.name.as_str(), fox.kind), ("fox.txt", AttachmentKind::Text));
    let values = vec![filled("animal", "hen"), filled("path", "a.md")];
    let note = app.fetch_resource("test", "note://{animal}/{+path}", values).unwrap();
    assert_eq!((note.name.as_str(), note.text.as_str()), ("a.md", "note://hen/a.md"));
    let picture = app.fetch_resource("test", "note://picture", Vec::new()).unwrap_err();
    assert!(picture.message.contains("cannot be used as text"), "{}", picture.message);
    // What was picked is sent like a file.
    let sent = Sent { text: "What is it?".to_owned(), attached: vec![fox], ..Sent::default() };
    let reply = app.send(None, sent, listen().0).unwrap();
    assert_eq!(messages(&fixture, &reply)[0].attachments[0].name, "fox.txt");
    app.switch_tool_server("test", false).unwrap();
    assert_eq!(contents(&fixture), ServerContents::default());
}

#[test]
fn fetching_can_be_stopped_and_a_later_fetch_stops_an_earlier_one() {
    let fixture = switched_on();
    contents(&fixture);
    let hanging = || {
        let app = Arc::clone(&fixture.app);
        std::thread::spawn(move || app.fetch_resource("test", "note://hang", Vec::new()))
    };
    let stopped = |fetch: std::thread::JoinHandle<Result<Attached>>, stop: &dyn Fn()| {
        let end = Instant::now() + Duration::from_secs(30);
        while !fetch.is_finished() {
            assert!(Instant::now() < end, "fetching does not stop");
            std::thread::sleep(Duration::from_millis(20));
            stop();
        }
        assert_eq!(fetch.join().unwrap().unwrap_err().code, ErrorCode::Cancelled);
    };
    stopped(hanging(), &|| fixture.app.stop_fetching());
    stopped(hanging(), &|| drop(fixture.app.fetch_prompt("test", "mixed", Vec::new()).unwrap()));
}

#[test]
fn a_server_that_fails_says_why_beside_the_contents_of_others() {
    let fixture = fixture();
    let servers = json!({ "mcpServers": { "test": { "command": mcp_server() },
        "bad": { "command": mcp_server(), "args": ["ended"] } } });
    std::fs::write(fixture.folder.path().join("mcp.json"), servers.to_string()).unwrap();
    for name in ["test", "bad"] {
        fixture.app.switch_tool_server(name, true).unwrap();
    }
    let listed = contents(&fixture);
    assert!(!listed.prompts.is_empty());
    assert!(listed.problems[0].starts_with("bad: The server ended."), "{:?}", listed.problems);
}
