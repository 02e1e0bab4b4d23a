//! The server with a scripted writer, whose replies each test provides: who is served, who is
//! refused, and who waits.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "server/messages.rs"]
mod messages;
#[path = "server/responses.rs"]
mod responses;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use foretoken_engine::trace::{Finish, Speedup, Summary};
use foretoken_server::{Address, Event, Logprob, Order, Prompt, Refusal, ReplySink, Server, Writer};
use foretoken_tests::client::{Answer, answer, asked, get, head, leave, post, send};
use foretoken_tests::soon;
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const HELLO: &str = r#"{"messages":[{"role":"user","content":"Hello"}]}"#;
const STREAM: &str = r#"{"stream":true,"messages":[{"role":"user","content":"Hello"}]}"#;

/// Passes requests to the test.
struct ScriptedWriter {
    model: Mutex<Option<String>>,
    others: Mutex<Vec<String>>,
    /// Models of the requests so far.
    models: Mutex<Vec<String>>,
    orders: mpsc::Sender<(Order, ReplySink)>,
}

impl Writer for ScriptedWriter {
    fn model(&self) -> Option<String> {
        self.model.lock().unwrap().clone()
    }

    fn others(&self) -> Vec<String> {
        self.others.lock().unwrap().clone()
    }

    fn begin(&self, model: &str, order: Order, sink: ReplySink) {
        self.models.lock().unwrap().push(model.to_owned());
        self.orders.send((order, sink)).unwrap();
    }

    fn count(&self, _model: &str, order: Order) -> Result<usize, Refusal> {
        match order.prompt {
            Prompt::Conversation(messages) => Ok(messages.iter().map(|message| message.content.len()).sum()),
            Prompt::Text(_) => Err(Refusal::bad_request("a scripted refusal.")),
        }
    }
}

/// A server and the requests that it passes on.
struct Fixture {
    server: Server,
    at: SocketAddr,
    writer: Arc<ScriptedWriter>,
    orders: mpsc::Receiver<(Order, ReplySink)>,
}

impl Fixture {
    fn with_key(key: &str) -> Self {
        let (orders, ordered) = mpsc::channel();
        let model = Mutex::new(Some("made/up".to_owned()));
        let (others, models) = Default::default();
        let writer = Arc::new(ScriptedWriter { model, others, models, orders });
        let address = Address { host: "127.0.0.1".to_owned(), port: 0, key: key.to_owned() };
        let server = Server::start(&address, writer.clone()).unwrap();
        Self { at: server.address(), server, writer, orders: ordered }
    }

    fn start() -> Self {
        Self::with_key("")
    }

    fn order(&self) -> (Order, ReplySink) {
        self.orders.recv_timeout(Duration::from_secs(10)).unwrap()
    }

    /// Order of a request to `path`.
    fn order_of(path: &str, body: &Value) -> Order {
        let fixture = Self::start();
        let _client = asked(fixture.at, path, &body.to_string());
        fixture.order().0
    }

    /// Answer to a request to `path` whose reply has these events.
    fn replied(path: &str, body: &Value, events: Vec<Event>, finish: Finish) -> Answer {
        let fixture = Self::start();
        let client = asked(fixture.at, path, &body.to_string());
        let (_, sink) = fixture.order();
        sink.send(Event::Started(9));
        events.into_iter().for_each(|event| sink.send(event));
        sink.end(Ok(Summary { finish, ..summary() }));
        answer(client)
    }

    /// Sends the same reply to all requests, on a thread that ends with the server.
    fn reply_to_all(self) -> (Server, SocketAddr) {
        let Self { server, at, orders, .. } = self;
        thread::spawn(move || orders.into_iter().for_each(|(_, sink)| reply(sink)));
        (server, at)
    }
}

/// A request with the fields of `more`.
fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn summary() -> Summary {
    let summary = Summary::of(&[], Finish::Stop, 9, 4, 20.0);
    Summary { tokens: 3, drafted: 5, judged: 2, accepted: 1, speedup: Speedup::new(30.0, 20.0, 1), ..summary }
}

fn reply(sink: ReplySink) {
    sink.send(Event::Started(9));
    for piece in ["Good", " day", "!\n\"é\""] {
        sink.send(Event::Text(piece.to_owned()));
    }
    sink.end(Ok(summary()));
}

