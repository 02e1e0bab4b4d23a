//! OpenAI's responses with a scripted writer.

use foretoken_engine::session::ToolChoice;
use foretoken_engine::trace::Finish;
use foretoken_model::Role;
use foretoken_server::{Event, Logprob, Order, Prompt};
use foretoken_tests::client::{Answer, answer, asked, get, post};
use serde_json::{Value, json};

use super::{Fixture, with};

const RESPONSES: &str = "/v1/responses";

/// A request with the fields of `more`.
fn body(more: Value) -> Value {
    with(json!({ "input": "Hello" }), more)
}

/// Order of a request.
fn order(more: Value) -> Order {
    Fixture::order_of(RESPONSES, &body(more))
}

/// Answer to a request whose reply has these events.
fn replied(more: Value, events: Vec<Event>, finish: Finish) -> Answer {
    Fixture::replied(RESPONSES, &body(more), events, finish)
}

/// Tools of each kind that is used.
fn tools() -> Value {
    json!([
        { "type": "function", "name": "look", "parameters": { "type": "object" }, "strict": false },
        { "type": "namespace", "name": "mail", "description": "Mail.", "tools": [
            { "type": "function", "name": "send", "description": "Sends.", "parameters": { "type": "object" } },
            { "type": "web_search" },
        ] },
        { "type": "custom", "name": "patch", "description": "Patches.",
          "format": { "type": "grammar", "syntax": "lark", "definition": "start: /a+/" } },
        { "type": "custom", "name": "digits", "format": { "type": "grammar", "syntax": "regex", "definition": "\\d+" } },
        { "type": "web_search", "external_web_access": false },
        { "type": "local_shell" },
    ])
}

fn events() -> Vec<Event> {
    let call = |name: &str, pieces: [&str; 2]| {
        let [first, second] = pieces.map(|piece| Event::Arguments(piece.to_owned()));
        [Event::Call(name.to_owned()), first, second, Event::CallEnded]
    };
    [Event::Thinking("Which".to_owned()), Event::Thinking(" one?".to_owned()), Event::ThinkingTokens(2)]
        .into_iter()
        .chain([Event::Text("Let me".to_owned()), Event::Text(" see.".to_owned())])
        .chain(call("look", ["{\"at\": ", "7}"]))
        .chain(call("mail__send", ["{", "}"]))
        .chain(call("patch", ["{\"input\": \"*** ", "é\\n\"}"]))
        .collect()
}

/// JSON of a stream's events, which are numbered.
fn stream(answer: &Answer) -> Vec<Value> {
    let events = answer.body.split("\n\n").filter(|event| !event.is_empty());
    let event = |(number, event): (usize, &str)| {
        let (name, data) = event.split_once('\n').unwrap();
        let json: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(json["type"], name.strip_prefix("event: ").unwrap());
        assert_eq!(json["sequence_number"], number);
        json
    };
    events.enumerate().map(event).collect()
}

#[test]
fn reasoning_text_and_calls_are_items_of_a_response() {
    let response = replied(json!({ "tools": tools(), "temperature": 0.5 }), events(), Finish::Stop).json();
    assert!(response["id"].as_str().unwrap().starts_with("resp_"));
    let state = [&response["object"], &response["status"], &response["model"], &response["store"]];
    assert_eq!(state, [&json!("response"), &json!("completed"), &json!("made/up"), &json!(false)]);
    assert_eq!(
        response["usage"],
        json!({
            "input_tokens": 9, "input_tokens_details": { "cached_tokens": 4, "cache_write_tokens": 0 },
            "output_tokens": 3, "output_tokens_details": { "reasoning_tokens": 2 }, "total_tokens": 12,
        })
    );
    let repeated = [&response["tools"], &response["tool_choice"], &response["temperature"]];
    assert_eq!(repeated, [&tools(), &json!("auto"), &json!(0.5)]);
    let mut output = response["output"].as_array().unwrap().clone();
    for item in &mut output {
        assert_eq!(item["status"], "completed");
        let item = item.as_object_mut().unwrap();
        item.retain(|name, _| !["id", "call_id", "status"].contains(&name.as_str()));
    }
    let text = json!({ "type": "output_text", "text": "Let me see.", "annotations": [], "logprobs": [] });
    let expected = [
        json!({ "type": "reasoning", "summary": [], "content": [{ "type": "reasoning_text", "text": "Which one?" }] }),
        json!({ "type": "message", "role": "assistant", "content": [text] }),
        json!({ "type": "function_call", "name": "look", "arguments": "{\"at\": 7}" }),
        json!({ "type": "function_call", "name": "send", "namespace": "mail", "arguments": "{}" }),
        json!({ "type": "custom_tool_call", "name": "patch", "input": "*** é\n" }),
    ];
    assert_eq!(output, expected);
}

