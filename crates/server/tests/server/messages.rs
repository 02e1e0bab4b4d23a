//! Anthropic's messages with a scripted writer.

use std::thread;

use foretoken_engine::session::ToolChoice;
use foretoken_engine::trace::Finish;
use foretoken_model::Role;
use foretoken_server::{Event, Order, Prompt, Refusal};
use foretoken_tests::client::{Answer, answer, asked, head, post, send};
use serde_json::{Value, json};

use super::{Fixture, with};

const MESSAGES: &str = "/v1/messages";
const COUNT: &str = "/v1/messages/count_tokens";

/// A request with the fields of `more`.
fn body(more: Value) -> Value {
    with(json!({ "max_tokens": 90, "messages": [{ "role": "user", "content": "Hello" }] }), more)
}

/// Order of a request.
fn order(more: Value) -> Order {
    Fixture::order_of(MESSAGES, &body(more))
}

/// Answer to a request whose reply has these events.
fn replied(more: Value, events: Vec<Event>, finish: Finish) -> Answer {
    Fixture::replied(MESSAGES, &body(more), events, finish)
}

fn calls() -> Vec<Event> {
    vec![
        Event::Thinking("Which".to_owned()),
        Event::Thinking(" one?".to_owned()),
        Event::Text("Let me".to_owned()),
        Event::Text(" see.".to_owned()),
        Event::Call("look".to_owned()),
        Event::Arguments("{\"at\": ".to_owned()),
        Event::Arguments("7}".to_owned()),
        Event::CallEnded,
        Event::Call("look".to_owned()),
        Event::Arguments("{}".to_owned()),
        Event::CallEnded,
    ]
}

/// Names and JSON of a stream's events.
fn stream(answer: &Answer) -> Vec<(String, Value)> {
    let events = answer.body.split("\n\n").filter(|event| !event.is_empty());
    let event = |event: &str| {
        let (name, data) = event.split_once('\n').unwrap();
        let json: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(json["type"], name.strip_prefix("event: ").unwrap());
        (json["type"].as_str().unwrap().to_owned(), json)
    };
    events.map(event).collect()
}

