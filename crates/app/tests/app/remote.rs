//! Remote targets: our own server, run by another application, and scripted ones.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use foretoken_app::ipc::{
    ArenaRequest, EnginePhase, ErrorCode, ModelKind, OffReason, RemoteServer, ReplyEvent, Settings, Setup,
    Speculating,
};
use foretoken_engine::speculation::Speculation;
use foretoken_engine::trace::Finish;
use foretoken_model::sampling::Mode;
use foretoken_model::sampling::Sampling;

use super::serving::serving;
use super::{Fixture, detail, listen};

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn piece(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{{delta}}},\"finish_reason\":null}}]}}\n\n")
}

/// Starts a server that sends `answer` to every request and returns its address; with `holds` it
/// keeps the connection open afterwards.
fn answering(answer: String, holds: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), answer.clone());
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 65536]);
                let _ = stream.write_all(answer.as_bytes());
                if holds {
                    let _ = stream.read(&mut [0; 16]);
                }
            });
        }
    });
    at
}

/// Starts an application whose target is the model "m" of the server at `address`.
fn asking(address: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.app.add_server("far", address, None).unwrap();
    choose(&fixture, "remote:far/m");
    fixture
}

fn choose(fixture: &Fixture, target: &str) {
    let settings = Settings { target: target.to_owned(), ..fixture.app.settings() };
    fixture.app.save_settings(settings).unwrap();
    fixture.wait_for(|status| status.target.as_ref().is_some_and(|shown| shown.id == target));
}

#[test]
fn a_remote_reply_equals_the_servers_own_and_has_statistics_but_no_rounds() {
    let (far, at) = serving();
    let alone = far.send(None, "Tell me a story about a fox.").0.reply;
    let fixture = Fixture::new();
    let added = fixture.app.add_server(" far ", &at, None).unwrap();
    let expected =
        RemoteServer { name: "far".to_owned(), address: format!("http://{at}/v1"), models: Vec::new() };
    assert_eq!(added.remote_servers, [expected]);
    let tested = fixture.app.test_server("far").unwrap();
    assert_eq!(tested.remote_servers[0].models[0].id, "starter");
    let listed =
        fixture.wait_for(|status| status.targets.iter().any(|target| target.kind == ModelKind::Remote));
    let entry = listed.targets.last().unwrap();
    assert_eq!((entry.id.as_str(), entry.label.as_str()), ("remote:far/starter", "starter · far"));

    let settings = Settings {
        target: entry.id.clone(),
        sampling: Sampling::greedy(),
        max_tokens: 40,
        ..fixture.app.settings()
    };
    fixture.app.save_settings(settings).unwrap();
    let status = fixture.wait_for(|status| status.device.name == "far");
    assert_eq!((status.phase, status.device.to_string()), (EnginePhase::Ready, format!("far, {at}")));
    assert_eq!((status.why.state, status.drafts.len()), (Speculating::Off, 0));
    assert_eq!(status.why.off, Some(OffReason::Server));
    let (reply, events) = fixture.send(None, "Tell me a story about a fox.");
    assert_eq!(reply.reply.text, alone.text);
    assert_eq!((reply.reply.target.as_deref(), reply.reply.draft.as_deref()), (Some("starter · far"), None));
    assert!(
        events.iter().filter(|event| matches!(event, ReplyEvent::Text { .. })).count() > 3,
        "it is streamed"
    );
    let (here, there) = (reply.reply.summary.unwrap(), alone.summary.unwrap());
    assert_eq!((here.prompt_tokens, here.tokens, here.rounds), (there.prompt_tokens, there.tokens, 0));
    // The drafts differ: the second reply was drafted with statistics of the first.
    assert!(here.drafted >= here.judged && here.judged >= here.accepted && here.accepted > 0, "{here:?}");
    assert_eq!(here.acceptance_rate, Some(f64::from(here.accepted) / f64::from(here.judged)));
    assert!(here.tokens_per_second.unwrap() > 0.0 && here.ttft_ms > 0.0 && here.elapsed_ms > here.ttft_ms);
    assert!(fixture.app.trace(reply.reply.id).unwrap().is_empty());

    // The conversation continues, even after a reply that reached its maximum length.
    assert_eq!(here.finish, Finish::Length);
    let more = fixture.app.continue_reply(reply.reply.id, listen().0).unwrap();
    let whole = far.app.continue_reply(alone.id, listen().0).unwrap();
    assert_eq!(more.reply.text, whole.reply.text);
}

