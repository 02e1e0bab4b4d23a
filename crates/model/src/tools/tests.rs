use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::template::{ChatMessage, ChatTemplate, Conversation, Renderer, Role, Thinking};
use foretoken_testkit::data;

const THINK: Thinking = Thinking::KNOWN[0];

fn call(name: &str, arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!() };
    ToolCall { id: format!("call_{name}"), name: name.to_owned(), arguments }
}

fn tool() -> Tool {
    let description = Some("Returns the weather.".to_owned());
    Tool { name: "weather".to_owned(), description, parameters: json!({ "type": "object" }) }
}

/// A conversation in which a tool was called twice.
fn asked() -> Vec<ChatMessage> {
    let result = |content: &str, id: &str| ChatMessage {
        call_id: Some(id.to_owned()),
        ..ChatMessage::new(Role::Tool, content)
    };
    let calls = vec![call("weather", json!({ "city": "Paris", "at": [1] })), call("weather", json!({}))];
    vec![
        ChatMessage::new(Role::User, "Is it raining?"),
        ChatMessage { calls, ..ChatMessage::new(Role::Assistant, "Let me see.") },
        result("yes", "call_weather"),
        result("no", "call_weather"),
    ]
}

fn template(name: &str) -> ChatTemplate {
    let source = std::fs::read_to_string(data(&format!("templates/{name}.jinja"))).unwrap();
    ChatTemplate::new(name.into(), source, Some(""), Some(""), &Renderer::in_this_process()).unwrap()
}

#[test]
fn templates_that_write_calls_in_a_known_form_are_recognised() {
    let own = |name| Some(template(name)).filter(ChatTemplate::has_own_calls).map(|own| own.calls());
    for name in ["Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "ibm-granite-granite-4.0"] {
        assert_eq!(own(name), Some(CallForm::HERMES), "{name}");
    }
    for name in ["meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct"] {
        assert_eq!(own(name), Some(CallForm::LLAMA), "{name}");
    }
    for name in ["Qwen3-Coder", "Qwen3.5-4B"] {
        assert_eq!(own(name), Some(CallForm::QWEN_CODER), "{name}");
    }
    for name in ["google-gemma-2-2b-it", "HuggingFaceTB-SmolLM3-3B", "openai-gpt-oss-120b"] {
        assert_eq!(own(name), None, "{name}");
        assert_eq!(template(name).calls(), CallForm::HERMES);
    }
}

#[test]
fn calls_and_results_are_rendered_as_the_model_writes_them() {
    let (tools, messages) = ([tool()], asked());
    let conversation = Conversation { messages: &messages, tools: &tools, thinking: None };
    let text = template("Qwen-Qwen2.5-7B-Instruct").render_with(&conversation, true).unwrap();
    let called = "<|im_start|>assistant\nLet me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": \
                  {\"city\": \"Paris\", \"at\": [1]}}\n</tool_call>\n<tool_call>\n{\"name\": \"weather\", \
                  \"arguments\": {}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nyes\n\
                  </tool_response>\n<tool_response>\nno\n</tool_response><|im_end|>\n<|im_start|>assistant\n";
    assert!(text.ends_with(called), "{text}");
    let described = "{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"description\": \"Returns \
                     the weather.\", \"parameters\": {\"type\": \"object\"}}}\n</tools>";
    assert!(text.contains(described), "{text}");
}

#[test]
fn templates_without_tools_get_them_as_text() {
    let (tools, messages) = ([tool()], asked());
    let text = as_text(&Conversation { messages: &messages, tools: &tools, thinking: None });
    assert!(text.iter().all(|message| message.calls.is_empty()));
    let roles: Vec<Role> = text.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
    assert!(
        text[0].content.contains("\"name\": \"weather\", \"description\": \"Returns"),
        "{}",
        text[0].content
    );
    assert_eq!(text[2].content, format!("Let me see.\n{}", CallForm::HERMES.all_written(&messages[1].calls)));
    assert_eq!(
        text[3].content,
        "<tool_response>\nyes\n</tool_response>\n<tool_response>\nno\n</tool_response>"
    );
    let system = [ChatMessage::new(Role::System, "Be brief.")];
    let text = as_text(&Conversation { messages: &system, tools: &tools, thinking: None });
    assert!(text.len() == 1 && text[0].content.starts_with("Be brief.\n\nYou can call"));
}

/// Text and calls of a reply, from any pieces.
fn joined(pieces: Vec<Piece>) -> (String, Vec<(String, String, bool)>) {
    let (mut text, mut calls) = (String::new(), Vec::<(String, String, bool)>::new());
    for piece in pieces {
        match piece {
            Piece::Text(more) => text.push_str(&more),
            Piece::Call(name) => calls.push((name, String::new(), false)),
            Piece::Arguments(json) => calls.last_mut().unwrap().1.push_str(&json),
            Piece::End => calls.last_mut().unwrap().2 = true,
        }
    }
    (text, calls)
}

/// Parses a reply in these pieces.
fn parsed<'a>(
    form: CallForm,
    thinking: Option<Thinking>,
    reply: impl IntoIterator<Item = &'a str>,
) -> (String, Vec<(String, String, bool)>) {
    let mut parser = CallParser::new(form, thinking, false);
    let mut pieces: Vec<Piece> = reply.into_iter().flat_map(|text| parser.push(text)).collect();
    pieces.extend(parser.finish());
    joined(pieces)
}