#[test]
fn a_stream_has_the_events_of_the_protocol_in_order() {
    let answered = replied(json!({ "stream": true, "tools": tools() }), events(), Finish::Stop);
    let events = stream(&answered);
    let names: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap().strip_prefix("response.").unwrap())
        .collect();
    let item = |inner: &[&'static str]| [&["output_item.added"][..], inner, &["output_item.done"]].concat();
    let content = |delta: &'static str, done: &'static str| {
        item(&["content_part.added", delta, delta, done, "content_part.done"])
    };
    let (delta, done) = ("function_call_arguments.delta", "function_call_arguments.done");
    let expected = [
        vec!["created", "in_progress"],
        content("reasoning_text.delta", "reasoning_text.done"),
        content("output_text.delta", "output_text.done"),
        item(&[delta, delta, done]),
        item(&[delta, delta, done]),
        item(&["custom_tool_call_input.delta", "custom_tool_call_input.done"]),
        vec!["completed"],
    ];
    assert_eq!(names, expected.concat());
    // Each item ends as it is in the response.
    let last = &events.last().unwrap()["response"];
    let done = events.iter().filter(|event| event["type"] == "response.output_item.done");
    for (at, (event, item)) in done.zip(last["output"].as_array().unwrap()).enumerate() {
        assert_eq!((&event["item"], &event["output_index"]), (item, &json!(at)));
        let ids = events.iter().filter(|event| event["output_index"] == at && event["item_id"].is_string());
        assert!(ids.clone().count() > 0 && ids.clone().all(|event| event["item_id"] == item["id"]));
    }
    let text: String = events
        .iter()
        .filter(|event| event["type"] == "response.output_text.delta")
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert_eq!(text, "Let me see.");
    assert!(last["id"] == events[0]["response"]["id"] && last["usage"]["total_tokens"] == 12);
}

#[test]
fn a_reply_that_was_cut_is_incomplete_and_one_that_failed_says_so() {
    let cut = || vec![Event::Call("look".to_owned()), Event::Arguments("{\"at\"".to_owned())];
    for finish in [Finish::Length, Finish::ContextFull, Finish::Repeating] {
        let response = replied(json!({}), cut(), finish).json();
        assert_eq!(
            (&response["status"], &response["incomplete_details"], &response["output"][0]["status"]),
            (&json!("incomplete"), &json!({ "reason": "max_output_tokens" }), &json!("incomplete"))
        );
        let events = stream(&replied(json!({ "stream": true }), cut(), finish));
        assert_eq!(events.last().unwrap()["type"], "response.incomplete");
    }
    let fixture = Fixture::start();
    let client = asked(fixture.at, RESPONSES, &body(json!({ "stream": true })).to_string());
    let (_, sink) = fixture.order();
    sink.send(Event::Started(9));
    drop(sink);
    let events = stream(&answer(client));
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    assert_eq!(last["response"]["error"]["code"], "server_error");
}

#[test]
fn fields_and_items_reach_the_writer() {
    let order = order(json!({
        "model": "made/up", "instructions": "Be brief.", "temperature": 0.5, "top_p": 0.9,
        "max_output_tokens": 90, "reasoning": { "effort": "none", "summary": "auto" }, "store": true,
        "include": ["reasoning.encrypted_content"], "prompt_cache_key": "a", "client_metadata": {},
        "parallel_tool_calls": false, "tools": tools(), "tool_choice": "required",
        "text": { "format": { "type": "json_schema", "name": "a", "schema": {} }, "verbosity": "low" },
        "input": [
            { "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "Be kind." }] },
            { "role": "user", "content": "Look" },
            { "role": "user", "content": [{ "type": "input_text", "text": "here" }] },
            { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": null,
              "content": [{ "type": "reasoning_text", "text": "Hm." }] },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
            { "type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"at\": 7}" },
            { "type": "function_call", "call_id": "c2", "name": "send", "namespace": "mail", "arguments": "" },
            { "type": "custom_tool_call", "call_id": "c3", "name": "patch", "input": "aa" },
            { "type": "function_call_output", "call_id": "c1", "output": "a fox" },
            { "type": "function_call_output", "call_id": "c2", "output": [{ "type": "input_text", "text": "sent" }] },
            { "type": "custom_tool_call_output", "call_id": "c3", "output": "patched" },
        ],
    }));
    let sampling = &order.sampling;
    assert_eq!((sampling.temperature, sampling.top_p, order.max_tokens), (Some(0.5), Some(0.9), Some(90)));
    assert_eq!(
        (order.thinking, order.separates_thinking, order.grammar.is_some()),
        (Some(false), true, true)
    );
    let offered = order.tools.unwrap();
    assert_eq!((offered.choice, offered.parallel), (ToolChoice::Required, false));
    let names: Vec<&str> = offered.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["look", "mail__send", "patch", "digits"]);
    let description = offered.tools[2].description.as_deref();
    assert_eq!(description, Some("Patches.\n\nThe input follows this Lark grammar:\nstart: /a+/"));
    assert_eq!(offered.tools[3].parameters["properties"]["input"]["pattern"], "^(?:\\d+)$");
    let Prompt::Conversation(messages) = order.prompt else { panic!() };
    let said: Vec<(Role, &str)> = messages.iter().map(|said| (said.role, said.content.as_str())).collect();
    let expected = [
        (Role::System, "Be brief.\n\nBe kind."),
        (Role::User, "Look\n\nhere"),
        (Role::Assistant, "I look."),
        (Role::Tool, "a fox"),
        (Role::Tool, "sent"),
        (Role::Tool, "patched"),
    ];
    assert_eq!(said, expected);
    assert_eq!(messages[2].thinking.as_deref(), Some("Hm."));
    let calls: Vec<(&str, String)> = messages[2]
        .calls
        .iter()
        .map(|call| (call.name.as_str(), Value::from(call.arguments.clone()).to_string()))
        .collect();
    let expected = [("look", "{\"at\":7}"), ("mail__send", "{}"), ("patch", "{\"input\":\"aa\"}")]
        .map(|(a, b)| (a, b.to_owned()));
    assert_eq!(calls, expected);
    assert_eq!(messages[5].call_id.as_deref(), Some("c3"));
}

