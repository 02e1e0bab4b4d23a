use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::template::{ChatMessage, ChatTemplate, Conversation, Renderer, Role, Thinking};
use crate::token::TokenId;
use crate::{ModelSource, Special, TextStream, Tokenizer};
use foretoken_testkit::data;
use std::sync::Arc;

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
    let own = |name| Some(*template(name).tools()).filter(TemplateTools::is_complete).map(|own| own.form);
    for name in ["Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "ibm-granite-granite-4.0"] {
        assert_eq!(own(name), Some(CallForm::HERMES), "{name}");
    }
    for name in ["meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct"] {
        assert_eq!(own(name), Some(CallForm::LLAMA), "{name}");
    }
    for name in ["Qwen3-Coder", "Qwen3.5-4B"] {
        assert_eq!(own(name), Some(CallForm::QWEN_CODER), "{name}");
    }
    for (name, form) in [
        ("google-gemma-4-31B-it", CallForm::GEMMA),
        ("openai-gpt-oss-120b", CallForm::HARMONY),
        ("mistralai-Mistral-Nemo-Instruct-2407", CallForm::NEMO),
        ("Mistral-Small-3.2-24B-Instruct-2506", CallForm::MISTRAL_IDS),
        ("mistralai-Ministral-3-14B-Reasoning-2512", CallForm::MISTRAL),
        ("GLM-4.6", CallForm::GLM),
        ("GLM-4.7-Flash", CallForm::GLM_4_7),
        ("LFM2.5-8B-A1B", CallForm::LFM),
    ] {
        assert_eq!(own(name), Some(form), "{name}");
    }
    let knows = |lists, calls, form| TemplateTools { form, lists, calls, results: true };
    for (name, tools) in [
        ("deepseek-ai-DeepSeek-V3.1", knows(false, true, CallForm::DEEPSEEK)),
        ("LFM2-8B-A1B", knows(true, false, CallForm::LFM)),
        ("LFM2.5-Instruct", knows(true, false, CallForm::LFM)),
        ("microsoft-Phi-4-mini-instruct", knows(true, false, CallForm::PHI)),
        ("meetkai-functionary-medium-v3.1", knows(true, false, CallForm::FUNCTIONARY)),
    ] {
        assert_eq!(*template(name).tools(), tools, "{name}");
    }
    for name in ["google-gemma-2-2b-it", "HuggingFaceTB-SmolLM3-3B"] {
        assert_eq!(*template(name).tools(), TemplateTools::NONE, "{name}");
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
    let as_text = |messages: &[ChatMessage]| {
        let (tools, messages) =
            for_template(&Conversation { messages, tools: &tools, thinking: None }, &TemplateTools::NONE);
        assert!(tools.is_empty());
        messages
    };
    let text = as_text(&messages);
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
    let text = as_text(&system);
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

/// A tokenizer with a token for each byte and for each marker of calls, and for `others`.
fn marker_tokenizer(others: &[&str]) -> Arc<Tokenizer> {
    let mut gguf = foretoken_testkit::Gguf::tiny();
    gguf.tensors.clear();
    // Most files list them as control tokens.
    gguf.extend_vocabulary(MARKS.iter().chain(others).map(|&mark| (mark.to_owned(), 3)));
    let folder = tempfile::tempdir().unwrap();
    Arc::new(ModelSource::open(&gguf.write(folder.path())).unwrap().tokenizer().unwrap())
}

/// Two tools, of which the first takes texts and other values.
fn edit_tools() -> [Tool; 2] {
    let parameters = json!({
        "type": "object",
        "properties": { "text": { "type": "string" }, "count": { "type": "integer" }, "all": {} },
    });
    let tool = |name: &str, parameters| Tool { name: name.to_owned(), description: None, parameters };
    [tool("edit", parameters), tool("undo", json!({ "type": "object" }))]
}

/// Calls with values that are hard to write, in the order of their keys.
fn hard_calls() -> Vec<ToolCall> {
    let text = "7\n'\"\\ é🦊 } ) ] <a> , end";
    let all = json!([true, null, -1.5, { "a": ["b", {}] }, "c"]);
    vec![
        call("edit", json!({ "all": all, "count": 7, "text": text })),
        call("undo", json!({})),
        call("edit", json!({ "text": "" })),
    ]
}

/// Text and calls that a parser finds in tokens, in parts of so many.
fn found_in(
    mut parser: CallParser,
    tokens: &[(TokenId, String)],
    length: usize,
) -> (String, Vec<(String, Value, bool)>) {
    let parts = tokens.chunks(length);
    let push =
        |part: &[(TokenId, String)]| parser.push_tokens(part.iter().map(|(token, text)| (*token, &text[..])));
    let mut pieces: Vec<Piece> = parts.flat_map(push).collect();
    pieces.extend(parser.finish());
    let (text, calls) = joined(pieces);
    let value = |json: &str| serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    (text, calls.into_iter().map(|(name, json, ended)| (name, value(&json), ended)).collect())
}

/// Tokens of a reply, with the text that each adds.
fn streamed(tokenizer: &Arc<Tokenizer>, prompt: &str, reply: &str) -> Vec<(TokenId, String)> {
    let tokens = |text: &str| tokenizer.encode(text, Special::Parse).unwrap();
    let mut stream = TextStream::new(Arc::clone(tokenizer), &[]).after(&tokens(prompt));
    tokens(reply).into_iter().map(|token| (token, stream.push(token))).collect()
}

#[test]
fn every_form_is_read_back_at_every_split_with_markers_as_tokens_and_as_letters() {
    let tokenizer = marker_tokenizer(&[]);
    for form in CallForm::ALL {
        let mut calls = hard_calls();
        calls.iter_mut().for_each(|call| call.id = call_id(7));
        if form.between.is_none() {
            calls.truncate(1);
        }
        let before = if form.place == Place::First { "" } else { "Let me see: [1, 2] {\"a\"" };
        let reply = format!("{before}\n{}", form.all_written(&calls));
        let expected: Vec<(String, Value, bool)> = calls
            .iter()
            .map(|call| (call.name.clone(), Value::Object(call.arguments.clone()), true))
            .collect();
        let letters: Vec<_> = reply.chars().map(|letter| (0, letter.to_string())).collect();
        for length in 1..=letters.len() {
            let parser = CallParser::new(form, None, false).of_tools(&edit_tools());
            let found = found_in(parser, &letters, length);
            assert_eq!(found, (before.to_owned(), expected.clone()), "{form:?} by {length}");
        }
        if form.place == Place::Channel {
            continue;
        }
        let tokens = streamed(&tokenizer, "", &reply);
        for length in 1..=tokens.len() {
            let parser = CallParser::new(form, None, false).of_tokens(&tokenizer).of_tools(&edit_tools());
            let found = found_in(parser, &tokens, length);
            assert_eq!(found, (before.to_owned(), expected.clone()), "{form:?} by {length} tokens");
        }
    }
}

#[test]
fn a_marker_that_is_spelled_letter_by_letter_is_text_where_it_is_a_token() {
    let tokenizer = marker_tokenizer(&[]);
    let spelled = |text: &str| -> Vec<(TokenId, String)> {
        let mut stream = TextStream::new(Arc::clone(&tokenizer), &[]);
        text.bytes().map(TokenId::from).map(|token| (token, stream.push(token))).collect()
    };
    for form in CallForm::ALL.into_iter().filter(|form| form.has_mark()) {
        let call = ToolCall { id: call_id(7), ..call("edit", json!({ "text": "a" })) };
        let written = form.all_written(std::slice::from_ref(&call));
        let parser = || CallParser::new(form, None, false).of_tokens(&tokenizer).of_tools(&edit_tools());
        assert_eq!(found_in(parser(), &spelled(&written), 3), (written.clone(), Vec::new()), "{form:?}");
        // A real call after that, with spellings as its text.
        let quoted =
            ToolCall { arguments: json!({ "text": form.open }).as_object().cloned().unwrap(), ..call };
        let mut tokens = spelled(&format!("{written} and "));
        let real = form.all_written(std::slice::from_ref(&quoted));
        let (before, after) = real.rsplit_once(form.open).unwrap();
        let (before, quotes, after) = match form.open {
            "" => (real.as_str(), "", ""),
            open => (before, open, after),
        };
        tokens.extend(streamed(&tokenizer, "", before));
        tokens.extend(spelled(quotes));
        tokens.extend(streamed(&tokenizer, "", after));
        let expected = ("edit".to_owned(), Value::Object(quoted.arguments.clone()), true);
        assert_eq!(found_in(parser(), &tokens, 1), (format!("{written} and"), vec![expected]), "{form:?}");
    }
}

#[test]
fn a_call_of_gpt_oss_is_found_behind_its_reasoning_whatever_the_order_of_its_header() {
    let marks = ["<|start|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>", "<|constrain|>"];
    let tokenizer = marker_tokenizer(&marks);
    let asked = "<|start|>user<|message|>Why?<|end|><|start|>assistant";
    let thought = "<|channel|>analysis<|message|>to=functions.no?<|end|><|start|>assistant";
    let arguments = "{\"text\": \"<|message|>\"}";
    for header in [
        "<|channel|>commentary to=functions.edit <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.edit<|message|>",
        " to=functions.edit<|channel|>commentary json<|message|>",
    ] {
        let mut tokens = streamed(&tokenizer, asked, &format!("{thought}{header}"));
        let mut stream = TextStream::new(Arc::clone(&tokenizer), &[]);
        tokens.extend(arguments.bytes().map(TokenId::from).map(|token| (token, stream.push(token))));
        for length in 1..=tokens.len() {
            let parser = CallParser::new(CallForm::HARMONY, Some(THINK), false).of_tokens(&tokenizer);
            let expected = vec![("edit".to_owned(), json!({ "text": "<|message|>" }), true)];
            let text = "<think>\nto=functions.no?\n</think>".to_owned();
            assert_eq!(found_in(parser, &tokens, length), (text, expected), "{header}");
        }
    }
}

#[test]
fn calls_have_ids_that_every_template_accepts_and_messages_of_their_own_where_one_is_allowed() {
    let asked = |id: &str| ToolCall { id: id.to_owned(), ..call("weather", json!({})) };
    let result = |id: &str| ChatMessage { call_id: Some(id.to_owned()), ..ChatMessage::new(Role::Tool, id) };
    let calls = vec![asked("call_a"), asked("call_b")];
    let messages = [
        ChatMessage::new(Role::User, "Why?"),
        ChatMessage { calls, ..ChatMessage::new(Role::Assistant, "So:") },
        result("call_b"),
        result("call_a"),
        ChatMessage::new(Role::User, "Oh."),
    ];
    let tools = [tool()];
    let shown = |form| {
        let template = TemplateTools { form, lists: true, calls: true, results: true };
        let conversation = Conversation { messages: &messages, tools: &tools, thinking: None };
        let (tools, messages) = for_template(&conversation, &template);
        assert_eq!(tools.len(), 1);
        let shown = |message: &ChatMessage| {
            let calls = message.calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>().join(",");
            format!("{}|{calls}|{}", message.content, message.call_id.clone().unwrap_or_default())
        };
        messages.iter().map(shown).collect::<Vec<_>>()
    };
    let [one, two] = [call_id(0), call_id(1)];
    let together = [
        "Why?||".to_owned(),
        format!("So:|{one},{two}|"),
        format!("call_b||{two}"),
        format!("call_a||{one}"),
        "Oh.||".to_owned(),
    ];
    assert_eq!(shown(CallForm::NEMO), together);
    let apart = [
        "Why?||".to_owned(),
        format!("So:|{one}|"),
        format!("call_a||{one}"),
        format!("|{two}|"),
        format!("call_b||{two}"),
        "Oh.||".to_owned(),
    ];
    assert_eq!(shown(CallForm::LLAMA), apart);
}

#[test]
fn templates_that_write_no_calls_get_them_as_the_models_own_text() {
    let (tools, messages) = ([tool()], asked());
    let lfm = template("LFM2.5-Instruct");
    let conversation = Conversation { messages: &messages, tools: &tools, thinking: None };
    let (tools, messages) = for_template(&conversation, lfm.tools());
    let text =
        lfm.render_with(&Conversation { messages: &messages, tools: &tools, thinking: None }, true).unwrap();
    let called = "<|im_start|>assistant\nLet me see.\n<|tool_call_start|>[weather(city='Paris', at=[1]), \
                  weather()]<|tool_call_end|><|im_end|>\n<|im_start|>tool\nyes<|im_end|>\n";
    assert!(text.contains(called) && text.contains("List of tools: [{"), "{text}");
    let deepseek = template("deepseek-ai-DeepSeek-V3.1");
    let (tools, messages) = for_template(&conversation, deepseek.tools());
    assert!(
        tools.is_empty()
            && messages[0].content.contains("<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{ARGUMENTS}")
    );
    assert_eq!(messages[2].calls.len(), 2);
}

#[test]
fn phi_4_mini_gets_its_tools_in_the_system_message() {
    let phi = template("microsoft-Phi-4-mini-instruct");
    let rendered = |messages: &[ChatMessage]| {
        let conversation = Conversation { messages, tools: &[tool()], thinking: None };
        let (tools, messages) = for_template(&conversation, phi.tools());
        let conversation = Conversation { messages: &messages, tools: &tools, thinking: None };
        phi.render_with(&conversation, true).unwrap()
    };
    let tools = "<|tool|>[{\"name\": \"weather\", \"description\": \"Returns the weather.\", \
                 \"parameters\": {\"type\": \"object\"}}]<|/tool|><|end|><|user|>Is it raining?<|end|>";
    let text = rendered(&asked());
    let system = "<|system|>You are a helpful assistant with some tools.";
    assert!(text.starts_with(&[system, tools].concat()), "{text}");
    let called = "<|assistant|>Let me see.\n<|tool_call|>[{\"name\": \"weather\", \"arguments\": {\"city\": \
                  \"Paris\", \"at\": [1]}}, {\"name\": \"weather\", \"arguments\": {}}]<|/tool_call|><|end|>\
                  <|tool|>yes<|end|><|tool|>no<|end|><|assistant|>";
    assert!(text.ends_with(called), "{text}");
    let brief = rendered(&[&[ChatMessage::new(Role::System, "Be brief.")], &asked()[..1]].concat());
    assert_eq!(brief, format!("<|system|>Be brief.{tools}<|assistant|>"));
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
    fn text_without_calls_is_unchanged(reply in "[a-z<>_ \n{\":]{0,40}", form in 0..CallForm::ALL.len()) {
        let form = CallForm::ALL[form];
        prop_assume!(!reply.contains(&form.trigger()));
        let characters: Vec<String> = reply.chars().map(String::from).collect();
        let found = parsed(form, None, characters.iter().map(String::as_str));
        prop_assert_eq!(found, (reply, Vec::new()));
    }
}