#[test]
fn choosing_a_remote_target_loads_and_unloads_nothing() {
    let fixture = asking(&answering(String::new(), false));
    let status = fixture.status();
    assert!(status.memory.target_bytes > 0, "loaded models stay");
    let settings = Settings { target: "starter".to_owned(), ..fixture.app.settings() };
    fixture.app.save_settings(settings).unwrap();
    let back = fixture.wait_for(|status| {
        assert_ne!(status.phase, EnginePhase::Loading, "nothing is loaded again");
        status.target.as_ref().is_some_and(|target| target.id == "starter")
    });
    assert_eq!((back.phase, back.why.state), (EnginePhase::Ready, Speculating::On));
    assert!(!back.drafts.is_empty() && back.device.name == "CPU", "{}", back.device);

    // With a remote target at the start, nothing is loaded.
    choose(&fixture, "remote:far/m");
    let fixture = fixture.restart();
    let status = fixture.status();
    assert_eq!((status.memory.target_bytes, status.target.unwrap().id.as_str()), (0, "remote:far/m"));
}

#[test]
fn features_of_local_models_are_refused_with_a_message_for_a_remote_target() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (reply, _) = fixture.send(None, "Hello");
    fixture.app.add_server("far", "localhost:1", None).unwrap();
    choose(&fixture, "remote:far/m");
    let request = ArenaRequest {
        prompt: "Hello".to_owned(),
        setups: ["none", "ngram"].map(|draft| Setup {
            draft: draft.to_owned(),
            mode: Mode::Fastest,
            speculation: Speculation::default(),
        }),
        pairs: 1,
        max_tokens: 16,
    };
    let refused = [
        fixture.app.check_reply(reply.reply.id, Box::new(|_| ())).unwrap_err(),
        fixture.app.advise(None, Box::new(|_| ())).unwrap_err(),
        fixture.app.run_arena(request, Box::new(|_| ())).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.code, ErrorCode::NoTarget);
        assert!(error.message.contains("needs a model on this computer"), "{}", error.message);
    }
}

#[test]
fn an_unreachable_server_is_reported_and_nothing_is_stored() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fixture = asking(&nobody.to_string());
    let (code, message) = fixture.refused(None, "Hello");
    assert_eq!(code, ErrorCode::Remote);
    assert_eq!(
        message,
        format!("{nobody} refused the connection. Check the port, and that the server is running.")
    );
    assert!(fixture.app.conversations().unwrap().is_empty());
    assert_eq!(fixture.app.test_server("far").unwrap_err().message, message);
    let long = "{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Too long.\"}}";
    let head =
        format!("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", long.len());
    let fixture = asking(&answering(head + long, false));
    assert_eq!(fixture.refused(None, "Hello").0, ErrorCode::PromptTooLong);
}

#[test]
fn an_interrupted_or_stopped_remote_reply_keeps_its_text_and_marks_its_reasoning() {
    let thought = piece("\"reasoning_content\":\"Hm\"")
        + &piece("\"reasoning_content\":\".\"")
        + &piece("\"content\":\"A fox\"");
    let fixture = asking(&answering(format!("{STREAM}{thought}"), false));
    let (reply, _) = fixture.send(None, "Hello");
    assert_eq!(reply.reply.text, "<think>Hm.</think>\n\nA fox");
    assert_eq!(reply.reply.finish, None);
    assert!(reply.reply.problem.unwrap().starts_with("The reply is incomplete"));

    let fixture = asking(&answering(format!("{STREAM}{thought}"), true));
    let app = fixture.app.clone();
    let (events, received) = listen();
    let stopping = thread::spawn(move || {
        let text = |event: &ReplyEvent| matches!(event, ReplyEvent::Text { delta } if delta == "A fox");
        while !received.lock().unwrap().iter().any(text) {
            thread::sleep(Duration::from_millis(5));
        }
        app.stop();
    });
    let reply = fixture.app.send(None, "Hello", events).unwrap().reply;
    stopping.join().unwrap();
    assert_eq!((reply.finish, reply.text.ends_with("A fox")), (Some(Finish::Cancelled), true));
    assert_eq!((reply.summary, reply.problem), (None, None));
}

