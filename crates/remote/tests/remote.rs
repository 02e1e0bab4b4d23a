//! The client against servers that a test writes itself: as vLLM, SGLang, llama-server and OpenAI really answer, and as
//! servers do that hang, cut, lie, send on or speak something else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use foretoken_engine::model::{ChatMessage, Role};
use foretoken_engine::sampling::Sampling;
use foretoken_engine::trace::Finish;
use foretoken_remote::{
    Address, Client, Drafts, Error, Heard, Model, Patience, Question, Reply, Result, Usage,
};
use serde_json::Value;

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";
const FOX: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A fox\"},\"finish_reason\":null}]}\n\n";

/// What a server does with one connection, after it has read the request.
type Answer = Box<dyn FnOnce(&mut TcpStream) + Send>;

/// A server that answers one connection after the other as it is told, and hands on what it was asked.
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

    /// The body of the next request.
    fn body(&self) -> Value {
        let request = self.asked.recv_timeout(Duration::from_secs(10)).unwrap();
        serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

/// All of a request.
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

/// Sends these and closes the connection.
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

/// Sends these and then nothing, until the client has gone; says so then.
fn hangs(first: &'static str, left: mpsc::Sender<()>) -> Answer {
    Box::new(move |stream| {
        stream.write_all(first.as_bytes()).unwrap();
        let _ = stream.read(&mut [0; 16]);
        let _ = left.send(());
    })
}

/// An answer with a length.
fn whole(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

fn client(address: &str, key: Option<&str>) -> Client {
    client_with(address, key, Patience::default())
}

fn client_with(address: &str, key: Option<&str>, patience: Patience) -> Client {
    Client::new(Address::read(address).unwrap(), key, patience).unwrap()
}

fn question<'a>(model: &'a str, messages: &'a [ChatMessage], sampling: &'a Sampling) -> Question<'a> {
    Question { model, messages, sampling, max_tokens: None, thinking: None, extras: true }
}

/// What was heard, thinking in brackets, and what came of it.
fn ask_until(client: &Client, messages: &[ChatMessage], stop: &dyn Fn() -> bool) -> (String, Result<Reply>) {
    let sampling = Sampling { top_k: 40, ..Sampling::default() };
    let question = question("fox-7b", messages, &sampling);
    let mut heard = String::new();
    let reply = client.reply(&question, stop, &mut |piece| match piece {
        Heard::Started => heard.push('>'),
        Heard::WithoutExtras => heard.push('-'),
        Heard::Thinking(text) => heard += &format!("[{text}]"),
        Heard::Text(text) => heard += text,
    });
    (heard, reply)
}

fn patience(moment: Duration) -> Patience {
    Patience {
        connect: moment,
        answer: moment,
        refuse: moment / 3,
        first: moment,
        between: moment,
        end: moment,
    }
}

fn hello() -> Vec<ChatMessage> {
    vec![ChatMessage { role: Role::User, content: "What is a fox?".to_owned() }]
}

fn ask(client: &Client) -> (String, Result<Reply>) {
    ask_until(client, &hello(), &|| false)
}

/// The same of a server that answers so.
fn answered(pieces: &[&str]) -> (String, Result<Reply>) {
    ask(&Scripted::start(vec![sends(pieces)]).client())
}

#[test]
fn what_each_server_sends_is_heard_however_the_network_cuts_it() {
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
            let (heard, reply) = ask(&server.client());
            let reply = reply.unwrap();
            assert_eq!(heard, text);
            assert_eq!((reply.finish, reply.usage, reply.drafts), (finish, Some(usage), drafts), "{text}");
            assert!(reply.ttft_ms.unwrap() <= reply.elapsed_ms);
        }
    }
}

#[test]
fn a_question_is_asked_with_the_key_in_the_protocols_words() {
    let server = Scripted::start(vec![sends(&[STREAM, FOX, "data: [DONE]\n\n"])]);
    let (heard, reply) = ask(&server.client());
    assert_eq!((heard.as_str(), reply.unwrap().finish), (">A fox", Finish::Stop));
    let request = server.asked.recv().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: Bearer secret\r\n"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["model"], &body["top_k"]), (&"fox-7b".into(), &40.into()));
    assert_eq!(body["messages"][0]["content"], "What is a fox?");
}