#[test]
fn reasoning_text_and_calls_are_blocks_of_a_message() {
    let message = replied(json!({}), calls(), Finish::Stop).json();
    assert!(message["id"].as_str().unwrap().starts_with("msg_"));
    assert_eq!((&message["model"], &message["stop_reason"]), (&json!("made/up"), &json!("tool_use")));
    assert_eq!(
        message["usage"],
        json!({ "input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 3 })
    );
    let content = message["content"].as_array().unwrap();
    assert_eq!(content[0], json!({ "type": "thinking", "thinking": "Which one?", "signature": "" }));
    assert_eq!(content[1], json!({ "type": "text", "text": "Let me see." }));
    assert_eq!(
        (&content[2]["name"], &content[2]["input"]["at"], &content[3]["input"]),
        (&json!("look"), &json!(7), &json!({}))
    );
    assert!(content[2]["id"].as_str().unwrap().starts_with("toolu_") && content[2]["id"] != content[3]["id"]);
}

#[test]
fn a_stream_has_the_events_of_the_protocol_in_order() {
    let events = stream(&replied(json!({ "stream": true }), calls(), Finish::Stop));
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    let block = |deltas: usize| {
        [vec!["content_block_start"], vec!["content_block_delta"; deltas], vec!["content_block_stop"]]
            .concat()
    };
    let expected = [
        vec!["message_start"],
        block(2),
        block(2),
        block(2),
        block(1),
        vec!["message_delta", "message_stop"],
    ];
    assert_eq!(names, expected.concat());
    assert_eq!(events[0].1["message"]["usage"], json!({ "input_tokens": 9, "output_tokens": 0 }));
    let indices: Vec<u64> = events.iter().filter_map(|(_, json)| json["index"].as_u64()).collect();
    assert!(indices.is_sorted() && indices.last() == Some(&3), "{indices:?}");
    let joined = |index: u64, field: &str| -> String {
        let deltas = events.iter().filter(|(_, json)| json["index"] == index);
        deltas.filter_map(|(_, json)| json["delta"][field].as_str()).collect()
    };
    assert_eq!(
        (joined(0, "thinking"), joined(1, "text")),
        ("Which one?".to_owned(), "Let me see.".to_owned())
    );
    assert_eq!(
        (joined(2, "partial_json"), joined(3, "partial_json")),
        ("{\"at\": 7}".to_owned(), "{}".to_owned())
    );
    let (_, delta) = &events[events.len() - 2];
    assert_eq!(delta["delta"], json!({ "stop_reason": "tool_use", "stop_sequence": null }));
    assert_eq!(delta["usage"]["output_tokens"], 3);
}

#[test]
fn the_reason_of_the_end_is_named() {
    let text = || vec![Event::Text("Good".to_owned())];
    let reason = |events, finish| {
        let message = replied(json!({}), events, finish).json();
        (message["stop_reason"].as_str().unwrap().to_owned(), message["stop_sequence"].clone())
    };
    for (finish, expected) in [
        (Finish::Stop, "end_turn"),
        (Finish::Length, "max_tokens"),
        (Finish::Repeating, "max_tokens"),
        (Finish::ContextFull, "model_context_window_exceeded"),
    ] {
        assert_eq!(reason(text(), finish), (expected.to_owned(), Value::Null));
    }
    let stopped = [text(), vec![Event::Stop("END".to_owned())]].concat_events();
    assert_eq!(reason(stopped, Finish::Stop), ("stop_sequence".to_owned(), json!("END")));
    // A call that was cut is none to run.
    let cut = vec![Event::Call("look".to_owned()), Event::Arguments("{\"at\"".to_owned())];
    let message = replied(json!({}), cut, Finish::Length).json();
    assert_eq!(
        (&message["stop_reason"], &message["content"][0]["input"]),
        (&json!("max_tokens"), &json!({}))
    );
    let empty = stream(&replied(json!({ "stream": true }), vec![], Finish::Stop));
    let names: Vec<&str> = empty.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["message_start", "message_delta", "message_stop"]);
}

trait ConcatEvents {
    fn concat_events(self) -> Vec<Event>;
}

impl ConcatEvents for [Vec<Event>; 2] {
    fn concat_events(self) -> Vec<Event> {
        self.into_iter().flatten().collect()
    }
}

#[test]
fn fields_and_blocks_reach_the_writer() {
    let order = order(json!({
        "model": "made/up", "temperature": 0.5, "top_k": 3, "top_p": 0.9, "stop_sequences": ["END"],
        "thinking": { "type": "enabled", "budget_tokens": 1024 }, "metadata": { "user_id": "me" },
        "system": [
            { "type": "text", "text": "x-anthropic-billing-header: cch=12ab;" },
            { "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } },
            { "type": "text", "text": "Be kind." },
        ],
        "tools": [
            { "name": "look", "description": "Looks.", "input_schema": { "type": "object" } },
            { "type": "web_search_20250305", "name": "web_search", "max_uses": 8 },
        ],
        "tool_choice": { "type": "any", "disable_parallel_tool_use": true },
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "Look" }, { "type": "text", "text": "here" }] },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "Hm.", "signature": "" },
                { "type": "redacted_thinking", "data": "x" },
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "toolu_1", "name": "look", "input": { "at": 7 } },
                { "type": "tool_use", "id": "toolu_2", "name": "look", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_1", "content": "a fox" },
                { "type": "tool_result", "tool_use_id": "toolu_2", "is_error": true,
                  "content": [{ "type": "text", "text": "dark" }] },
                { "type": "text", "text": "So?" },
            ] },
        ],
    }));
    let sampling = &order.sampling;
    assert_eq!((sampling.temperature, sampling.top_k, sampling.top_p), (Some(0.5), Some(3), Some(0.9)));
    assert_eq!(
        (order.max_tokens, order.thinking, order.stop),
        (Some(90), Some(true), vec!["END".to_owned()])
    );
    assert!(order.separates_thinking);
    let tools = order.tools.unwrap();
    assert_eq!((tools.tools.len(), tools.choice, tools.parallel), (1, ToolChoice::Required, false));
    let Prompt::Conversation(messages) = order.prompt else { panic!() };
    let said: Vec<(Role, &str)> = messages.iter().map(|said| (said.role, said.content.as_str())).collect();
    let expected = [
        (Role::System, "Be brief.\n\nBe kind."),
        (Role::User, "Look\n\nhere"),
        (Role::Assistant, "I look."),
        (Role::Tool, "a fox"),
        (Role::Tool, "Error: dark"),
        (Role::User, "So?"),
    ];
    assert_eq!(said, expected);
    assert_eq!(messages[2].thinking.as_deref(), Some("Hm."));
    assert_eq!((messages[2].calls.len(), messages[2].calls[0].arguments["at"].as_u64()), (2, Some(7)));
    assert_eq!(messages[4].call_id.as_deref(), Some("toolu_2"));
}