#[test]
fn a_choice_of_tools_and_of_reasoning_is_followed() {
    let choice = |choice: Value| {
        order(json!({ "tools": tools(), "tool_choice": choice })).tools.map(|tools| tools.choice)
    };
    assert_eq!(choice(json!("auto")), Some(ToolChoice::Auto));
    assert_eq!(choice(json!("none")), None);
    let named = |name: &str| Some(ToolChoice::Named(name.to_owned()));
    assert_eq!(choice(json!({ "type": "custom", "name": "patch" })), named("patch"));
    let inner = json!({ "type": "function", "name": "send", "namespace": "mail" });
    assert_eq!(choice(inner), named("mail__send"));
    let effort = |effort: Value| order(json!({ "reasoning": { "effort": effort } })).thinking;
    assert_eq!([json!("minimal"), json!("high"), Value::Null].map(effort), [Some(false), Some(true), None]);
    assert!(order(json!({ "text": { "format": { "type": "text" } } })).grammar.is_none());
    assert!(order(json!({ "previous_response_id": null, "background": false })).tools.is_none());
}

/// A data URL of the bytes "fox".
const FOX: &str = "data:image/png;base64,Zm94";

#[test]
fn invalid_requests_are_refused_by_name() {
    let fixture = Fixture::start();
    let refused = |more: Value| post(fixture.at, RESPONSES, &body(more).to_string());
    let item = |item: Value| json!({ "input": [item] });
    let call = |name: &str, arguments: &str| {
        item(json!({ "type": "function_call", "call_id": "a", "name": name, "arguments": arguments }))
    };
    let image = json!([{ "type": "input_image", "image_url": "a" }]);
    for (more, begins) in [
        (json!({ "input": [] }), "input: expected a list with at least one message."),
        (json!({ "input": null }), "input: expected a list with at least one message."),
        (item(json!({ "role": "developer", "content": "a" })), "input: expected a list with at least one"),
        (json!({ "input": 7 }), "input: expected a string or a list of items"),
        (
            item(json!({ "type": "web_search_call", "id": "a" })),
            "input[0]: unknown variant `web_search_call`",
        ),
        (item(json!({ "type": "item_reference", "id": "a" })), "input[0]: unknown variant `item_reference`"),
        (item(json!({ "role": "tool", "content": "a" })), "input[0].role: expected system, developer, user"),
        (
            item(json!({ "role": "user", "content": image })),
            "input[0]: expected a picture as data:image/...;base64,...; no address is fetched.",
        ),
        (
            item(json!({ "role": "assistant", "content": [{ "type": "input_image", "image_url": FOX }] })),
            "input[0]: expected pictures in messages of the user.",
        ),
        (
            item(json!({ "type": "function_call_output", "call_id": "a", "output": image })),
            "input[0]: expected a string, or a list of parts",
        ),
        (item(json!({ "x": "y".repeat(9999) })), "input[0]: missing field `role`"),
        (call("a b", "{}"), "input[0]: expected names of 1 to 128"),
        (call("a", "[]"), "input[0]: expected arguments that are a JSON object"),
        (json!({ "previous_response_id": "resp_1" }), "Responses are not stored here."),
        (json!({ "conversation": "conv_1" }), "This server does not support 'conversation'."),
        (json!({ "background": true }), "This server does not support 'background'."),
        (json!({ "max_output_tokens": 0 }), "max_output_tokens: expected 1 or more."),
        (
            json!({ "tools": tools(), "tool_choice": { "type": "web_search" } }),
            "tool_choice: expected none, auto",
        ),
        (
            json!({ "tools": tools(), "tool_choice": { "type": "function", "name": "b" } }),
            "tool_choice: expected the",
        ),
        (
            json!({ "tools": [{ "type": "namespace", "name": "a b", "tools": [tools()[0]] }] }),
            "tools: expected names",
        ),
        (json!({ "tools": [{ "type": "function" }] }), "tools[0]: missing field `name`"),
        (json!({ "text": { "format": { "type": "xml" } } }), "text.format.type: unknown variant `xml`"),
    ] {
        let answer = refused(more);
        let message = answer.message();
        assert_eq!(answer.status, 400, "{}", answer.body);
        assert!(message.starts_with(begins) && message.len() < 400, "{begins}: {message}");
        assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
    }
    assert_eq!(post(fixture.at, RESPONSES, &"[".repeat(1 << 20)).status, 400);
    assert_eq!(get(fixture.at, RESPONSES).message(), "This path accepts POST only.");
    assert_eq!(get(fixture.at, "/v1/responses/resp_1").status, 404);
    assert!(fixture.orders.try_recv().is_err(), "nothing reached the writer");
}