#[test]
fn a_server_that_refuses_a_field_that_is_not_openais_is_asked_without_them() {
    for (status, refusal) in [
        ("400 Bad Request", r#"{"error":{"message":"Unrecognized request argument supplied: top_k"}}"#),
        (
            "422 Unprocessable Entity",
            r#"{"detail":[{"loc":["body","top_k"],"msg":"Extra inputs are not permitted"}]}"#,
        ),
    ] {
        let refusal = whole(status, "", refusal);
        let server = Scripted::start(vec![sends(&[&refusal]), sends(&[STREAM, FOX, "data: [DONE]\n\n"])]);
        let (heard, reply) = ask(&server.client());
        assert_eq!((heard.as_str(), reply.unwrap().finish), ("->A fox", Finish::Stop));
        assert!(server.body()["top_k"].is_number());
        assert!(server.body().get("top_k").is_none());
    }
}

#[test]
fn a_model_without_a_template_is_asked_without_the_word_on_thinking_and_with_the_others() {
    let refusal = r#"{"message":"'chat_template_kwargs' is not supported for Mistral tokenizers."}"#;
    let refusal = whole("400 Bad Request", "", refusal);
    let server = Scripted::start(vec![sends(&[&refusal]), sends(&[STREAM, FOX, "data: [DONE]\n\n"])]);
    let (messages, sampling) = (hello(), Sampling::default());
    let question = Question { thinking: Some(false), ..question("fox-7b", &messages, &sampling) };
    let mut heard = Vec::new();
    let reply = server.client().reply(&question, &|| false, &mut |piece| heard.push(format!("{piece:?}")));
    assert_eq!(reply.unwrap().finish, Finish::Stop);
    assert_eq!(heard, ["Started", "Text(\"A fox\")"]);
    assert_eq!(server.body()["chat_template_kwargs"]["enable_thinking"], false);
    let again = server.body();
    assert!(again.get("chat_template_kwargs").is_none() && again["top_k"].is_number(), "{again}");
}

#[test]
fn a_server_that_refuses_them_still_is_asked_no_third_time() {
    let refusal = whole("400 Bad Request", "", r#"{"error":{"message":"top_k"}}"#);
    let server = Scripted::start(vec![sends(&[&refusal]), sends(&[&refusal])]);
    let (heard, reply) = ask(&server.client());
    assert!(matches!(reply, Err(Error::Extra { .. })), "{reply:?}");
    assert_eq!(heard, "");
}

#[test]
fn going_on_with_a_reply_is_asked_for_and_is_no_new_reply_where_it_is_refused() {
    let refusal =
        whole("400 Bad Request", "", r#"{"error":{"message":"continue_final_message is not permitted"}}"#);
    let server = Scripted::start(vec![sends(&[&refusal])]);
    let going_on = [hello(), vec![ChatMessage { role: Role::Assistant, content: "A f".to_owned() }]].concat();
    let (heard, reply) = ask_until(&server.client(), &going_on, &|| false);
    assert_eq!(heard, "");
    let error = reply.unwrap_err();
    assert_eq!(error, Error::CannotContinue);
    assert!(error.to_string().starts_with("This server cannot continue a reply that was cut."), "{error}");
    let body = server.body();
    assert_eq!(
        (&body["continue_final_message"], &body["add_generation_prompt"]),
        (&true.into(), &false.into())
    );
    // Of a server that is known to refuse the field, it is not even asked.
    let sampling = Sampling::default();
    let known = Question { extras: false, ..question("fox-7b", &going_on, &sampling) };
    let reply = server.client().reply(&known, &|| false, &mut |_| ());
    assert_eq!(reply.unwrap_err(), Error::CannotContinue);
}

#[test]
fn what_is_refused_is_refused_before_it_began() {
    let page = "content-type: text/html\r\n";
    let cases: [(String, &str); 9] = [
        (whole("401 Unauthorized", "", ""), "The server wants a key, and not this one"),
        (whole("404 Not Found", "", r#"{"detail":"Not Found"}"#), "is no server of this kind"),
        (
            whole("404 Not Found", "", r#"{"error":{"message":"The model `fox-7b` does not exist."}}"#),
            "has no model 'fox-7b' any more",
        ),
        (
            whole(
                "400 Bad Request",
                "",
                r#"{"error":{"code":"context_length_exceeded","message":"Too long"}}"#,
            ),
            "longer than the server's model can read. It says: Too long",
        ),
        (whole("429 Too Many Requests", "retry-after: 12\r\n", ""), "try again in 12 seconds"),
        (
            whole("500 Internal Server Error", page, "<h1>x</h1>"),
            "failed with status 500: its log has the reason. Try again.",
        ),
        (whole("200 OK", page, "<!doctype html><title>Router</title>"), "answered with a web page"),
        (
            whole("200 OK", "content-type: application/json\r\n", r#"{"choices":[]}"#),
            "the reply is no stream",
        ),
        ("SSH-2.0-OpenSSH_9.6\r\n".to_owned(), "is no server of this kind"),
    ];
    for (answer, expected) in cases {
        let (heard, reply) = answered(&[&answer]);
        let error = reply.unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(heard, "", "{expected}");
    }
}

#[test]
fn a_redirect_is_not_followed_and_the_key_stays() {
    let other = Scripted::start(vec![sends(&[STREAM, FOX, "data: [DONE]\n\n"])]);
    let location = format!("location: http://{}/v1/chat/completions\r\n", other.at);
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let (heard, reply) = answered(&[&whole(status, &location, "")]);
        let error = reply.unwrap_err().to_string();
        assert!(error.contains(&format!("sends on to http://{}", other.at)), "{error}");
        assert_eq!(heard, "");
    }
    assert!(other.asked.try_recv().is_err(), "the other server was asked");
}

#[test]
fn of_a_reply_that_is_cut_the_text_stands_and_it_is_said() {
    for pieces in [
        vec![STREAM, FOX],
        vec![STREAM, FOX, "data: {\"choices\":[{\"del"],
        // It says how long it is, and ends before.
        vec!["HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 5000\r\n\r\n", FOX],
        vec![
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n58\r\n",
            FOX,
        ],
    ] {
        let (heard, reply) = answered(&pieces);
        let error = reply.unwrap_err();
        assert!(matches!(error, Error::Cut | Error::Garbled(_)), "{error}");
        assert_eq!(heard, ">A fox");
    }
}

#[test]
fn what_cannot_be_understood_in_the_middle_ends_the_reply_and_its_text_stands() {
    let last = |piece: &str| {
        let (heard, reply) = answered(&[STREAM, FOX, piece]);
        assert_eq!(heard, ">A fox", "{piece}");
        reply.unwrap_err().to_string()
    };
    assert!(last("data: {\"choices\": [}\n\n").contains("is no JSON"));
    assert!(last("data: <html>\n\n").contains("is no JSON"));
    assert!(
        last("data: {\"error\":{\"message\":\"CUDA out of memory\"}}\n\n")
            .contains("It says: CUDA out of memory")
    );
    assert!(
        last("error: {\"message\":\"slot failed\",\"object\":\"error\"}\n\n")
            .contains("It says: slot failed")
    );
}

#[test]
fn lines_and_replies_without_end_take_no_memory_without_end() {
    let line = format!("data: {}", "x".repeat(10 << 20));
    let (heard, reply) = answered(&[STREAM, FOX, &line]);
    assert!(reply.unwrap_err().to_string().contains("a line without end"));
    assert_eq!(heard, ">A fox");
    let long = FOX.replace("A fox", &"fox ".repeat(200_000));
    let endless: Answer = Box::new(move |stream| {
        stream.write_all(STREAM.as_bytes()).unwrap();
        while stream.write_all(long.as_bytes()).is_ok() {}
    });
    let (heard, reply) = ask(&Scripted::start(vec![endless]).client());
    assert!(reply.unwrap_err().to_string().contains("a reply without end"));
    assert!(heard.len() <= 16 << 20);
}

#[test]
fn signs_that_are_cut_between_pieces_are_whole_and_bytes_that_are_no_text_are_marked() {
    let fox = FOX.replace("A fox", "🦊");
    let bytes: Vec<Vec<u8>> = fox.bytes().map(|byte| vec![byte]).collect();
    let bad = b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\ndata: [DONE]\n\n".to_vec();
    let pieces = [vec![STREAM.as_bytes().to_vec()], bytes, vec![bad]].concat();
    let (heard, reply) = ask(&Scripted::start(vec![sends_bytes(pieces)]).client());
    assert_eq!((heard.as_str(), reply.unwrap().finish), (">🦊\u{fffd}", Finish::Stop));
}

#[test]
fn numbers_that_cannot_be_true_are_not_told() {
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
fn a_person_can_stop_at_any_moment_and_the_connection_is_closed() {
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
        let (heard, reply) = ask_until(&server.client(), &hello(), &stop);
        assert_eq!((heard.as_str(), reply.unwrap().finish), (expected, Finish::Cancelled));
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
    let reply = server.client().reply(&question, &|| stop.load(Ordering::Relaxed), &mut |heard| {
        if heard == Heard::Text("A fox") {
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(reply.unwrap().finish, Finish::Cancelled);
    left.recv_timeout(Duration::from_secs(10)).expect("the connection was closed");
}

#[test]
fn a_server_that_says_nothing_is_given_up_in_time_and_one_that_works_long_has_begun() {
    let moment = Duration::from_millis(300);
    let short = patience(moment);
    let (sender, _left) = mpsc::channel();
    let fox: &'static str = Box::leak([STREAM, FOX].concat().into_boxed_str());
    for (first, expected) in [("", ">"), (STREAM, ">"), (fox, ">A fox")] {
        let server = Scripted::start(vec![hangs(first, sender.clone())]);
        let client = client_with(&server.at.to_string(), None, short);
        let (heard, reply) = ask(&client);
        assert!(matches!(reply, Err(Error::Silent { .. })), "{reply:?}");
        assert_eq!(heard, expected);
    }
    let server = Scripted::start(vec![hangs("", sender.clone())]);
    let models = client_with(&server.at.to_string(), None, short).models(&|| false);
    assert!(matches!(models, Err(Error::Silent { .. })), "{models:?}");
    // Signs of life keep it.
    let alive: Answer = Box::new(|stream| {
        stream.write_all(STREAM.as_bytes()).unwrap();
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(100));
            stream.write_all(b": still here\n\n").unwrap();
        }
        stream.write_all([FOX, "data: [DONE]\n\n"].concat().as_bytes()).unwrap();
    });
    let server = Scripted::start(vec![alive]);
    let (heard, reply) = ask(&client_with(&server.at.to_string(), None, short));
    assert_eq!((heard.as_str(), reply.unwrap().finish), (">A fox", Finish::Stop));
}

#[test]
fn an_answer_that_is_no_reply_and_never_ends_is_given_up_in_time() {
    let trickle: Answer = Box::new(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>");
        while stream.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let server = Scripted::start(vec![trickle]);
    let begun = Instant::now();
    let (heard, reply) =
        ask(&client_with(&server.at.to_string(), None, patience(Duration::from_millis(300))));
    assert!(matches!(reply, Err(Error::Silent { .. })), "{reply:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(heard, "");
}

#[test]
fn a_reply_that_ended_is_whole_though_the_connection_stays_open() {
    let last = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    // Silent from then on, or with signs of life for ever.
    for pings in [false, true] {
        let held: Answer = Box::new(move |stream| {
            stream.write_all([STREAM, FOX, last].concat().as_bytes()).unwrap();
            while pings && stream.write_all(b": ping\n\n").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
            let _ = stream.read(&mut [0; 16]);
        });
        let server = Scripted::start(vec![held]);
        let patient = Patience { end: Duration::from_millis(200), ..Patience::default() };
        let begun = Instant::now();
        let (heard, reply) = ask(&client_with(&server.at.to_string(), None, patient));
        assert_eq!((heard.as_str(), reply.unwrap().finish), (">A fox", Finish::Length));
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}

#[test]
fn who_cannot_be_reached_is_told_by_its_reason() {
    let told = |address: &str| ask(&client(address, None)).1.unwrap_err();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(matches!(told(&free.to_string()), Error::NothingListens { .. }));
    assert!(matches!(told("http://nowhere.invalid:8000"), Error::NoHost { .. }));
    // A server without TLS where it is expected.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || listener.accept().unwrap().0.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    let error = told(&format!("https://{at}"));
    assert!(matches!(error, Error::Tls { .. }), "{error}");
}

#[test]
fn models_are_listed_with_what_their_contexts_hold() {
    let body = r#"{"object":"list","data":[
        {"id":"Qwen/Qwen3-8B","object":"model","owned_by":"vllm","max_model_len":40960},
        {"id":"smollm2","meta":{"n_ctx_train":8192}},
        {"id":"unknown","max_model_len":-1}, {"id":7}, {}]}"#;
    let server =
        Scripted::start(vec![sends(&[&whole("200 OK", "content-type: application/json\r\n", body)])]);
    let models = server.client().models(&|| false).unwrap().unwrap();
    let model = |id: &str, context| Model { id: id.to_owned(), context };
    assert_eq!(
        models,
        [model("Qwen/Qwen3-8B", Some(40960)), model("smollm2", Some(8192)), model("unknown", None)]
    );
    assert!(server.asked.recv().unwrap().starts_with("GET /v1/models HTTP/1.1\r\n"));
    for (body, expected) in [
        ("<html>", "answered with a web page"),
        ("hello", "its list of models is no list"),
        (r#"{"data":7}"#, "its list of models is no list"),
    ] {
        let server = Scripted::start(vec![sends(&[&whole("200 OK", "", body)])]);
        let error = server.client().models(&|| false).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let cut = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 500\r\n\r\n{\"data\":[";
    let error = Scripted::start(vec![sends(&[cut])]).client().models(&|| false).unwrap_err();
    assert_eq!(error.to_string(), "The connection ended before the answer did. Try again.");
}

#[test]
fn a_key_that_is_none_is_refused_and_no_log_has_one() {
    let address = || Address::read("localhost:1").unwrap();
    let refused = Client::new(address(), Some("two\nlines"), Patience::default());
    assert!(matches!(refused, Err(Error::KeyForm)));
    let client = Client::new(address(), Some("secret"), Patience::default()).unwrap();
    assert!(!format!("{client:?}").contains("secret"));
}

/// Against a server that somebody started: `FORETOKEN_REMOTE=127.0.0.1:8080 cargo test --workspace --test remote -- \
/// --ignored`. Prints what it says of itself and of a reply.
#[test]
#[ignore = "needs a running server"]
fn a_server_that_runs_lists_its_models_and_replies() {
    let address = std::env::var("FORETOKEN_REMOTE").expect("the address of a server in FORETOKEN_REMOTE");
    let client = client(&address, None);
    let models = client.models(&|| false).unwrap().unwrap();
    println!("{models:?}");
    let sampling = Sampling::greedy();
    let messages = hello();
    let question = Question { max_tokens: Some(40), ..question(&models[0].id, &messages, &sampling) };
    let mut text = String::new();
    let reply = client.reply(&question, &|| false, &mut |heard| {
        if let Heard::Text(delta) | Heard::Thinking(delta) = heard {
            text += delta;
        }
    });
    let reply = reply.unwrap();
    println!("{text}\n{reply:?}");
    assert!(!text.is_empty());
    let usage = reply.usage.expect("the server counts tokens");
    assert!(usage.reply <= 40, "{usage:?}");
}