#[test]
fn removing_a_server_restores_the_default_target() {
    let fixture = asking("localhost:1");
    let settings = fixture.app.remove_server("far").unwrap();
    assert!(settings.remote_servers.is_empty() && !settings.target.starts_with("remote:"));
    fixture.wait_for(|status| status.target.as_ref().is_some_and(|target| target.kind != ModelKind::Remote));
    // A server removed by another program is reported.
    let settings = Settings { target: "remote:gone/m".to_owned(), ..fixture.app.settings() };
    fixture.app.save_settings(settings).unwrap();
    let status = fixture.wait_for(|status| detail(status).contains("gone"));
    assert_eq!(status.phase, EnginePhase::Ready);
    assert!(detail(&status).starts_with("The server 'gone' was removed"));
    assert_ne!(status.target.unwrap().kind, ModelKind::Remote);
}

#[test]
fn invalid_names_and_addresses_are_refused() {
    let fixture = Fixture::new();
    for (name, address) in [("", "localhost"), ("a/b", "localhost"), ("a", "ftp://x"), ("a", "")] {
        let error = fixture.app.add_server(name, address, None).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadSetting, "{name} {address}: {}", error.message);
    }
    assert_eq!(
        fixture.app.add_server("a", "localhost", Some("two\nlines")).unwrap_err().code,
        ErrorCode::BadSetting
    );
    assert!(fixture.app.settings().remote_servers.is_empty());
}

/// Starts a server that answers each request with `answer`; returns its address and the requests.
fn listening(answer: impl Fn(&str) -> String + Send + 'static) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let (sender, asked) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut bytes) = (stream.unwrap(), [0; 65536]);
            let length = stream.read(&mut bytes).unwrap();
            let request = String::from_utf8_lossy(&bytes[..length]).into_owned();
            let _ = stream.write_all(answer(&request).as_bytes());
            let _ = sender.send(request);
        }
    });
    (at, asked)
}