#[test]
fn calls_of_tools_are_part_of_a_reply_whole_and_in_chunks() {
    let Fixture { server: _server, at, orders, .. } = Fixture::start();
    thread::spawn(move || {
        for (order, sink) in orders {
            sink.send(Event::Started(9));
            assert_eq!(order.tools.unwrap().tools[0].name, "look");
            for event in [
                Event::Call("look".to_owned()),
                Event::Arguments("{\"at\": ".to_owned()),
                Event::Arguments("7}".to_owned()),
                Event::CallEnded,
                Event::Call("look".to_owned()),
                Event::Arguments("{}".to_owned()),
                Event::CallEnded,
            ] {
                sink.send(event);
            }
            sink.end(Ok(summary()));
        }
    });
    let tool = json!({ "type": "function", "function": { "name": "look" } });
    let mut body = json!({ "messages": [{ "role": "user", "content": "Hello" }], "tools": [tool] });
    let choice = &post(at, CHAT, &body.to_string()).json()["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("tool_calls"), &Value::Null)
    );
    let calls = choice["message"]["tool_calls"].as_array().unwrap();
    let functions: Vec<&Value> = calls.iter().map(|call| &call["function"]).collect();
    let expected = ["{\"at\": 7}", "{}"].map(|arguments| json!({ "name": "look", "arguments": arguments }));
    assert_eq!(functions, expected.iter().collect::<Vec<_>>());
    assert!(calls[0]["id"].as_str().unwrap().starts_with("call_") && calls[0]["id"] != calls[1]["id"]);

    body["stream"] = true.into();
    let streamed = post(at, CHAT, &body.to_string());
    let events = streamed.events();
    let pieces: Vec<Value> =
        events[..events.len() - 1].iter().map(|piece| serde_json::from_str(piece).unwrap()).collect();
    let mut arguments = [String::new(), String::new()];
    for call in pieces.iter().filter_map(|piece| piece["choices"][0]["delta"]["tool_calls"].get(0)) {
        let at = call["index"].as_u64().unwrap() as usize;
        assert_eq!(call["function"]["name"].is_string(), call["id"].is_string());
        arguments[at] += call["function"]["arguments"].as_str().unwrap();
    }
    assert_eq!(arguments, ["{\"at\": 7}", "{}"]);
    assert_eq!(pieces.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn the_chunks_of_a_stream_are_the_whole_reply() {
    let (_server, at) = Fixture::start().reply_to_all();
    let whole = post(at, CHAT, HELLO).json();
    assert_eq!((&whole["object"], &whole["model"]), (&json!("chat.completion"), &json!("made/up")));
    let choice = &whole["choices"][0];
    assert_eq!(
        choice["message"],
        json!({ "role": "assistant", "content": "Good day!\n\"é\"", "refusal": null })
    );
    assert_eq!(choice["finish_reason"], "stop");

    let streamed = post(at, CHAT, STREAM);
    assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
    let (last, pieces) =
        streamed.events().split_last().map(|(last, pieces)| (*last, pieces.to_vec())).unwrap();
    assert_eq!(last, "[DONE]");
    let pieces: Vec<Value> = pieces.iter().map(|piece| serde_json::from_str(piece).unwrap()).collect();
    assert_eq!(pieces[0]["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
    let text: String =
        pieces.iter().filter_map(|piece| piece["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "Good day!\n\"é\"");
    let finishes: Vec<&Value> = pieces.iter().map(|piece| &piece["choices"][0]["finish_reason"]).collect();
    assert_eq!(finishes.iter().filter(|finish| !finish.is_null()).collect::<Vec<_>>(), [&&json!("stop")]);
    assert!(pieces.iter().all(|piece| piece["id"] == pieces[0]["id"] && piece.get("usage").is_none()));
    assert_eq!(pieces.last().unwrap()["timings"]["draft_n"], 5);

    let completion = post(at, "/v1/completions", r#"{"prompt":"Good"}"#).json();
    assert_eq!(
        (&completion["object"], &completion["choices"][0]["text"]),
        (&json!("text_completion"), &choice["message"]["content"])
    );
}

#[test]
fn the_usage_counts_drafted_tokens_and_ends_a_stream_on_request() {
    let (_server, at) = Fixture::start().reply_to_all();
    let usage = json!({
        "prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12,
        "prompt_tokens_details": { "cached_tokens": 4 }, "drafted": 5, "judged": 2, "accepted": 1, "speedup": 1.5, "saved_ms": 10.0,
    });
    let whole = post(at, CHAT, HELLO).json();
    assert_eq!(whole["usage"], usage);
    assert_eq!(
        (&whole["timings"]["prompt_n"], &whole["timings"]["draft_n_accepted"]),
        (&json!(5), &json!(1))
    );
    for (path, ask) in [
        (CHAT, "\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]"),
        ("/v1/completions", "\"prompt\":\"a\""),
    ] {
        let streamed = post(
            at,
            path,
            &format!("{{\"stream\":true,\"stream_options\":{{\"include_usage\":true}},{ask}}}"),
        );
        let events = streamed.events();
        let pieces: Vec<Value> =
            events[..events.len() - 1].iter().map(|piece| serde_json::from_str(piece).unwrap()).collect();
        let (last, before) = pieces.split_last().unwrap();
        assert_eq!((&last["usage"], &last["choices"]), (&usage, &json!([])));
        assert!(before.iter().all(|piece| piece["usage"].is_null() && piece.get("timings").is_none()));
    }
}

/// Sends two replies of two tokens each, with log probabilities.
fn reply_twice(sink: ReplySink) {
    let logprob = |text: &[u8], top: Vec<Logprob>| Logprob { bytes: text.to_vec(), logprob: -0.5, top };
    sink.send(Event::Started(9));
    for (number, words) in [["Good", " day"], ["Hi", "\u{e9}"]].into_iter().enumerate() {
        if number > 0 {
            sink.send(Event::Next(Finish::Length));
        }
        for word in words {
            let top = vec![logprob(word.as_bytes(), vec![]), logprob(&[0xE2], vec![])];
            sink.send(Event::Logprobs(vec![logprob(word.as_bytes(), top)]));
            sink.send(Event::Text(word.to_owned()));
        }
    }
    sink.end(Ok(summary()));
}

/// Chunks of a streamed answer.
fn chunks(answer: &Answer) -> Vec<Value> {
    let events = answer.events();
    events[..events.len() - 1].iter().map(|piece| serde_json::from_str(piece).unwrap()).collect()
}

#[test]
fn several_replies_are_choices_with_their_own_ends_and_log_probabilities() {
    let Fixture { server: _server, at, orders, .. } = Fixture::start();
    thread::spawn(move || orders.into_iter().for_each(|(_, sink)| reply_twice(sink)));
    let hello = json!([{ "role": "user", "content": "Hello" }]);
    let mut chat = json!({ "messages": hello, "n": 2, "logprobs": true, "top_logprobs": 2 });
    let mut text = json!({ "prompt": "a", "n": 2, "logprobs": 2 });
    let (whole, completed) =
        (post(at, CHAT, &chat.to_string()).json(), post(at, "/v1/completions", &text.to_string()).json());
    let choices = |whole: &Value| whole["choices"].as_array().unwrap().clone();
    let of_chat = choices(&whole);
    let shown: Vec<_> = of_chat
        .iter()
        .map(|choice| (&choice["index"], &choice["message"]["content"], &choice["finish_reason"]))
        .collect();
    let (length, stop) = (json!("length"), json!("stop"));
    assert_eq!(shown, [(&json!(0), &json!("Good day"), &length), (&json!(1), &json!("Hi\u{e9}"), &stop)]);
    let part = json!({ "token": "\u{fffd}", "logprob": -0.5, "bytes": [0xE2] });
    let own = json!({ "token": "\u{e9}", "logprob": -0.5, "bytes": [0xC3, 0xA9] });
    let mut content = own.clone();
    content["top_logprobs"] = json!([own, part]);
    assert_eq!(of_chat[1]["logprobs"]["content"][1], content);
    assert_eq!(of_chat[1]["logprobs"]["refusal"], Value::Null);
    let of_text = choices(&completed);
    assert_eq!(of_text[0]["text"], "Good day");
    assert_eq!(
        of_text[0]["logprobs"],
        json!({
            "tokens": ["Good", " day"], "token_logprobs": [-0.5, -0.5], "text_offset": [0, 4],
            "top_logprobs": [{ "Good": -0.5, "\u{fffd}": -0.5 }, { " day": -0.5, "\u{fffd}": -0.5 }],
        })
    );
    for body in [&mut chat, &mut text] {
        body["stream"] = true.into();
    }
    for (path, body, expected) in [(CHAT, &chat, &of_chat), ("/v1/completions", &text, &of_text)] {
        let pieces = chunks(&post(at, path, &body.to_string()));
        for (index, expected) in expected.iter().enumerate() {
            let own: Vec<&Value> = pieces
                .iter()
                .map(|piece| &piece["choices"][0])
                .filter(|choice| choice["index"] == index)
                .collect();
            let text: String = own
                .iter()
                .filter_map(|choice| choice["text"].as_str().or(choice["delta"]["content"].as_str()))
                .collect();
            assert!(expected["text"] == text || expected["message"]["content"] == text, "{text}");
            assert_eq!(own.last().unwrap()["finish_reason"], expected["finish_reason"]);
            let list =
                |choice: &Value, name: &str| choice["logprobs"][name].as_array().cloned().unwrap_or_default();
            for name in ["content", "tokens", "text_offset", "top_logprobs"] {
                let joined: Vec<Value> = own.iter().flat_map(|choice| list(choice, name)).collect();
                assert_eq!(joined, list(expected, name), "{name}");
            }
        }
    }
}

#[test]
fn request_fields_reach_the_writer() {
    let fixture = Fixture::start();
    let body = json!({
        "model": "made/up", "messages": [{ "role": "user", "content": "Hello" }], "temperature": 0.5, "top_p": 0.9,
        "top_k": 3, "min_p": 0.1, "repeat_penalty": 1.1, "seed": 7, "stop": "END", "max_completion_tokens": 5,
        "ignore_eos": true,
    });
    let _client = asked(fixture.at, CHAT, &body.to_string());
    let (order, _teller) = fixture.order();
    let sampling = &order.sampling;
    assert_eq!((sampling.temperature, sampling.top_p, sampling.top_k), (Some(0.5), Some(0.9), Some(3)));
    assert_eq!((sampling.min_p, sampling.repetition_penalty, sampling.seed), (Some(0.1), Some(1.1), Some(7)));
    assert_eq!((order.max_tokens, order.ignore_end, order.stop), (Some(5), true, vec!["END".to_owned()]));
    assert!(matches!(order.prompt, Prompt::Conversation(messages) if messages[0].content == "Hello"));
}

#[test]
fn invalid_requests_are_refused_with_a_sentence_in_the_protocols_format() {
    let fixture = Fixture::start();
    let at = fixture.at;
    let plain = "POST /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
    let cut = head("POST", CHAT, "", 50) + "{\"messages\":";
    let cut = send(at, &cut);
    cut.shutdown(std::net::Shutdown::Write).unwrap();
    let cases = [
        (get(at, "/v2/models"), 404, "Unknown path /v2/models"),
        (get(at, CHAT), 405, "This path accepts POST only."),
        (post(at, "/v1/models", "{}"), 405, "This path accepts GET only."),
        (answer(send(at, plain)), 415, "The request must be JSON"),
        (post(at, CHAT, "{"), 400, "The request is not valid JSON"),
        (post(at, CHAT, "{}"), 400, "messages: expected a list"),
        (post(at, CHAT, &"[".repeat(1 << 20)), 400, "The request is not valid JSON"),
        (
            post(at, CHAT, &format!("{{\"a\":\"{}\"}}", "a".repeat(5 << 20))),
            413,
            "The request is too large: the limit is 4 MiB",
        ),
        (
            post(at, CHAT, r#"{"model":"other","messages":[{"role":"user","content":""}]}"#),
            404,
            "The model 'other' is not",
        ),
        (get(at, "/v1/models/other"), 404, "The model 'other' is not loaded"),
    ];
    for (answer, status, message) in cases {
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.message().starts_with(message), "{message}: {}", answer.body);
        assert!(answer.json()["error"]["type"].is_string());
    }
    // The client of an interrupted request is gone.
    drop(cut);
    assert!(fixture.orders.try_recv().is_err(), "nothing reached the writer");
}

#[test]
fn a_request_over_the_limit_is_refused_even_without_a_content_length() {
    let fixture = Fixture::start();
    let mut request =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                       Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_owned();
    for _ in 0..80 {
        request += &format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    }
    let answered = answer(send(fixture.at, &request));
    assert_eq!(answered.status, 413);
}

#[test]
fn foreign_hosts_and_web_pages_are_refused_and_the_key_grants_access() {
    let fixture = Fixture::with_key("secret");
    let ask = |headers: &str| {
        let request = format!("GET /v1/models HTTP/1.0\r\n{headers}\r\n");
        answer(send(fixture.at, &request)).status
    };
    let key = "Authorization: Bearer secret\r\n";
    assert_eq!(ask(&format!("Host: localhost\r\n{key}")), 200);
    assert_eq!(ask(&format!("Host: 127.0.0.1:{}\r\n{key}", fixture.at.port())), 200);
    assert_eq!(ask("Host: localhost\r\n"), 401);
    assert_eq!(ask("Host: localhost\r\nAuthorization: Bearer secreT\r\n"), 401);
    assert_eq!(ask(&format!("Host: evil.example\r\n{key}")), 403);
    assert_eq!(ask(key), 403);
    assert_eq!(ask(&format!("Host: localhost\r\nOrigin: https://evil.example\r\n{key}")), 403);
    assert_eq!(ask(&format!("Host: localhost\r\nOrigin: null\r\n{key}")), 403);
    // A CORS preflight request.
    let preflight = "OPTIONS /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\
                     Access-Control-Request-Method: POST\r\n\r\n";
    let preflight = answer(send(fixture.at, preflight));
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (403, None));
    let refused = answer(send(fixture.at, "GET /v1/models HTTP/1.0\r\nHost: localhost\r\n\r\n"));
    assert_eq!(
        (refused.header("www-authenticate"), refused.json()["error"]["code"].clone()),
        (Some("bearer"), json!("invalid_api_key"))
    );
    assert_eq!(get(fixture.at, "/health").status, 200);
}

#[test]
fn a_request_may_name_a_model_that_is_not_loaded_yet() {
    let fixture = Fixture::start();
    *fixture.writer.others.lock().unwrap() = vec!["small".to_owned(), "made/up".to_owned()];
    let listed = get(fixture.at, "/v1/models").json();
    let names: Vec<_> = listed["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(names, ["made/up", "small"]);
    assert_eq!(get(fixture.at, "/v1/models/small").json()["id"], "small");
    let asked_for = |name: &str| with(serde_json::from_str(HELLO).unwrap(), json!({ "model": name }));
    let client = asked(fixture.at, CHAT, &asked_for("small").to_string());
    reply(fixture.order().1);
    assert_eq!(answer(client).json()["model"], "small");
    let client = asked(fixture.at, CHAT, HELLO);
    reply(fixture.order().1);
    assert_eq!(answer(client).json()["model"], "made/up");
    assert_eq!(*fixture.writer.models.lock().unwrap(), ["small", "made/up"]);
    assert_eq!(post(fixture.at, CHAT, &asked_for("large").to_string()).status, 404);
}

#[test]
fn the_loaded_model_is_listed_and_without_one_requests_are_refused() {
    let fixture = Fixture::start();
    let listed = get(fixture.at, "/v1/models").json();
    assert_eq!((&listed["data"][0]["id"], &listed["object"]), (&json!("made/up"), &json!("list")));
    assert_eq!(get(fixture.at, "/v1/models/made/up").json()["id"], "made/up");
    assert_eq!(get(fixture.at, "/health").json(), json!({ "status": "ok" }));
    *fixture.writer.model.lock().unwrap() = None;
    assert_eq!(get(fixture.at, "/v1/models").json()["data"], json!([]));
    for answered in [get(fixture.at, "/health"), post(fixture.at, CHAT, HELLO)] {
        assert_eq!(
            (answered.status, answered.message().as_str()),
            (503, "No model is loaded yet. Try again in a moment.")
        );
    }
}

#[test]
fn replies_are_written_in_order_and_requests_beyond_the_queue_are_refused() {
    let fixture = Fixture::start();
    let first = asked(fixture.at, CHAT, HELLO);
    let (_, sink) = fixture.order();
    let waiting: Vec<TcpStream> = (0..80).map(|_| asked(fixture.at, CHAT, HELLO)).collect();
    // Refusals come immediately; waiting requests have no response yet.
    let refused = |stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        let came = stream.peek(&mut [0]).is_ok();
        stream.set_nonblocking(false).unwrap();
        came
    };
    soon(|| waiting.iter().filter(|stream| refused(stream)).count() == 80 - 64);
    assert!(fixture.orders.try_recv().is_err(), "one at a time");
    let (full, waiting): (Vec<_>, Vec<_>) = waiting.into_iter().partition(refused);
    for stream in full {
        let answered = answer(stream);
        assert_eq!((answered.status, answered.header("retry-after")), (429, Some("1")));
        assert_eq!(answered.message(), "Too many requests are waiting. Try again in a moment.");
    }
    reply(sink);
    for _ in 0..waiting.len() {
        reply(fixture.order().1);
    }
    for stream in [first].into_iter().chain(waiting) {
        assert_eq!(answer(stream).status, 200);
    }
}

#[test]
fn a_client_that_leaves_stops_its_reply_whether_it_streams_or_waits() {
    let fixture = Fixture::start();
    for body in [STREAM, HELLO] {
        let client = asked(fixture.at, CHAT, body);
        let (_, sink) = fixture.order();
        sink.send(Event::Started(9));
        sink.send(Event::Text("Good".to_owned()));
        thread::sleep(Duration::from_millis(50));
        assert!(sink.flow().is_continue());
        // Waits in the queue, then leaves it.
        let waits = asked(fixture.at, CHAT, body);
        thread::sleep(Duration::from_millis(50));
        leave(waits);
        leave(client);
        soon(|| {
            sink.send(Event::Text("more".to_owned()));
            sink.flow().is_break()
        });
        drop(sink);
        let next = asked(fixture.at, CHAT, r#"{"max_tokens":77,"messages":[{"role":"user","content":""}]}"#);
        let (order, sink) = fixture.order();
        assert_eq!(order.max_tokens, Some(77), "the client that left gets no reply");
        reply(sink);
        assert_eq!(answer(next).status, 200);
    }
}

#[test]
fn each_request_is_logged_with_its_model_tokens_and_status() {
    let fixture = Fixture::start();
    let logged = || {
        let entry = fixture.server.requests().into_iter().next().unwrap();
        (entry.path, entry.model, entry.status, entry.tokens, entry.elapsed_ms.is_some())
    };
    let model = Some("made/up".to_owned());
    for body in [HELLO, STREAM] {
        let client = asked(fixture.at, CHAT, body);
        let (_, sink) = fixture.order();
        assert_eq!(logged(), (CHAT.to_owned(), model.clone(), None, None, false));
        reply(sink);
        assert_eq!(answer(client).status, 200);
        soon(|| logged() == (CHAT.to_owned(), model.clone(), Some(200), Some(3), true));
    }
    assert_eq!(post(fixture.at, CHAT, "{").status, 400);
    soon(|| logged() == (CHAT.to_owned(), None, Some(400), None, true));

    // A client that leaves has no token counts.
    let client = asked(fixture.at, CHAT, STREAM);
    let (_, sink) = fixture.order();
    sink.send(Event::Started(9));
    soon(|| logged().2 == Some(200));
    leave(client);
    soon(|| logged() == (CHAT.to_owned(), model.clone(), Some(200), None, true));
    assert_eq!(fixture.server.requests().len(), 4);
}

#[test]
fn stalled_clients_delay_nobody() {
    let fixture = Fixture::start();
    // Stalled in the middle of the head, and of the body.
    let _halves: Vec<TcpStream> = (0..20)
        .flat_map(|_| [send(fixture.at, "POST /v1/chat"), send(fixture.at, &head("POST", CHAT, "", 100))])
        .collect();
    // A client that reads nothing of a reply larger than the connection's buffers.
    let stalled = asked(fixture.at, CHAT, STREAM);
    let (_, sink) = fixture.order();
    sink.send(Event::Started(9));
    let begun = Instant::now();
    for _ in 0..64 {
        sink.send(Event::Text("x".repeat(1 << 20)));
    }
    sink.end(Ok(summary()));
    assert!(begun.elapsed() < Duration::from_secs(5), "the writer waited for the client");
    let next = asked(fixture.at, CHAT, HELLO);
    reply(fixture.order().1);
    assert_eq!(answer(next).status, 200);
    // The unread part is still there.
    assert!(answer(stalled).body.ends_with("data: [DONE]\n\n"));
}

#[test]
fn a_writer_that_refuses_or_fails_is_reported() {
    let fixture = Fixture::start();
    let client = asked(fixture.at, CHAT, STREAM);
    fixture.order().1.end(Err(Refusal::context_length("the prompt is too long.")));
    let refused = answer(client);
    assert_eq!(
        (refused.status, refused.json()["error"]["code"].clone()),
        (400, json!("context_length_exceeded"))
    );

    for (body, streams) in [(HELLO, false), (STREAM, true)] {
        let client = asked(fixture.at, CHAT, body);
        let (_, sink) = fixture.order();
        sink.send(Event::Started(9));
        sink.send(Event::Text("Good".to_owned()));
        // The writer's thread ended.
        drop(sink);
        let failed = answer(client);
        let error = if streams { failed.events().last().unwrap().to_string() } else { failed.body.clone() };
        assert_eq!(failed.status, if streams { 200 } else { 500 });
        let error: Value = serde_json::from_str(&error).unwrap();
        assert!(error["error"]["message"].as_str().unwrap().starts_with("The engine failed on this request"));
        assert!(!failed.body.contains("[DONE]"));
    }
}

#[test]
fn a_connection_serves_several_requests_in_sequence() {
    let (_server, at) = Fixture::start().reply_to_all();
    let mut stream = send(at, "");
    let request = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\n\r\n{HELLO}",
        HELLO.len()
    );
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).unwrap();
        let mut read = String::new();
        while !read.ends_with("}}") {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).unwrap();
            read += std::str::from_utf8(&buffer[..count]).unwrap();
        }
        assert!(read.starts_with("HTTP/1.1 200 OK"), "{read}");
    }
}

#[test]
fn a_stopping_server_finishes_replies_and_frees_its_port_immediately() {
    let fixture = Fixture::start();
    let at = fixture.at;
    let client = asked(at, CHAT, STREAM);
    let (_, sink) = fixture.order();
    sink.send(Event::Started(9));
    let Fixture { server, writer, .. } = fixture;
    let ending = thread::spawn(move || server.finish());
    soon(|| TcpStream::connect(at).is_err());
    let address = Address { host: at.ip().to_string(), port: at.port(), key: String::new() };
    let next = Server::start(&address, writer).unwrap();
    assert!(sink.flow().is_continue());
    reply_end(sink);
    assert!(answer(client).body.ends_with("data: [DONE]\n\n"));
    ending.join().unwrap();
    assert_eq!(get(next.address(), "/health").status, 200);
}

fn reply_end(sink: ReplySink) {
    sink.send(Event::Text("Good day".to_owned()));
    sink.end(Ok(summary()));
}

#[test]
fn a_reply_that_does_not_end_is_dropped_soon_after_the_server() {
    let fixture = Fixture::start();
    let _client = asked(fixture.at, CHAT, STREAM);
    let (_, sink) = fixture.order();
    sink.send(Event::Started(9));
    let begun = Instant::now();
    fixture.server.finish();
    assert!((3..9).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert!(sink.flow().is_break());
}

#[test]
fn connections_that_say_nothing_do_not_keep_others_out() {
    let (_server, at) = Fixture::start().reply_to_all();
    let silent: Vec<_> = (0..300).map(|_| TcpStream::connect(at).unwrap()).collect();
    let begun = Instant::now();
    assert_eq!(get(at, "/health").status, 200);
    assert_eq!(post(at, CHAT, HELLO).status, 200);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(silent);
}
