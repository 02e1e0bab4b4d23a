//! Targets on servers elsewhere: our own, which another application runs, and ones that a test writes itself.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use foretoken_app::ipc::{
    ArenaRequest, EnginePhase, ErrorCode, ModelKind, RemoteServer, ReplyEvent, Settings, Setup, Speculating,
};
use foretoken_engine::sampling::Mode;
use foretoken_engine::sampling::Sampling;
use foretoken_engine::speculation::Speculation;
use foretoken_engine::trace::Finish;

use super::serving::serving;
use super::{Fixture, listen};

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn piece(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{{delta}}},\"finish_reason\":null}}]}}\n\n")
}

/// Where a server is that answers every request so; with `holds` it then keeps the connection open.
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

/// An application whose target is the model "m" of a server there.
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
fn a_reply_from_elsewhere_is_the_one_that_the_server_writes_with_its_numbers_and_no_rounds() {
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
    let status = fixture.wait_for(|status| status.device.starts_with("far"));
    assert_eq!((status.phase, status.device), (EnginePhase::Ready, format!("far, {at}")));
    assert_eq!((status.why.state, status.drafts.len()), (Speculating::Off, 0));
    assert!(status.why.text.contains("drafts are made by the server"), "{}", status.why.text);
    let (reply, events) = fixture.send(None, "Tell me a story about a fox.");
    assert_eq!(reply.reply.text, alone.text);
    assert_eq!((reply.reply.target.as_deref(), reply.reply.draft.as_deref()), (Some("starter · far"), None));
    assert!(
        events.iter().filter(|event| matches!(event, ReplyEvent::Text { .. })).count() > 3,
        "it is streamed"
    );
    let (here, there) = (reply.reply.summary.unwrap(), alone.summary.unwrap());
    assert_eq!((here.prompt_tokens, here.tokens, here.rounds), (there.prompt_tokens, there.tokens, 0));
    // Not the same drafts: the second reply was drafted with what the first one taught.
    assert!(here.drafted >= here.judged && here.judged >= here.accepted && here.accepted > 0, "{here:?}");
    assert_eq!(here.acceptance_rate, Some(f64::from(here.accepted) / f64::from(here.judged)));
    assert!(here.tokens_per_second.unwrap() > 0.0 && here.ttft_ms > 0.0 && here.elapsed_ms > here.ttft_ms);
    assert!(fixture.app.trace(reply.reply.id).unwrap().is_empty());

    // The conversation goes on, also where a reply was cut by its length.
    assert_eq!(here.finish, Finish::Length);
    let more = fixture.app.continue_reply(reply.reply.id, listen().0).unwrap();
    let whole = far.app.continue_reply(alone.id, listen().0).unwrap();
    assert_eq!(more.reply.text, whole.reply.text);
}

#[test]
fn choosing_a_target_elsewhere_loads_and_unloads_nothing() {
    let fixture = asking(&answering(String::new(), false));
    let status = fixture.status();
    assert!(status.memory.target_bytes > 0, "what was loaded stays");
    let settings = Settings { target: "starter".to_owned(), ..fixture.app.settings() };
    fixture.app.save_settings(settings).unwrap();
    let back = fixture.wait_for(|status| {
        assert_ne!(status.phase, EnginePhase::Loading, "nothing is loaded again");
        status.target.as_ref().is_some_and(|target| target.id == "starter")
    });
    assert_eq!((back.phase, back.why.state), (EnginePhase::Ready, Speculating::On));
    assert!(!back.drafts.is_empty() && back.device.starts_with("CPU"), "{}", back.device);

    // Chosen at the start, nothing is loaded at all.
    choose(&fixture, "remote:far/m");
    let fixture = fixture.restart();
    let status = fixture.status();
    assert_eq!((status.memory.target_bytes, status.target.unwrap().id.as_str()), (0, "remote:far/m"));
}