/// Starts a server without models.
fn without_models() -> (String, mpsc::Receiver<String>) {
    listening(|_| {
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 11\r\n\r\n{\"data\":[]}".to_owned()
    })
}

#[test]
fn a_key_is_sent_only_to_its_own_address_and_is_not_in_the_settings() {
    let fixture = Fixture::new();
    let ((one, at_one), (two, at_two)) = (without_models(), without_models());
    let asked = |asked: &mpsc::Receiver<String>| {
        fixture.app.test_server("far").unwrap();
        let request = asked.recv_timeout(Duration::from_secs(10)).unwrap().to_lowercase();
        request.contains("authorization: bearer secret-key")
    };
    let settings = fixture.app.add_server("far", &one, Some(" secret-key ")).unwrap();
    assert!(!serde_json::to_string(&settings).unwrap().contains("secret-key"));
    assert!(asked(&at_one));
    fixture.app.add_server("far", &two, None).unwrap();
    assert!(!asked(&at_two), "another address gets no key");
    fixture.app.add_server("far", &one, None).unwrap();
    assert!(!asked(&at_one), "the key of an unused address is removed");
    fixture.app.add_server("far", &one, Some("secret-key")).unwrap();
    fixture.app.add_server("far", &one, None).unwrap();
    assert!(asked(&at_one), "its own key is kept");
    fixture.app.add_server("other", &one, None).unwrap();
    fixture.app.remove_server("other").unwrap();
    assert!(asked(&at_one), "another server had the same address");
    fixture.app.remove_server("far").unwrap();
    fixture.app.add_server("far", &one, None).unwrap();
    assert!(!asked(&at_one), "the key was removed with the server");
}

#[test]
fn a_server_with_a_new_key_keeps_its_models_and_one_with_a_new_address_has_none() {
    let (_far, at) = serving();
    let fixture = Fixture::new();
    fixture.app.add_server("far", &at, None).unwrap();
    let models = fixture.app.test_server("far").unwrap().remote_servers.remove(0).models;
    assert_eq!(models.len(), 1);
    let keyed = fixture.app.add_server("far", &at, Some("key")).unwrap();
    assert_eq!(keyed.remote_servers[0].models, models);
    let moved = fixture.app.add_server("far", "localhost:1", None).unwrap();
    assert!(moved.remote_servers[0].models.is_empty());
}

/// Starts a server that refuses the field `refused`, and otherwise sends a reply.
fn refusing(refused: &'static str, reply: String) -> (String, mpsc::Receiver<String>) {
    let problem = format!("{{\"detail\":[{{\"loc\":[\"body\",\"{refused}\"]}}]}}");
    let length = problem.len();
    listening(move |request| match request.contains(refused) {
        true => format!(
            "HTTP/1.1 422 Unprocessable\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{problem}"
        ),
        false => reply.clone(),
    })
}

#[test]
fn a_servers_refusal_of_extra_fields_is_remembered_so_it_cannot_continue_replies() {
    let cut = piece("\"content\":\"A fox\"").replace("null", "\"length\"");
    let (at, asked) = refusing("top_k", format!("{STREAM}{cut}data: [DONE]\n\n"));
    let fixture = asking(&at);
    let reply = fixture.send(None, "Hello").0;
    assert_eq!((reply.reply.text.as_str(), reply.reply.finish), ("A fox", Some(Finish::Length)));
    assert_eq!(asked.try_iter().count(), 2);
    fixture.send(Some(reply.conversation.id), "And?");
    assert_eq!(asked.try_iter().count(), 1, "it is remembered");
    let again = fixture.app.regenerate(reply.reply.id, listen().0).unwrap();
    let error = fixture.app.continue_reply(again.reply.id, listen().0).unwrap_err();
    assert_eq!(
        error.message,
        "This server can't continue an interrupted reply. Regenerate it, or ask the model to go on."
    );
}

#[test]
fn the_reasoning_switch_is_sent_to_a_server_only_if_it_was_chosen() {
    let (at, asked) = refusing("nothing of the kind", format!("{STREAM}data: [DONE]\n\n"));
    let fixture = asking(&at);
    for (thinking, sent) in [
        (None, None),
        (Some(true), Some("\"enable_thinking\":true")),
        (Some(false), Some("\"enable_thinking\":false")),
    ] {
        let settings = Settings { thinking, ..fixture.app.settings() };
        fixture.app.save_settings(settings).unwrap();
        let conversation = fixture.send(None, "Hello").0.conversation.id;
        let request = asked.try_iter().last().unwrap();
        assert_eq!(request.contains("chat_template_kwargs"), sent.is_some(), "{request}");
        assert!(sent.is_none_or(|sent| request.contains(sent)), "{request}");
        fixture.app.delete_conversation(conversation).unwrap();
    }
}

#[test]
fn a_title_is_requested_without_reasoning_and_cancelled_at_the_first_reasoning() {
    // A server that reasons forever.
    let (at, asked) = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let (sender, asked) = mpsc::channel();
        thread::spawn(move || {
            for (turn, stream) in listener.incoming().enumerate() {
                let (mut stream, mut bytes) = (stream.unwrap(), [0; 65536]);
                let length = stream.read(&mut bytes).unwrap();
                let _ = sender.send(String::from_utf8_lossy(&bytes[..length]).into_owned());
                let _ = stream.write_all(STREAM.as_bytes());
                if turn == 0 {
                    let _ =
                        stream.write_all((piece("\"content\":\"A fox\"") + "data: [DONE]\n\n").as_bytes());
                    continue;
                }
                let thought = piece("\"reasoning_content\":\"Hm\"");
                while stream.write_all(thought.as_bytes()).is_ok() {
                    thread::sleep(Duration::from_millis(5));
                }
                let _ = sender.send("left".to_owned());
            }
        });
        (at, asked)
    };
    let fixture = asking(&at);
    let conversation = fixture.send(None, "Hello").0.conversation.id;
    let next = || asked.recv_timeout(Duration::from_secs(10)).unwrap();
    next();
    assert_eq!(fixture.app.write_title(conversation).unwrap(), None);
    assert!(next().contains("\"enable_thinking\":false"));
    assert_eq!(next(), "left", "the connection was closed");
    assert_eq!(fixture.app.write_title(conversation).unwrap(), None);
    assert!(asked.try_recv().is_err(), "no second request");
}
