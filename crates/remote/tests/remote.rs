//! The client against scripted servers: responses of vLLM, SGLang, llama-server and OpenAI, and of
//! servers that hang, fail, redirect, send wrong numbers or use another protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use foretoken_engine::trace::Finish;
use foretoken_model::sampling::Sampling;
use foretoken_model::{ChatMessage, Role};
use foretoken_remote::{
    Address, Client, Drafts, Error, Model, Question, Reply, ReplyEvent, Result, Timeouts, Usage,
};
use serde_json::{Value, json};

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";
const FOX: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A fox\"},\"finish_reason\":null}]}\n\n";

/// A server's behaviour on one connection, after it has read the request.
type Answer = Box<dyn FnOnce(&mut TcpStream) + Send>;

/// A server that handles connections with scripted answers, and passes on the requests.
struct Scripted {
    at: SocketAddr,
    asked: mpsc::Receiver<String>,
}

impl Scripted {
    fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let (sender, asked) = mpsc::channel();
        thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                sender.send(request(&mut stream)).unwrap();
                answer(&mut stream);
            }
        });
        Self { at, asked }
    }

    fn client(&self) -> Client {
        client(&self.at.to_string(), Some("secret"))
    }

    /// Returns the body of the next request.
    fn body(&self) -> Value {
        let request = self.asked.recv_timeout(Duration::from_secs(10)).unwrap();
        serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

/// Reads a complete request.
fn request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase().lines().find_map(|line| {
                line.strip_prefix("content-length: ").map(|length| length.parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return text,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

/// An answer that sends `pieces` and closes the connection.
fn sends(pieces: &[&str]) -> Answer {
    let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
    sends_bytes(pieces)
}

fn sends_bytes(pieces: Vec<Vec<u8>>) -> Answer {
    Box::new(move |stream| {
        for piece in pieces {
            if stream.write_all(&piece).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
    })
}

/// An answer that sends `first` and then nothing until the client leaves; reports that to `left`.
fn hangs(first: &'static str, left: mpsc::Sender<()>) -> Answer {
    Box::new(move |stream| {
        stream.write_all(first.as_bytes()).unwrap();
        let _ = stream.read(&mut [0; 16]);
        let _ = left.send(());
    })
}

/// A response with a Content-Length.
fn whole(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

fn client(address: &str, key: Option<&str>) -> Client {
    client_with(address, key, Timeouts::default())
}

fn client_with(address: &str, key: Option<&str>, patience: Timeouts) -> Client {
    Client::new(Address::read(address).unwrap(), key, patience).unwrap()
}

fn question<'a>(model: &'a str, messages: &'a [ChatMessage], sampling: &'a Sampling) -> Question<'a> {
    Question {
        model,
        messages,
        tools: None,
        sampling,
        max_tokens: None,
        stop: &[],
        thinking: None,
        extras: true,
        picture_url: |picture| format!("data:{}", picture.width()),
    }
}

/// Requests a reply; returns its events as text, reasoning in brackets, and the result.
fn ask_until(client: &Client, messages: &[ChatMessage], stop: &dyn Fn() -> bool) -> (String, Result<Reply>) {
    let sampling = Sampling { top_k: 40, ..Sampling::default() };
    let question = question("fox-7b", messages, &sampling);
    let mut events = String::new();
    let reply = client.reply(&question, stop, &mut |piece| match piece {
        ReplyEvent::Started => events.push('>'),
        ReplyEvent::WithoutExtras => events.push('-'),
        ReplyEvent::Thinking(text) => events += &format!("[{text}]"),
        ReplyEvent::Text(text) => events += text,
        ReplyEvent::Call(name) => events += &format!("({name} "),
        ReplyEvent::Arguments(json) => events += json,
        ReplyEvent::CallEnded => events.push(')'),
    });
    (events, reply)
}

fn patience(moment: Duration) -> Timeouts {
    Timeouts {
        connect: moment,
        answer: moment,
        refuse: moment / 3,
        first: moment,
        between: moment,
        end: moment,
    }
}

fn hello() -> Vec<ChatMessage> {
    vec![ChatMessage::new(Role::User, "What is a fox?")]
}

fn ask(client: &Client) -> (String, Result<Reply>) {
    ask_until(client, &hello(), &|| false)
}

/// Requests a reply from a server that sends `pieces`.
fn answered(pieces: &[&str]) -> (String, Result<Reply>) {
    ask(&Scripted::start(vec![sends(pieces)]).client())
}

#[test]
fn replies_of_each_server_are_read_however_the_network_splits_them() {
    let cases: [(&str, &str, Finish, Usage, Option<Drafts>); 4] = [
        (
            include_str!("recorded/vllm.txt"),
            ">[Foxes are ][canids.]A fox is a small wild canid. 🦊",
            Finish::Stop,
            Usage { prompt: 15, reused: 0, reply: 19 },
            None,
        ),
        (
            include_str!("recorded/sglang.txt"),
            ">A fox is a small wild canid.",
            Finish::Length,
            Usage { prompt: 41, reused: 0, reply: 9 },
            None,
        ),
        (
            include_str!("recorded/llama-server.txt"),
            ">A fox is a small wild canid.",
            Finish::Stop,
            Usage { prompt: 35, reused: 30, reply: 10 },
            Some(Drafts { drafted: 12, judged: 12, accepted: 6 }),
        ),
        (
            include_str!("recorded/openai.txt"),
            ">A fox",
            Finish::Stop,
            Usage { prompt: 9, reused: 0, reply: 3 },
            None,
        ),
    ];
    for (stream, text, finish, usage, drafts) in cases {
        for size in [7, 1000, stream.len()] {
            let pieces = [STREAM.as_bytes()].into_iter().chain(stream.as_bytes().chunks(size));
            let server = Scripted::start(vec![sends_bytes(pieces.map(<[u8]>::to_vec).collect())]);
            let (events, reply) = ask(&server.client());
            let reply = reply.unwrap();
            assert_eq!(events, text);
            assert_eq!((reply.finish, reply.usage, reply.drafts), (finish, Some(usage), drafts), "{text}");
            assert!(reply.ttft_ms.unwrap() <= reply.elapsed_ms);
        }
    }
}

#[test]
fn a_request_has_the_key_and_the_protocols_field_names() {
    let server = Scripted::start(vec![sends(&[STREAM, FOX, "data: [DONE]\n\n"])]);
    let (events, reply) = ask(&server.client());
    assert_eq!((events.as_str(), reply.unwrap().finish), (">A fox", Finish::Stop));
    let request = server.asked.recv().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: Bearer secret\r\n"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["model"], &body["top_k"]), (&"fox-7b".into(), &40.into()));
    assert_eq!(body["messages"][0]["content"], "What is a fox?");
}

/// Chunk with a part of a call.
fn call_part(part: &Value) -> String {
    let chunk = json!({ "choices": [{ "delta": { "tool_calls": [part] }, "finish_reason": null }] });
    format!("data: {chunk}\n\n")
}

#[test]
fn calls_of_tools_are_read_after_the_text_and_a_cut_one_is_not_complete() {
    let begun = call_part(&json!({ "index": 0, "id": "a", "function": { "name": "add", "arguments": "" } }));
    let more = call_part(&json!({ "index": 0, "function": { "arguments": "{\"a\": 1}" } }));
    let next = call_part(&json!({ "index": 1, "id": "b", "function": { "name": "now" } }));
    let ended = |reason: &str| {
        let chunk = json!({ "choices": [{ "delta": {}, "finish_reason": reason }] });
        format!("data: {chunk}\n\ndata: [DONE]\n\n")
    };
    let (events, reply) = answered(&[STREAM, FOX, &begun, &more, &next, &ended("tool_calls")]);
    assert_eq!(events, ">A fox(add {\"a\": 1})(now {})");
    assert_eq!(reply.unwrap().finish, Finish::Stop);
    let half = call_part(&json!({ "index": 0, "function": { "arguments": "{\"a\":" } }));
    let (events, reply) = answered(&[STREAM, &begun, &half, &ended("length")]);
    assert_eq!((events.as_str(), reply.unwrap().finish), (">(add {\"a\":", Finish::Length));
    let (_, reply) = answered(&[STREAM, &begun, &half, &ended("tool_calls")]);
    let error = reply.unwrap_err().to_string();
    assert!(
        error.starts_with("The model called 'add' with arguments that are not a JSON object."),
        "{error}"
    );
}

#[test]
fn a_server_that_refuses_an_extra_field_is_asked_again_without_extras() {
    for (status, refusal) in [
        ("400 Bad Request", r#"{"error":{"message":"Unrecognized request argument supplied: top_k"}}"#),
        (
            "422 Unprocessable Entity",
            r#"{"detail":[{"loc":["body","top_k"],"msg":"Extra inputs are not permitted"}]}"#,
        ),
    ] {
        let refusal = whole(status, "", refusal);
        let server = Scripted::start(vec![sends(&[&refusal]), sends(&[STREAM, FOX, "data: [DONE]\n\n"])]);
        let (events, reply) = ask(&server.client());
        assert_eq!((events.as_str(), reply.unwrap().finish), ("->A fox", Finish::Stop));
        assert!(server.body()["top_k"].is_number());
        assert!(server.body().get("top_k").is_none());
    }
}

#[test]
fn a_model_without_a_template_is_asked_again_without_the_reasoning_switch() {
    let refusal = r#"{"message":"'chat_template_kwargs' is not supported for Mistral tokenizers."}"#;
    let refusal = whole("400 Bad Request", "", refusal);
    let server = Scripted::start(vec![sends(&[&refusal]), sends(&[STREAM, FOX, "data: [DONE]\n\n"])]);
    let (messages, sampling) = (hello(), Sampling::default());
    let question = Question { thinking: Some(false), ..question("fox-7b", &messages, &sampling) };
    let mut events = Vec::new();
    let reply = server.client().reply(&question, &|| false, &mut |piece| events.push(format!("{piece:?}")));
    assert_eq!(reply.unwrap().finish, Finish::Stop);
    assert_eq!(events, ["Started", "Text(\"A fox\")"]);
    assert_eq!(server.body()["chat_template_kwargs"]["enable_thinking"], false);
    let again = server.body();
    assert!(again.get("chat_template_kwargs").is_none() && again["top_k"].is_number(), "{again}");
}

#[test]
fn a_server_that_refuses_again_is_not_asked_a_third_time() {
    let refusal = whole("400 Bad Request", "", r#"{"error":{"message":"top_k"}}"#);
    let server = Scripted::start(vec![sends(&[&refusal]), sends(&[&refusal])]);
    let (events, reply) = ask(&server.client());
    assert!(matches!(reply, Err(Error::Extra { .. })), "{reply:?}");
    assert_eq!(events, "");
}

#[test]
fn continuing_a_reply_is_requested_and_a_refusal_starts_no_new_reply() {
    let refusal =
        whole("400 Bad Request", "", r#"{"error":{"message":"continue_final_message is not permitted"}}"#);
    let server = Scripted::start(vec![sends(&[&refusal])]);
    let going_on = [hello(), vec![ChatMessage::new(Role::Assistant, "A f")]].concat();
    let (events, reply) = ask_until(&server.client(), &going_on, &|| false);
    assert_eq!(events, "");
    let error = reply.unwrap_err();
    assert_eq!(error, Error::CannotContinue);
    assert!(error.to_string().starts_with("This server can't continue an interrupted reply."), "{error}");
    let body = server.body();
    assert_eq!(
        (&body["continue_final_message"], &body["add_generation_prompt"]),
        (&true.into(), &false.into())
    );
    // A server known to refuse the field is not asked.
    let sampling = Sampling::default();
    let known = Question { extras: false, ..question("fox-7b", &going_on, &sampling) };
    let reply = server.client().reply(&known, &|| false, &mut |_| ());
    assert_eq!(reply.unwrap_err(), Error::CannotContinue);
}

#[test]
fn a_refused_request_fails_before_the_reply_begins() {
    let page = "content-type: text/html\r\n";
    let cases: [(String, &str); 9] = [
        (whole("401 Unauthorized", "", ""), "The server rejected this key"),
        (whole("404 Not Found", "", r#"{"detail":"Not Found"}"#), "doesn't seem to be a server"),
        (
            whole("404 Not Found", "", r#"{"error":{"message":"The model `fox-7b` does not exist."}}"#),
            "no longer has the model 'fox-7b'",
        ),
        (
            whole(
                "400 Bad Request",
                "",
                r#"{"error":{"code":"context_length_exceeded","message":"Too long"}}"#,
            ),
            "longer than the context of the server's model. Server message: Too long",
        ),
        (whole("429 Too Many Requests", "retry-after: 12\r\n", ""), "Try again in 12 seconds"),
        (
            whole("500 Internal Server Error", page, "<h1>x</h1>"),
            "failed with status 500. Its log has the reason. Try again.",
        ),
        (whole("200 OK", page, "<!doctype html><title>Router</title>"), "responded with a web page"),
        (
            whole("200 OK", "content-type: application/json\r\n", r#"{"choices":[]}"#),
            "the reply is not an event stream",
        ),
        ("SSH-2.0-OpenSSH_9.6\r\n".to_owned(), "doesn't seem to be a server"),
    ];
    for (answer, expected) in cases {
        let (events, reply) = answered(&[&answer]);
        let error = reply.unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(events, "", "{expected}");
    }
}

#[test]
fn a_redirect_is_not_followed_and_the_key_is_not_sent() {
    let other = Scripted::start(vec![sends(&[STREAM, FOX, "data: [DONE]\n\n"])]);
    let location = format!("location: http://{}/v1/chat/completions\r\n", other.at);
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let (events, reply) = answered(&[&whole(status, &location, "")]);
        let error = reply.unwrap_err().to_string();
        assert!(error.contains(&format!("redirects to http://{}", other.at)), "{error}");
        assert_eq!(events, "");
    }
    assert!(other.asked.try_recv().is_err(), "the other server was asked");
}

#[test]
fn an_interrupted_reply_keeps_its_text_and_is_reported() {
    for pieces in [
        vec![STREAM, FOX],
        vec![STREAM, FOX, "data: {\"choices\":[{\"del"],
        // The response announces its length and ends early.
        vec!["HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 5000\r\n\r\n", FOX],
        vec![
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n58\r\n",
            FOX,
        ],
    ] {
        let (events, reply) = answered(&pieces);
        let error = reply.unwrap_err();
        assert!(matches!(error, Error::Cut | Error::Garbled(_)), "{error}");
        assert_eq!(events, ">A fox");
    }
}

#[test]
fn an_unreadable_chunk_ends_the_reply_and_keeps_its_text() {
    let last = |piece: &str| {
        let (events, reply) = answered(&[STREAM, FOX, piece]);
        assert_eq!(events, ">A fox", "{piece}");
        reply.unwrap_err().to_string()
    };
    assert!(last("data: {\"choices\": [}\n\n").contains("is not JSON"));
    assert!(last("data: <html>\n\n").contains("is not JSON"));
    assert!(
        last("data: {\"error\":{\"message\":\"CUDA out of memory\"}}\n\n")
            .contains("Server message: CUDA out of memory")
    );
    assert!(
        last("error: {\"message\":\"slot failed\",\"object\":\"error\"}\n\n")
            .contains("Server message: slot failed")
    );
}

#[test]
fn endless_lines_and_replies_use_limited_memory() {
    let line = format!("data: {}", "x".repeat(10 << 20));
    let (events, reply) = answered(&[STREAM, FOX, &line]);
    assert!(reply.unwrap_err().to_string().contains("a line without end"));
    assert_eq!(events, ">A fox");
    let long = FOX.replace("A fox", &"fox ".repeat(200_000));
    let endless: Answer = Box::new(move |stream| {
        stream.write_all(STREAM.as_bytes()).unwrap();
        while stream.write_all(long.as_bytes()).is_ok() {}
    });
    let (events, reply) = ask(&Scripted::start(vec![endless]).client());
    assert!(reply.unwrap_err().to_string().contains("an endless reply"));
    assert!(events.len() <= 16 << 20);
}

#[test]
fn characters_split_between_pieces_are_joined_and_invalid_utf_8_is_replaced() {
    let fox = FOX.replace("A fox", "🦊");
    let bytes: Vec<Vec<u8>> = fox.bytes().map(|byte| vec![byte]).collect();
    let bad = b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\ndata: [DONE]\n\n".to_vec();
    let pieces = [vec![STREAM.as_bytes().to_vec()], bytes, vec![bad]].concat();
    let (events, reply) = ask(&Scripted::start(vec![sends_bytes(pieces)]).client());
    assert_eq!((events.as_str(), reply.unwrap().finish), (">🦊\u{fffd}", Finish::Stop));
}

#[test]
fn implausible_counts_are_not_reported() {
    for usage in [
        "{\"prompt_tokens\":-1,\"completion_tokens\":3}",
        "{\"prompt_tokens\":5,\"completion_tokens\":1000000}",
    ] {
        let end = format!(
            "data: {{\"choices\":[],\"usage\":{usage},\"timings\":{{\"draft_n\":1,\"draft_n_accepted\":2}}}}\n\n"
        );
        let (_, reply) = answered(&[STREAM, FOX, &end, "data: [DONE]\n\n"]);
        let reply = reply.unwrap();
        assert_eq!((reply.usage, reply.drafts), (None, None), "{usage}");
    }
}

#[test]
fn a_reply_can_be_cancelled_at_any_time_and_the_connection_is_closed() {
    let headers = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    for (first, expected) in [("", ">"), ("HTTP/1.1 200 OK\r\n", ">"), (headers, ">")] {
        let (sender, left) = mpsc::channel();
        let server = Scripted::start(vec![hangs(first, sender)]);
        let (asked, wait) = (Cell::new(None::<Instant>), Duration::from_millis(100));
        let stop = || {
            if server.asked.try_recv().is_ok() {
                asked.set(Some(Instant::now()));
            }
            asked.get().is_some_and(|asked| asked.elapsed() > wait)
        };
        let (events, reply) = ask_until(&server.client(), &hello(), &stop);
        assert_eq!((events.as_str(), reply.unwrap().finish), (expected, Finish::Cancelled));
        assert!(asked.get().unwrap().elapsed() < Duration::from_secs(5));
        left.recv_timeout(Duration::from_secs(10)).expect("the connection was closed");
    }
    let stop = AtomicBool::new(false);
    let (sender, left) = mpsc::channel();
    let server = Scripted::start(vec![Box::new(move |stream| {
        let text = [STREAM, FOX].concat();
        stream.write_all(text.as_bytes()).unwrap();
        let _ = stream.read(&mut [0; 16]);
        let _ = sender.send(());
    })]);
    let sampling = Sampling::default();
    let messages = hello();
    let question = question("m", &messages, &sampling);
    let reply = server.client().reply(&question, &|| stop.load(Ordering::Relaxed), &mut |events| {
        if events == ReplyEvent::Text("A fox") {
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(reply.unwrap().finish, Finish::Cancelled);
    left.recv_timeout(Duration::from_secs(10)).expect("the connection was closed");
}

#[test]
fn a_silent_server_times_out_and_a_slow_one_counts_as_started() {
    let moment = Duration::from_millis(300);
    let short = patience(moment);
    let (sender, _left) = mpsc::channel();
    let fox: &'static str = Box::leak([STREAM, FOX].concat().into_boxed_str());
    for (first, expected) in [("", ">"), (STREAM, ">"), (fox, ">A fox")] {
        let server = Scripted::start(vec![hangs(first, sender.clone())]);
        let client = client_with(&server.at.to_string(), None, short);
        let (events, reply) = ask(&client);
        assert!(matches!(reply, Err(Error::Silent { .. })), "{reply:?}");
        assert_eq!(events, expected);
    }
    let server = Scripted::start(vec![hangs("", sender.clone())]);
    let models = client_with(&server.at.to_string(), None, short).models(&|| false);
    assert!(matches!(models, Err(Error::Silent { .. })), "{models:?}");
    // Keep-alive comments count as activity.
    let alive: Answer = Box::new(|stream| {
        stream.write_all(STREAM.as_bytes()).unwrap();
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(100));
            stream.write_all(b": still here\n\n").unwrap();
        }
        stream.write_all([FOX, "data: [DONE]\n\n"].concat().as_bytes()).unwrap();
    });
    let server = Scripted::start(vec![alive]);
    let (events, reply) = ask(&client_with(&server.at.to_string(), None, short));
    assert_eq!((events.as_str(), reply.unwrap().finish), (">A fox", Finish::Stop));
}

#[test]
fn an_endless_error_response_times_out() {
    let trickle: Answer = Box::new(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>");
        while stream.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let server = Scripted::start(vec![trickle]);
    let begun = Instant::now();
    let (events, reply) =
        ask(&client_with(&server.at.to_string(), None, patience(Duration::from_millis(300))));
    assert!(matches!(reply, Err(Error::Silent { .. })), "{reply:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(events, "");
}

#[test]
fn a_finished_reply_is_complete_even_if_the_connection_stays_open() {
    let last = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    // Silent from then on, or with endless keep-alive comments.
    for pings in [false, true] {
        let held: Answer = Box::new(move |stream| {
            stream.write_all([STREAM, FOX, last].concat().as_bytes()).unwrap();
            while pings && stream.write_all(b": ping\n\n").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
            let _ = stream.read(&mut [0; 16]);
        });
        let server = Scripted::start(vec![held]);
        let patient = Timeouts { end: Duration::from_millis(200), ..Timeouts::default() };
        let begun = Instant::now();
        let (events, reply) = ask(&client_with(&server.at.to_string(), None, patient));
        assert_eq!((events.as_str(), reply.unwrap().finish), (">A fox", Finish::Length));
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}

#[test]
fn text_after_a_finish_reason_belongs_to_the_reply() {
    let piece = |field: &str, text: &str, finish: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"{field}\":\"{text}\"}},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let text = |finish: &str| [piece("content", "A", finish), piece("content", " fox", finish)];
    let thought = |finish: &str| piece("reasoning_content", "Hm.", finish);
    let long = Duration::from_millis(400);
    for (name, pieces) in [
        ("an empty reason", [vec![thought("\"\"")], text("\"\"").to_vec()].concat()),
        ("a reason on every chunk", [vec![thought("\"stop\"")], text("\"stop\"").to_vec()].concat()),
        ("a reason after the reasoning", [vec![thought("\"stop\"")], text("null").to_vec()].concat()),
        ("a reason within the text", [text("\"stop\"").to_vec(), text("null").to_vec()].concat()),
    ] {
        // After text a finish reason counts until more text arrives.
        let (expected, first) = match name {
            "a reason within the text" => (">A foxA fox", long / 8),
            _ => (">[Hm.]A fox", long),
        };
        let slow: Answer = Box::new(move |stream| {
            stream.write_all(STREAM.as_bytes()).unwrap();
            for (number, piece) in pieces.iter().enumerate() {
                stream.write_all(piece.as_bytes()).unwrap();
                thread::sleep(if number == 0 { first } else { long });
            }
            stream.write_all(b"data: [DONE]\n\n").unwrap();
        });
        let server = Scripted::start(vec![slow]);
        let patient = Timeouts { end: long / 2, ..Timeouts::default() };
        let (events, reply) = ask(&client_with(&server.at.to_string(), None, patient));
        assert_eq!((events.as_str(), reply.unwrap().finish), (expected, Finish::Stop), "{name}");
    }
}

#[test]
fn half_an_emoji_in_a_chunk_is_replaced_and_the_reply_goes_on() {
    let half = FOX.replace("A fox", "\\ud83e");
    let mut cesu = FOX.replace("A fox", "@").into_bytes();
    let at = cesu.iter().position(|&byte| byte == b'@').unwrap();
    cesu.splice(at..=at, *b"\xed\xa0\xbe\xed\xb6\x8a");
    let pieces = [STREAM, &half, FOX].map(|piece| piece.as_bytes().to_vec()).to_vec();
    let pieces = [pieces, vec![cesu, b"data: [DONE]\n\n".to_vec()]].concat();
    let (events, reply) = ask(&Scripted::start(vec![sends_bytes(pieces)]).client());
    assert_eq!((events.as_str(), reply.unwrap().finish), (">\u{fffd}A fox🦊", Finish::Stop));
}

#[test]
fn connection_errors_are_reported_by_reason() {
    let error_of = |address: &str| ask(&client(address, None)).1.unwrap_err();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(matches!(error_of(&free.to_string()), Error::NothingListens { .. }));
    assert!(matches!(error_of("http://nowhere.invalid:8000"), Error::NoHost { .. }));
    // A server without TLS.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || listener.accept().unwrap().0.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    let error = error_of(&format!("https://{at}"));
    assert!(matches!(error, Error::Tls { .. }), "{error}");
}

#[test]
fn models_are_listed_with_their_context_lengths() {
    let body = r#"{"object":"list","data":[
        {"id":"Qwen/Qwen3-8B","object":"model","owned_by":"vllm","max_model_len":40960},
        {"id":"smollm2","meta":{"n_ctx_train":8192},"capabilities":["completion"]},
        {"id":"smolvlm","capabilities":["completion","multimodal"]},
        {"id":"a/b","architecture":{"input_modalities":["text","image"]}},
        {"id":"unknown","max_model_len":-1,"capabilities":7}, {"id":7}, {}]}"#;
    let server =
        Scripted::start(vec![sends(&[&whole("200 OK", "content-type: application/json\r\n", body)])]);
    let models = server.client().models(&|| false).unwrap().unwrap();
    let model = |id: &str, context, sees| Model { id: id.to_owned(), context, sees };
    assert_eq!(
        models,
        [
            model("Qwen/Qwen3-8B", Some(40960), None),
            model("smollm2", Some(8192), Some(false)),
            model("smolvlm", None, Some(true)),
            model("a/b", None, Some(true)),
            model("unknown", None, None),
        ]
    );
    assert!(server.asked.recv().unwrap().starts_with("GET /v1/models HTTP/1.1\r\n"));
    for (body, expected) in [
        ("<html>", "responded with a web page"),
        ("hello", "the list of models is not a list"),
        (r#"{"data":7}"#, "the list of models is not a list"),
    ] {
        let server = Scripted::start(vec![sends(&[&whole("200 OK", "", body)])]);
        let error = server.client().models(&|| false).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let cut = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 500\r\n\r\n{\"data\":[";
    let error = Scripted::start(vec![sends(&[cut])]).client().models(&|| false).unwrap_err();
    assert_eq!(error.to_string(), "The connection was lost before the response was complete. Try again.");
}

#[test]
fn an_invalid_key_is_refused_and_stays_out_of_logs() {
    let address = || Address::read("localhost:1").unwrap();
    let refused = Client::new(address(), Some("two\nlines"), Timeouts::default());
    assert!(matches!(refused, Err(Error::KeyForm)));
    let client = Client::new(address(), Some("secret"), Timeouts::default()).unwrap();
    assert!(!format!("{client:?}").contains("secret"));
}

/// Runs against a real server: `FORETOKEN_REMOTE=127.0.0.1:8080 cargo test --workspace --test
/// remote -- --ignored`. Prints what the server reports about itself and a reply.
#[test]
#[ignore = "needs a running server"]
fn a_real_server_lists_its_models_and_replies() {
    let address = std::env::var("FORETOKEN_REMOTE").expect("the address of a server in FORETOKEN_REMOTE");
    let client = client(&address, None);
    let models = client.models(&|| false).unwrap().unwrap();
    println!("{models:?}");
    let sampling = Sampling::greedy();
    let messages = hello();
    let question = Question { max_tokens: Some(40), ..question(&models[0].id, &messages, &sampling) };
    let mut text = String::new();
    let reply = client.reply(&question, &|| false, &mut |events| {
        if let ReplyEvent::Text(delta) | ReplyEvent::Thinking(delta) = events {
            text += delta;
        }
    });
    let reply = reply.unwrap();
    println!("{text}\n{reply:?}");
    assert!(!text.is_empty());
    let usage = reply.usage.expect("the server counts tokens");
    assert!(usage.reply <= 40, "{usage:?}");
}