#[test]
fn log_probabilities_belong_to_the_text_alone_whole_and_in_a_stream() {
    let logprob = |text: &str| {
        let alone = Logprob { bytes: text.as_bytes().to_vec(), logprob: -0.5, top: Vec::new() };
        Event::Logprobs(vec![Logprob { top: vec![alone.clone()], ..alone }])
    };
    let events = || {
        vec![
            Event::Thinking("Hm.".to_owned()),
            logprob("Let"),
            Event::Text("Let".to_owned()),
            logprob(" me"),
            logprob(" see"),
            Event::Text(" me see".to_owned()),
            logprob("<call>"),
            Event::Call("look".to_owned()),
            Event::Arguments("{}".to_owned()),
            Event::CallEnded,
        ]
    };
    let expected = |texts: &[&str]| {
        let one = |text: &&str| json!({ "token": text, "logprob": -0.5, "bytes": text.as_bytes() });
        let all = texts.iter().map(|text| with(one(text), json!({ "top_logprobs": [one(text)] })));
        Value::from_iter(all)
    };
    let asked = json!({ "top_logprobs": 1, "tools": tools() });
    let response = replied(asked.clone(), events(), Finish::Stop).json();
    assert_eq!(response["output"][1]["content"][0]["logprobs"], expected(&["Let", " me", " see"]));
    let streamed = stream(&replied(with(asked, json!({ "stream": true })), events(), Finish::Stop));
    let of = |name: &str| {
        let named = streamed.iter().filter(|event| event["type"] == name);
        named.map(|event| event["logprobs"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(of("response.output_text.delta"), [expected(&["Let"]), expected(&[" me", " see"])]);
    assert_eq!(of("response.output_text.done"), [expected(&["Let", " me", " see"])]);
    let asked = |more: Value| order(more).logprobs;
    assert_eq!(asked(json!({ "include": ["message.output_text.logprobs"] })), Some(0));
    assert_eq!([asked(json!({ "top_logprobs": 20 })), asked(json!({ "top_logprobs": 0 }))], [Some(20), None]);
    let fixture = Fixture::start();
    let refused = post(fixture.at, RESPONSES, &body(json!({ "top_logprobs": 21 })).to_string());
    assert_eq!((refused.status, refused.message()), (400, "top_logprobs: expected 0 to 20.".to_owned()));
}

#[test]
fn some_of_the_tools_are_allowed_while_the_model_sees_all() {
    let allowed = |tools: Value| json!({ "type": "allowed_tools", "mode": "required", "tools": tools });
    let names = json!([
        { "type": "function", "name": "look" },
        { "type": "custom", "name": "patch" },
        { "type": "function", "name": "send", "namespace": "mail" },
        { "type": "web_search" },
    ]);
    let used = order(json!({ "tools": tools(), "tool_choice": allowed(names) })).tools.unwrap();
    assert_eq!((used.tools.len(), used.choice), (4, ToolChoice::Required));
    assert_eq!(used.allowed.unwrap(), ["look", "patch", "mail__send"]);
    let fixture = Fixture::start();
    for tools in [json!([]), json!([{ "type": "function", "name": "hear" }])] {
        let body = body(json!({ "tools": self::tools(), "tool_choice": allowed(tools) }));
        let refused = post(fixture.at, RESPONSES, &body.to_string());
        assert_eq!(refused.message(), "tool_choice: expected the names of some of the tools.");
    }
}