#[test]
fn what_only_models_here_can_do_is_refused_in_a_sentence_while_the_target_is_elsewhere() {
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
fn a_server_that_is_not_there_is_told_of_and_nothing_is_stored() {
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
fn of_a_reply_that_is_cut_or_stopped_the_text_is_kept_and_thinking_is_marked_as_it_is_here() {
    let thought = piece("\"reasoning_content\":\"Hm\"")
        + &piece("\"reasoning_content\":\".\"")
        + &piece("\"content\":\"A fox\"");
    let fixture = asking(&answering(format!("{STREAM}{thought}"), false));
    let (reply, _) = fixture.send(None, "Hello");
    assert_eq!(reply.reply.text, "<think>Hm.</think>\n\nA fox");
    assert_eq!(reply.reply.finish, None);
    assert!(reply.reply.problem.unwrap().starts_with("The reply was cut"));

    let fixture = asking(&answering(format!("{STREAM}{thought}"), true));
    let app = fixture.app.clone();
    let (events, heard) = listen();
    let stopping = thread::spawn(move || {
        let text = |event: &ReplyEvent| matches!(event, ReplyEvent::Text { delta } if delta == "A fox");
        while !heard.lock().unwrap().iter().any(text) {
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
fn a_server_that_is_removed_leaves_the_default_model_as_the_target() {
    let fixture = asking("localhost:1");
    let settings = fixture.app.remove_server("far").unwrap();
    assert!(settings.remote_servers.is_empty() && !settings.target.starts_with("remote:"));
    fixture.wait_for(|status| status.target.as_ref().is_some_and(|target| target.kind != ModelKind::Remote));
    // One that another program took off the list is said to be gone.
    let settings = Settings { target: "remote:gone/m".to_owned(), ..fixture.app.settings() };
    fixture.app.save_settings(settings).unwrap();
    let status =
        fixture.wait_for(|status| status.message.as_ref().is_some_and(|message| message.contains("gone")));
    assert_eq!(status.phase, EnginePhase::Ready);
    assert!(status.message.unwrap().starts_with("The server 'gone' is not there any more"));
    assert_ne!(status.target.unwrap().kind, ModelKind::Remote);
}

#[test]
fn names_and_addresses_that_cannot_be_are_refused() {
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

/// Where a server is that answers each request as `answer` says, and what it is asked.
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

/// Without models.
fn hearing() -> (String, mpsc::Receiver<String>) {
    listening(|_| {
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 11\r\n\r\n{\"data\":[]}".to_owned()
    })
}

#[test]
fn a_key_goes_to_the_address_that_it_was_given_for_and_to_no_other_and_is_in_no_settings() {
    let fixture = Fixture::new();
    let ((one, at_one), (two, at_two)) = (hearing(), hearing());
    let asked = |asked: &mpsc::Receiver<String>| {
        fixture.app.test_server("far").unwrap();
        let request = asked.recv_timeout(Duration::from_secs(10)).unwrap().to_lowercase();
        request.contains("authorization: bearer secret-key")
    };
    let settings = fixture.app.add_server("far", &one, Some(" secret-key ")).unwrap();
    assert!(!serde_json::to_string(&settings).unwrap().contains("secret-key"));
    assert!(asked(&at_one));
    fixture.app.add_server("far", &two, None).unwrap();
    assert!(!asked(&at_two), "another address has no key");
    fixture.app.add_server("far", &one, None).unwrap();
    assert!(!asked(&at_one), "the key of the address that was left is forgotten");
    fixture.app.add_server("far", &one, Some("secret-key")).unwrap();
    fixture.app.add_server("far", &one, None).unwrap();
    assert!(asked(&at_one), "its own is kept");
    fixture.app.add_server("other", &one, None).unwrap();
    fixture.app.remove_server("other").unwrap();
    assert!(asked(&at_one), "another server had the same address");
    fixture.app.remove_server("far").unwrap();
    fixture.app.add_server("far", &one, None).unwrap();
    assert!(!asked(&at_one), "the key went with the server");
}

#[test]
fn a_server_that_gets_another_key_keeps_its_models_and_one_that_moves_has_none_yet() {
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

/// One that refuses the field `refused`, and else writes a reply.
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
fn that_a_server_takes_openais_own_fields_alone_is_learned_once_and_so_it_cannot_continue_a_reply() {
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
fn whether_to_think_is_told_to_a_server_where_it_was_chosen() {
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
fn a_title_is_asked_for_without_thinking_and_given_up_at_the_first_thought() {
    // Thinks for ever, whatever it is told.
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
    assert!(asked.try_recv().is_err(), "it is not asked again");
}