#[test]
fn a_choice_of_tools_and_of_thinking_is_followed() {
    let tools = json!([{ "name": "a", "input_schema": {} }, { "name": "b", "input_schema": {} }]);
    let choice = |choice: Value| {
        let order = order(json!({ "tools": tools, "tool_choice": choice }));
        order.tools.map(|tools| (tools.choice, tools.parallel))
    };
    assert_eq!(choice(Value::Null), Some((ToolChoice::Auto, true)));
    assert_eq!(choice(json!({ "type": "auto" })), Some((ToolChoice::Auto, true)));
    let named = json!({ "type": "tool", "name": "b", "disable_parallel_tool_use": true });
    assert_eq!(choice(named), Some((ToolChoice::Named("b".to_owned()), false)));
    assert_eq!(choice(json!({ "type": "none" })), None);
    let thinking = |kind: &str| order(json!({ "thinking": { "type": kind } })).thinking;
    assert_eq!(["enabled", "disabled", "adaptive"].map(thinking), [Some(true), Some(false), None]);
    let schema = json!({ "format": { "type": "json_schema", "schema": { "type": "object" } } });
    assert!(order(json!({ "output_config": schema })).grammar.is_some());
}

#[test]
fn invalid_requests_are_refused_in_the_format_of_the_protocol() {
    let fixture = Fixture::with_key("secret");
    let ask = |path: &str, json: &str| {
        let key = "x-api-key: secret\r\nanthropic-version: 2023-06-01\r\nanthropic-beta: a,b\r\n";
        answer(send(fixture.at, &(head("POST", path, key, json.len()) + json)))
    };
    let result = json!({ "type": "tool_result", "tool_use_id": "a", "content": [{ "type": "image" }] });
    let say = |role: &str, block: Value| json!({ "messages": [{ "role": role, "content": [block] }] });
    let call = json!({ "type": "tool_use", "id": "a", "name": "a b", "input": {} });
    let list = json!({ "type": "tool_use", "id": "a", "name": "a", "input": [] });
    let tool = |name: &str| json!([{ "name": name, "input_schema": {} }]);
    for (more, begins) in [
        (json!({ "messages": [] }), "messages: expected a list with at least one message."),
        (json!({ "messages": [{ "role": "system", "content": "a" }] }), "messages[0].role: expected user or"),
        (json!({ "messages": [{ "role": "user" }] }), "messages[0]: missing field `content`"),
        (
            say("user", json!({ "type": "image" })),
            "messages[0].content: expected a string, or a list of blocks",
        ),
        (
            say("user", json!({ "type": "image", "source": { "type": "url", "url": "http://a/b.png" } })),
            "messages[0].content: expected a string, or a list of blocks",
        ),
        (
            say("assistant", json!({ "type": "image", "source": { "type": "base64", "data": "Zm94" } })),
            "messages[0].content: expected thinking and tool_use of the assistant, image and",
        ),
        (
            say("user", json!({ "type": "image", "source": { "type": "base64", "data": "?" } })),
            "messages[0].content: expected a picture in Base64.",
        ),
        (say("user", result), "messages[0].content: expected a string, or a list of blocks"),
        (say("user", call.clone()), "messages[0].content: expected thinking and tool_use of the assistant"),
        (say("assistant", call), "messages[0].content: expected names of 1 to 128"),
        (say("assistant", list), "messages[0].content: expected a string, or a list of blocks"),
        (json!({ "system": 7 }), "system: expected a string, or a list of blocks of type 'text'"),
        (json!({ "max_tokens": 0 }), "max_tokens: expected 1 or more."),
        (json!({ "stop_sequences": vec!["a"; 129] }), "stop_sequences: expected at most 128 strings"),
        (json!({ "tools": tool("look at") }), "tools: expected names of 1 to 128"),
        (
            json!({ "tools": tool("a"), "tool_choice": { "type": "tool", "name": "b" } }),
            "tool_choice: expected the",
        ),
        (json!({ "tools": tool("a"), "tool_choice": "auto" }), "tool_choice: invalid type"),
        (json!({ "mcp_servers": [{ "url": "a" }] }), "This server does not support 'mcp_servers'."),
        (json!({ "thinking": { "type": "hard" } }), "thinking.type: unknown variant `hard`"),
    ] {
        for path in [MESSAGES, COUNT] {
            let refused = ask(path, &body(more.clone()).to_string());
            let error = refused.json();
            assert_eq!((refused.status, &error["type"]), (400, &json!("error")), "{}", refused.body);
            assert_eq!(error["error"]["type"], "invalid_request_error");
            let message = error["error"]["message"].as_str().unwrap();
            assert!(message.starts_with(begins) && message.len() < 400, "{begins}: {message}");
        }
    }
    let kind = |answer: Answer| (answer.status, answer.json()["error"]["type"].as_str().unwrap().to_owned());
    let refused = |status: u16, kind: &str| (status, kind.to_owned());
    assert_eq!(kind(ask(MESSAGES, "{")), refused(400, "invalid_request_error"));
    assert_eq!(kind(ask(MESSAGES, &"[".repeat(1 << 20))), refused(400, "invalid_request_error"));
    assert_eq!(kind(ask("/v1/messages/other", "{}")), refused(404, "not_found_error"));
    let other = body(json!({ "model": "claude-opus" })).to_string();
    assert_eq!(kind(ask(MESSAGES, &other)), refused(404, "not_found_error"));
    let long = format!("{{\"a\":\"{}\"}}", "a".repeat(5 << 20));
    assert_eq!(kind(ask(MESSAGES, &long)), refused(413, "request_too_large"));
    assert_eq!(kind(post(fixture.at, MESSAGES, "{}")), refused(401, "authentication_error"));
    *fixture.writer.model.lock().unwrap() = None;
    assert_eq!(kind(ask(MESSAGES, &body(json!({})).to_string())), refused(503, "api_error"));
    assert!(fixture.orders.try_recv().is_err(), "nothing reached the writer");
}