/// Form, tags around reasoning and text of a reply, and the text and calls that are found in it.
type Case = (CallForm, Option<Thinking>, String, String, Vec<(&'static str, &'static str)>);

fn replies() -> Vec<Case> {
    let hermes = CallForm::HERMES;
    let written = |name: &str, arguments: &str| {
        format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
    };
    let hard = r#"{"a": "}\"\\", "b": {"c": [{}, "{"]}, "ä": "€</tool_call>"}"#;
    let two = format!("See:\n\n{}\n{}", written("one", "{}"), written("two", hard));
    let thought = format!("<think>\n{}\n</think>\n\n{}", written("no", "{}"), written("yes", "{}"));
    let reasoning = thought[..thought.find("</think>").unwrap() + 8].to_owned();
    let llama = |reply: &str, text: &str, calls| -> Case {
        (CallForm::LLAMA, None, reply.to_owned(), text.to_owned(), calls)
    };
    let cut = "Hello, wörld <tool_cal \n";
    vec![
        (hermes, None, cut.to_owned(), cut.to_owned(), vec![]),
        (hermes, None, written("one", hard), String::new(), vec![("one", hard)]),
        (hermes, None, two, "See:".to_owned(), vec![("one", "{}"), ("two", hard)]),
        (hermes, Some(THINK), thought, reasoning, vec![("yes", "{}")]),
        (hermes, Some(THINK), format!("  {}", written("one", "{}")), String::new(), vec![("one", "{}")]),
        llama(r#"{"name": "one", "parameters": {"a": {}}}"#, "", vec![("one", r#"{"a": {}}"#)]),
        llama(r#"So {"name": "one""#, r#"So {"name": "one""#, vec![]),
        llama(r#"{"names": 1}"#, r#"{"names": 1}"#, vec![]),
    ]
}

fn assert_parsed<'a>(
    form: CallForm,
    thinking: Option<Thinking>,
    parts: impl IntoIterator<Item = &'a str>,
    text: &str,
    calls: &[(&str, &str)],
) {
    let (found, found_calls) = parsed(form, thinking, parts);
    let complete: Vec<(&str, &str, bool)> =
        calls.iter().map(|&(name, arguments)| (name, arguments, true)).collect();
    let found_calls: Vec<(&str, &str, bool)> =
        found_calls.iter().map(|(name, json, ended)| (&name[..], &json[..], *ended)).collect();
    assert_eq!((found.as_str(), found_calls), (text, complete));
}

#[test]
fn calls_are_found_in_a_reply_at_once_in_two_parts_and_by_character() {
    for (form, thinking, reply, text, calls) in replies() {
        for (at, _) in reply.char_indices() {
            assert_parsed(form, thinking, [&reply[..at], &reply[at..]], &text, &calls);
        }
        let characters: Vec<String> = reply.chars().map(String::from).collect();
        assert_parsed(form, thinking, characters.iter().map(String::as_str), &text, &calls);
    }
}

#[test]
fn arguments_between_tags_become_json_by_the_tools_schemas() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string" }, "kind": { "enum": ["a", "1"] }, "count": { "type": "integer" },
            "list": { "type": "array" }, "either": { "type": ["string", "null"] },
        },
    });
    let tools = [Tool { name: "edit".to_owned(), description: None, parameters }];
    let tag = |name: &str, value: &str| format!("<parameter={name}>\n{value}\n</parameter>\n");
    let call = |tool: &str, arguments: &[String]| {
        format!("<tool_call>\n<function={tool}>\n{}</function>\n</tool_call>", arguments.concat())
    };
    let values = [
        tag("text", "7\n\"</parameter>\" é\n"),
        tag("kind", "1"),
        tag("count", "7"),
        tag("list", "[1, {\"a\": \"b\"}]"),
        tag("either", "null"),
        tag("other", "so"),
    ];
    let reply =
        format!("See:\n{}\n{}\n{}", call("edit", &values), call("edit", &[]), call("what", &values[1..2]));
    let expected = concat!(
        r#"{"text": "7\n\"</parameter>\" é\n", "kind": "1", "count": 7, "list": [1, {"a": "b"}], "#,
        r#""either": null, "other": "so"}"#
    );
    let calls = [("edit", expected), ("edit", "{}"), ("what", r#"{"kind": 1}"#)];
    let calls: Vec<(String, String, bool)> =
        calls.iter().map(|&(name, json)| (name.to_owned(), json.to_owned(), true)).collect();
    for length in 1..reply.len() {
        let mut parser = CallParser::new(CallForm::QWEN_CODER, None, false).of_tools(&tools);
        let characters: Vec<char> = reply.chars().collect();
        let parts = characters.chunks(length).map(|part| part.iter().collect::<String>());
        let mut pieces: Vec<Piece> = parts.flat_map(|part| parser.push(&part)).collect();
        pieces.extend(parser.finish());
        assert_eq!(joined(pieces), ("See:".to_owned(), calls.clone()), "{length}");
    }
    // What was read is rendered as the model wrote it.
    let arguments: Value = serde_json::from_str(expected).unwrap();
    assert_eq!(CallForm::QWEN_CODER.written(&self::call("edit", arguments)), call("edit", &values));
}

#[test]
fn a_call_that_is_cut_has_no_end() {
    let reply = "Hm.\n<tool_call>\n{\"name\": \"one\", \"arguments\": {\"a\": \"b";
    let found = parsed(CallForm::HERMES, None, [reply]);
    assert_eq!(found, ("Hm.".to_owned(), vec![("one".to_owned(), "{\"a\": \"b".to_owned(), false)]));
    assert_eq!(parsed(CallForm::HERMES, None, [&reply[..20]]), ("Hm.".to_owned(), Vec::new()));
}

#[test]
fn names_of_tools_are_short_and_plain() {
    assert!(Tool::is_name("read_file-2") && Tool::is_name(&"a".repeat(128)));
    for name in ["", &"a".repeat(129), "a b", "é", "a\"", "a.b"] {
        assert!(!Tool::is_name(name), "{name}");
    }
}

proptest! {
    #[test]
    fn calls_are_found_in_any_parts(which in 0..8usize, cuts in prop::collection::vec(0.0..1.0f64, 0..20)) {
        let (form, thinking, reply, text, calls) = replies().swap_remove(which);
        let mut cuts: Vec<usize> = cuts.iter().map(|share| (share * reply.len() as f64) as usize).collect();
        cuts.retain(|&at| reply.is_char_boundary(at));
        cuts.extend([0, reply.len()]);
        cuts.sort_unstable();
        assert_parsed(form, thinking, cuts.windows(2).map(|cut| &reply[cut[0]..cut[1]]), &text, &calls);
    }

    #[test]
    fn text_without_calls_is_unchanged(reply in "[a-z<>_ \n{\":]{0,40}", form in 0..3usize) {
        let form = CallForm::ALL[form];
        prop_assume!(!reply.contains(form.open));
        let characters: Vec<String> = reply.chars().map(String::from).collect();
        let found = parsed(form, None, characters.iter().map(String::as_str));
        prop_assert_eq!(found, (reply, Vec::new()));
    }
}