#[test]
fn a_failure_ends_a_stream_with_an_error_and_without_message_stop() {
    let fixture = Fixture::start();
    let client = asked(fixture.at, MESSAGES, &body(json!({ "stream": true })).to_string());
    let (_, sink) = fixture.order();
    sink.send(Event::Started(9));
    sink.send(Event::Text("Good".to_owned()));
    drop(sink);
    let events = stream(&answer(client));
    let (name, error) = events.last().unwrap();
    assert_eq!((name.as_str(), &error["error"]["type"]), ("error", &json!("api_error")));
    assert!(events.iter().all(|(name, _)| name != "message_stop"));
    let client = asked(fixture.at, MESSAGES, &body(json!({})).to_string());
    fixture.order().1.end(Err(Refusal::context_length("the prompt is too long.")));
    let refused = answer(client);
    assert_eq!(
        (refused.status, refused.json()["error"].clone()),
        (400, json!({ "type": "invalid_request_error", "message": "the prompt is too long." }))
    );
}

#[test]
fn tokens_are_counted_while_a_reply_is_written() {
    let fixture = Fixture::start();
    let client = asked(fixture.at, MESSAGES, &body(json!({})).to_string());
    let (_, sink) = fixture.order();
    sink.send(Event::Started(9));
    // The scripted writer counts bytes.
    let counted = post(fixture.at, COUNT, &body(json!({ "system": "Be brief." })).to_string());
    assert_eq!((counted.status, counted.json()), (200, json!({ "input_tokens": 14 })));
    super::reply_end(sink);
    assert_eq!(answer(client).status, 200);
}

#[test]
fn a_full_queue_is_an_overload() {
    let fixture = Fixture::start();
    let request = body(json!({})).to_string();
    let _first = asked(fixture.at, MESSAGES, &request);
    let (_, _sink) = fixture.order();
    let waiting: Vec<_> = (0..65).map(|_| asked(fixture.at, MESSAGES, &request)).collect();
    // The last of them finds no place, whichever that is.
    let (found, refused) = std::sync::mpsc::channel();
    for stream in waiting {
        let found = found.clone();
        thread::spawn(move || found.send(answer(stream)));
    }
    let refused = refused.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    assert_eq!((refused.status, refused.header("retry-after")), (529, Some("1")));
    assert_eq!(refused.json()["error"]["type"], "overloaded_error");
}

#[test]
fn heads_and_queries_are_passed_over() {
    let fixture = Fixture::start();
    for path in ["/", "/v1", "/v1/messages", "/v1/messages?beta=true", "/v1/models"] {
        let headed = answer(send(fixture.at, &head("HEAD", path, "", 0)));
        assert_eq!((headed.status, headed.body.as_str()), (200, ""), "{path}");
    }
    let counted = post(fixture.at, "/v1/messages/count_tokens?beta=true", &body(json!({})).to_string());
    assert_eq!(counted.json()["input_tokens"], 5);
}
