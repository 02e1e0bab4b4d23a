#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::{Value as Json, json};

use super::jinja::{Compiled, describe};
use super::*;
use crate::tools::{Tool, ToolCall};
use foretoken_testkit::data;

const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

fn template(source: &str) -> ChatTemplate {
    compile(source, None, None).unwrap()
}

fn compile(source: &str, bos: Option<&str>, eos: Option<&str>) -> Result<ChatTemplate> {
    ChatTemplate::new("model".into(), source.into(), bos, eos, &Renderer::in_this_process())
}

fn message(role: Role, content: &str) -> ChatMessage {
    ChatMessage::new(role, content)
}

fn conversation(system: bool) -> Vec<ChatMessage> {
    let mut messages = vec![
        message(Role::User, "Hello"),
        message(Role::Assistant, "Hi there"),
        message(Role::User, "And you?"),
    ];
    if system {
        messages.insert(0, message(Role::System, "Be brief."));
    }
    messages
}

fn render(source: &str) -> String {
    template(source).render(&conversation(false), true).unwrap()
}

fn reason(source: &str) -> String {
    match compile(source, None, None).and_then(|t| t.render(&conversation(false), true)) {
        Err(Error::Template { reason, .. }) => reason,
        other => panic!("expected a template error, found {other:?}"),
    }
}

#[test]
fn gemma_4_is_switched_and_leaves_thoughts_out() {
    let gemma = compile(&source("google-gemma-4-31B-it"), Some("<bos>"), None).unwrap();
    assert_eq!((gemma.thinks(), gemma.thinking().map(|tags| tags.close)), (Some(false), Some("<channel|>")));
    let thought = "<|channel>thought\nHm.<channel|>Hi there";
    let messages =
        [message(Role::User, "Hello"), message(Role::Assistant, thought), message(Role::User, "And you?")];
    let turns = "<|turn>user\nHello<turn|>\n<|turn>model\nHi there<turn|>\n<|turn>user\nAnd you?<turn|>\n<|turn>model\n";
    let closed = "<|channel>thought\n<channel|>";
    assert_eq!(gemma.render(&messages, true).unwrap(), format!("<bos>{turns}{closed}"));
    let thinking = gemma.render_with(&Conversation::of(&messages, Some(true)), true).unwrap();
    assert_eq!(thinking, format!("<bos><|turn>system\n<|think|>\n<turn|>\n{turns}"));
}

#[test]
fn ministral_3_takes_turns_between_its_tags() {
    let source = source("mistralai-Ministral-3-14B-Reasoning-2512");
    let ministral = compile(&source, Some("<s>"), Some("</s>")).unwrap();
    let turns = "[INST]Hello[/INST]Hi there</s>[INST]And you?[/INST]";
    let with_system = ministral.render(&conversation(true), true).unwrap();
    assert_eq!(with_system, format!("<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT]{turns}"));
    let plain = ministral.render(&conversation(false), true).unwrap();
    assert!(plain.starts_with("<s>[SYSTEM_PROMPT]# HOW YOU SHOULD THINK AND ANSWER\n\n"), "{plain}");
    assert!(plain.ends_with(turns), "{plain}");
    // Its own system prompt asks for reasoning, which is not a switch.
    let tags = Thinking { open: "[THINK]", close: "[/THINK]" };
    assert_eq!((ministral.thinks(), ministral.thinking()), (None, Some(tags)));
    let twice = [message(Role::User, "Hello"), message(Role::User, "Hello?")];
    let Err(Error::Template { reason, .. }) = ministral.render(&twice, true) else {
        panic!("it was rendered")
    };
    assert!(reason.contains("must alternate"), "{reason}");
}

#[test]
fn gpt_oss_writes_what_was_said_in_its_final_channel() {
    let oss = compile(&source("openai-gpt-oss-120b"), Some("<|startoftext|>"), Some("<|return|>")).unwrap();
    assert_eq!((oss.thinks(), oss.thinking()), (Some(true), Some(Thinking::KNOWN[0])));
    let text = oss.render(&conversation(true), true).unwrap();
    assert!(text.starts_with("<|start|>system<|message|>You are ChatGPT"), "{text}");
    let said = "<|start|>developer<|message|># Instructions\n\nBe brief.\n\n<|end|>\
                <|start|>user<|message|>Hello<|end|>\
                <|start|>assistant<|channel|>final<|message|>Hi there<|end|>\
                <|start|>user<|message|>And you?<|end|><|start|>assistant";
    assert!(text.ends_with(said), "{text}");
}

#[test]
fn a_conversation_takes_the_form_of_chatml() {
    let turns = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi there<|im_end|>\n\
                 <|im_start|>user\nAnd you?<|im_end|>\n";
    let chatml = template(CHATML);
    assert_eq!(chatml.render(&conversation(false), false).unwrap(), turns);
    let system = "<|im_start|>system\nBe brief.<|im_end|>\n";
    let with_system = chatml.render(&conversation(true), true).unwrap();
    assert_eq!(with_system, format!("{system}{turns}<|im_start|>assistant\n"));
}

/// Source of a well-known template.
fn source(name: &str) -> String {
    std::fs::read_to_string(data(&format!("templates/{name}.jinja"))).unwrap()
}

/// Renders a well-known template with and without a system message.
fn known(name: &str, bos: &str, eos: &str) -> (String, Result<String>) {
    let template = compile(&source(name), Some(bos), Some(eos)).unwrap();
    let plain = template.render(&conversation(false), true).unwrap();
    (plain, template.render(&conversation(true), true))
}

#[test]
fn llama_3_1_renders_as_its_makers_meant_it() {
    let name = "meta-llama-Llama-3.1-8B-Instruct";
    let (plain, system) = known(name, "<|begin_of_text|>", "<|eot_id|>");
    let expected = |system: &str| {
        let turn = |role, text| format!("<|start_header_id|>{role}<|end_header_id|>\n\n{text}");
        let dates = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
        [
            "<|begin_of_text|>".to_owned(),
            turn("system", format!("{dates}{system}<|eot_id|>")),
            turn("user", "Hello<|eot_id|>".into()),
            turn("assistant", "Hi there<|eot_id|>".into()),
            turn("user", "And you?<|eot_id|>".into()),
            turn("assistant", String::new()),
        ]
        .concat()
    };
    assert_eq!(plain, expected(""));
    assert_eq!(system.unwrap(), expected("Be brief."));
}

#[test]
fn llama_3_2_names_todays_date() {
    let name = "meta-llama-Llama-3.2-3B-Instruct";
    let today = || format!("Today Date: {}\n\n", chrono::Local::now().format("%d %b %Y"));
    let before = today();
    let (plain, system) = known(name, "<|begin_of_text|>", "<|eot_id|>");
    let after = today();
    for text in [plain, system.unwrap()] {
        assert!(text.contains(&before) || text.contains(&after), "{text}");
        assert!(text.ends_with("And you?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"));
    }
}

#[test]
fn gemma_renders_and_refuses_a_system_message_in_its_own_words() {
    let (plain, system) = known("google-gemma-2-2b-it", "<bos>", "<eos>");
    assert_eq!(
        plain,
        "<bos><start_of_turn>user\nHello<end_of_turn>\n<start_of_turn>model\nHi there<end_of_turn>\n\
         <start_of_turn>user\nAnd you?<end_of_turn>\n<start_of_turn>model\n"
    );
    match system {
        Err(Error::Template { reason, .. }) => assert_eq!(reason, "System role not supported"),
        other => panic!("expected a refusal, found {other:?}"),
    }
}

#[test]
fn mistral_nemo_puts_the_system_message_before_the_last_turn() {
    let name = "mistralai-Mistral-Nemo-Instruct-2407";
    let (plain, system) = known(name, "<s>", "</s>");
    assert_eq!(plain, "<s>[INST]Hello[/INST]Hi there</s>[INST]And you?[/INST]");
    assert_eq!(system.unwrap(), "<s>[INST]Hello[/INST]Hi there</s>[INST]Be brief.\n\nAnd you?[/INST]");
}

#[test]
fn qwen_2_5_and_3_render_chatml() {
    let turns = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi there<|im_end|>\n\
                 <|im_start|>user\nAnd you?<|im_end|>\n<|im_start|>assistant\n";
    let system = |text| format!("<|im_start|>system\n{text}<|im_end|>\n{turns}");
    let end = "<|im_end|>";
    let (plain, with_system) = known("Qwen-Qwen2.5-7B-Instruct", "", end);
    let own = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
    assert_eq!(plain, system(own));
    assert_eq!(with_system.unwrap(), system("Be brief."));
    let (plain, with_system) = known("Qwen-Qwen3-0.6B", "", end);
    assert_eq!(plain, turns);
    assert_eq!(with_system.unwrap(), system("Be brief."));
}

#[test]
fn phi_3_5_renders_turns_with_bars() {
    let name = "microsoft-Phi-3.5-mini-instruct";
    let (plain, system) = known(name, "<s>", "<|endoftext|>");
    let turns = "<|user|>\nHello<|end|>\n<|assistant|>\nHi there<|end|>\n<|user|>\nAnd you?<|end|>\n\
                 <|assistant|>\n";
    assert_eq!(plain, turns);
    assert_eq!(system.unwrap(), format!("<|system|>\nBe brief.<|end|>\n{turns}"));
}

#[test]
fn deepseek_r1_drops_the_thinking_of_earlier_turns() {
    let name = "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B";
    let template = compile(&source(name), Some("<B>"), None).unwrap();
    let mut messages = conversation(true);
    messages[2].content = "<think>Hm.</think>Hi there".into();
    assert_eq!(
        template.render(&messages, true).unwrap(),
        "<B>Be brief.<｜User｜>Hello<｜Assistant｜>Hi there<｜end▁of▁sentence｜><｜User｜>And you?\
         <｜Assistant｜><think>\n</think>"
    );
}

#[test]
fn smollm_3_obeys_a_switch_in_the_system_message() {
    let template = template(&source("HuggingFaceTB-SmolLM3-3B"));
    let plain = template.render(&conversation(false), true).unwrap();
    assert!(plain.contains("Reasoning Mode: /think\n\n## Custom Instructions\n\nYou are a helpful"));
    assert!(plain.ends_with("<|im_start|>user\nAnd you?<|im_end|>\n<|im_start|>assistant\n"));
    let mut messages = conversation(true);
    messages[0].content = "Be brief. /no_think".into();
    let switched = template.render(&messages, true).unwrap();
    assert!(switched.contains("Reasoning Mode: /no_think\n\n## Custom Instructions\n\nBe brief.\n\n"));
    assert!(switched.ends_with("<|im_start|>assistant\n<think>\n\n</think>\n"));
}

#[test]
fn blocks_on_their_own_lines_leave_no_lines() {
    let source = "{% for m in messages %}\n    {% if m.role == 'user' %}\n{{ m.content }}\n    {% endif %}\n{% endfor %}\n";
    assert_eq!(render(source), "Hello\nAnd you?\n");
}

#[test]
fn json_is_written_as_python_writes_it() {
    assert_eq!(render("{{ {'a': [1, 'é<b>'], 'c': none} | tojson }}"), r#"{"a": [1, "é<b>"], "c": null}"#);
    assert_eq!(render("{{ {'a': [1]} | tojson(indent=2) }}"), "{\n  \"a\": [\n    1\n  ]\n}");
    let value = "{'b': 'é🦊', 'a': {'d': 1, 'c': []}}";
    assert_eq!(render(&format!("{{{{ {value} | tojson }}}}")), r#"{"b": "é🦊", "a": {"d": 1, "c": []}}"#);
    assert_eq!(
        render(&format!("{{{{ {value} | tojson(sort_keys=true, ensure_ascii=true) }}}}")),
        r#"{"a": {"c": [], "d": 1}, "b": "\u00e9\ud83e\udd8a"}"#
    );
}

#[test]
fn a_template_with_crlf_line_ends_renders_as_one_with_newlines() {
    let lines =
        "{% for message in messages %}\n<{{ message.role }}>\n{{ message.content }}\n{% endfor %}\nend";
    assert_eq!(render(&lines.replace('\n', "\r\n")), render(lines));
    assert_eq!(render("a\rb\r\n\nc"), "a\nb\n\nc");
}

/// Renders an expression.
fn value(expression: &str) -> String {
    render(&format!("{{{{ {expression} }}}}"))
}

#[test]
fn methods_of_pythons_strings_work_in_templates() {
    for (expression, expected) in [
        ("'unhappy'.removeprefix('un')", "happy"),
        ("'happy'.removeprefix('un')", "happy"),
        ("'a.txt'.removesuffix('.txt')", "a"),
        ("'a.txt'.removesuffix('')", "a.txt"),
        ("'k=v=w'.partition('=')|join('|')", "k|=|v=w"),
        ("'kv'.partition('=')|join('|')", "kv||"),
        ("'k=v=w'.rpartition('=')|join('|')", "k=v|=|w"),
        ("'kv'.rpartition('=')|join('|')", "||kv"),
        ("'a b  c'.rsplit(' ', 1)|join('|')", "a b |c"),
        ("' a b  c '.rsplit()|join('|')", "a|b|c"),
        ("'7'.zfill(3)", "007"),
        ("'-7'.zfill(4)", "-007"),
        ("'1234'.zfill(3)", "1234"),
        ("'é'.ljust(3, '.')", "é.."),
        ("'é'.rjust(3)", "  é"),
        ("'ab'.center(5, '*')", "**ab*"),
        ("'aBc'.swapcase()", "AbC"),
        ("'STRASSE'.casefold()", "strasse"),
        ("'abc'.index('c')", "2"),
        ("'abcb'.rindex('b')", "3"),
        ("'a\tb'.expandtabs(4)", "a   b"),
        ("['a', 'b'].index('b')", "1"),
        ("'abc'.startswith('ab')", "true"),
    ] {
        assert_eq!(value(expression).to_lowercase(), expected.to_lowercase(), "{expression}");
    }
    assert_eq!(value("'aBc'.swapcase()"), "AbC");
    assert!(reason("{{ 'abc'.index('x') }}").contains("substring not found"));
    assert!(reason("{{ 'a'.zfill(1000000000000) }}").contains("too long"));
    assert!(reason("{{ 'a'.partition('') }}").contains("empty separator"));
}

#[test]
fn strings_are_formatted_with_percent_as_in_python() {
    for (expression, expected) in [
        ("'%s and %d' % ('a', 3)", "a and 3"),
        ("'<%s>' % messages[0].content", "<Hello>"),
        ("\"<%s>\" % messages[0]['content'].upper()", "<HELLO>"),
        ("'%05.1f' % 2.25", "002.2"),
        ("'a' ~ '%s' % 'b' ~ 'c'", "abc"),
        ("'%s' % 1 if false else '%d%%' % 5", "5%"),
        ("('%s' % 'x')|upper", "X"),
        ("'%s-%s' % (1, (2, 3)|length)", "1-2"),
        ("7 % 4", "3"),
        ("messages|length % 2", "1"),
        ("'100% %s'", "100% %s"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
    assert_eq!(render("{{ 'a' }} % {{ 'b' }}{# '%s' % #}"), "a % b");
    assert_eq!(render("{% raw %}{{ '%s' % 1 }}{% endraw %}"), "{{ '%s' % 1 }}");
    assert_eq!(render("{% set line = '%s!' % 'a' %}{{ line }}"), "a!");
}

#[test]
fn what_the_model_lacks_is_undefined() {
    assert_eq!(render("{{ bos_token is defined }}[{{ bos_token }}]"), "False[]");
}

#[test]
fn a_refusal_is_told_in_the_templates_own_words() {
    assert_eq!(reason("{{ raise_exception('Only users may speak') }}"), "Only users may speak");
}

#[test]
fn invalid_jinja_names_its_line() {
    let reason = reason("{% if true %}\n{% endfor %}");
    assert!(reason.contains("line 2"), "{reason}");
}

#[test]
fn an_unknown_date_format_is_an_error() {
    assert!(reason("{{ strftime_now('%Q') }}").contains("'%Q'"));
}

#[test]
fn a_template_that_never_ends_is_stopped() {
    let endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    assert_eq!(reason(endless), "it takes too long");
}

#[test]
fn a_template_that_calls_itself_is_stopped() {
    let reason = reason("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}");
    assert!(reason.contains("recursion"), "{reason}");
}

/// FNV-1a of 64 bits, as `scripts/expect-templates.py` computes it.
fn checksum(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    format!("{:016x}", text.bytes().fold(0xCBF2_9CE4_8422_2325, step))
}

fn messages_of(conversation: &Json) -> Vec<ChatMessage> {
    let role = |name: &Json| match name.as_str() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("tool") => Role::Tool,
        _ => Role::Assistant,
    };
    let text = |value: &Json| value.as_str().map(str::to_owned);
    let call = |call: &Json| ToolCall {
        id: text(&call["id"]).unwrap(),
        name: text(&call["function"]["name"]).unwrap(),
        arguments: call["function"]["arguments"].as_object().unwrap().clone(),
    };
    let messages = conversation.as_array().unwrap().iter();
    let message = |m: &Json| ChatMessage {
        thinking: text(&m["thinking"]),
        call_id: text(&m["tool_call_id"]),
        calls: m["tool_calls"].as_array().into_iter().flatten().map(call).collect(),
        ..message(role(&m["role"]), m["content"].as_str().unwrap())
    };
    messages.map(message).collect()
}

fn tools_of(given: &Json) -> Vec<Tool> {
    let tool = |tool: &Json| Tool {
        name: tool["function"]["name"].as_str().unwrap().to_owned(),
        description: tool["function"]["description"].as_str().map(str::to_owned),
        parameters: tool["function"]["parameters"].clone(),
    };
    given["tools"].as_array().unwrap().iter().map(tool).collect()
}

#[test]
fn every_template_renders_every_conversation_as_jinja2_does() {
    let given: Json = serde_json::from_str(include_str!("expected/conversations.json")).unwrap();
    let expected: Json = serde_json::from_str(include_str!("expected/expected.json")).unwrap();
    let mut compared = 0;
    for (name, tokens) in given["templates"].as_object().unwrap() {
        let source = std::fs::read_to_string(data(&format!("templates/{name}"))).unwrap();
        let token = |name: &str| tokens[name].as_str().map(str::to_owned);
        let source = Source { text: source, bos: token("bos_token"), eos: token("eos_token") };
        let mut template = Compiled::new(&source).unwrap();
        template.environment.add_function("strftime_now", |form: &str| format!("<{form}>"));
        let plain = given["conversations"].as_object().unwrap().iter().map(|named| (named, Vec::new()));
        let with_tools = given["conversations with tools"].as_object().unwrap().iter();
        let with_tools = with_tools.map(|named| (named, tools_of(&given)));
        for ((title, conversation), tools) in plain.chain(with_tools) {
            for prompt in [false, true] {
                let messages = messages_of(conversation).into();
                let tools = Cow::Borrowed(&tools[..]);
                let asked = Prompt {
                    messages,
                    tools,
                    add_generation_prompt: prompt,
                    thinking: None,
                    in_parts: false,
                };
                let rendered = template.render(&asked);
                let found = match &rendered {
                    Ok(text) => json!(checksum(text)),
                    Err(error) => json!({"refusal": describe(error)}),
                };
                let expected = &expected[name][title][usize::from(prompt)];
                assert_eq!(&found, expected, "{name}, {title}, prompt {prompt}: {rendered:?}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 23 * (11 + 4) * 2);
}

#[test]
fn thinking_is_recognised_by_its_tags() {
    let think = Some(Thinking { open: "<think>", close: "</think>" });
    for (name, expected) in [
        ("Qwen-Qwen3-0.6B", think),
        ("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", think),
        ("HuggingFaceTB-SmolLM3-3B", think),
        ("Qwen-Qwen2.5-7B-Instruct", None),
        ("meta-llama-Llama-3.1-8B-Instruct", None),
    ] {
        assert_eq!(template(&source(name)).thinking(), expected, "{name}");
    }
    let magistral = template("{{ content | replace('[/THINK]', '') }}").thinking().unwrap();
    assert!(magistral.is_opened_by("[INST]Why?[/INST][THINK]\n"));
    assert!(!magistral.is_opened_by("[THINK]So.[/THINK]"));
}

#[test]
fn whether_a_model_thinks_is_a_switch_of_its_template_with_a_default() {
    for (name, thinks) in [
        ("Qwen-Qwen3-0.6B", Some(true)),
        ("Qwen3.5-4B", Some(true)),
        ("HuggingFaceTB-SmolLM3-3B", Some(true)),
        // Reasons only if asked to.
        ("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", Some(false)),
        ("Qwen-Qwen2.5-7B-Instruct", None),
        ("ibm-granite-granite-4.0", None),
        ("GLM-4.7-Flash", Some(true)),
        ("deepseek-ai-DeepSeek-V3.1", Some(false)),
        ("ibm-granite-granite-3.3-2B-Instruct", Some(false)),
    ] {
        assert_eq!(template(&source(name)).thinks(), thinks, "{name}");
    }
    // The form of DeepSeek V3.1 and Granite, and a variable that is not a switch.
    let off_at_first = "{% if thinking is defined and thinking %}<think>{% else %}</think>{% endif %}";
    assert_eq!(template(off_at_first).thinks(), Some(false));
    assert_eq!(template("{# no thinking #}{{ messages[0].content }}").thinks(), None);
    // The form of LFM2.5: keeping earlier reasoning is not a switch, and neither is a message's
    // field.
    let kept = "{% set preserve_thinking = preserve_thinking | default(false) %}{% for m in messages %}{{ m.content }}\
                {% if m.thinking is defined and preserve_thinking %}<think>{{ m.thinking }}</think>{% endif %}\
                {% endfor %}";
    assert_eq!(template(kept).thinks(), None);
    assert_eq!(template("{% if thinking %}{{ raise_exception('no') }}{% endif %}").thinks(), None);
}

#[test]
fn qwen_3_is_told_not_to_think_by_thoughts_that_are_over() {
    let template = template(&source("Qwen-Qwen3-0.6B"));
    let question = [ChatMessage::new(Role::User, "Why?")];
    let rendered = |thinking| template.render_with(&Conversation::of(&question, thinking), true).unwrap();
    assert_eq!(rendered(Some(false)), rendered(None) + "<think>\n\n</think>\n\n");
    assert_eq!(rendered(Some(true)), rendered(None));
}

#[test]
fn glm_is_told_not_to_think_by_the_end_of_thoughts() {
    let template = template(&source("GLM-4.7-Flash"));
    let question = [ChatMessage::new(Role::User, "Why?")];
    let rendered = |thinking| template.render_with(&Conversation::of(&question, thinking), true).unwrap();
    assert_eq!(rendered(None), "[gMASK]<sop><|user|>Why?<|assistant|><think>");
    assert_eq!(rendered(Some(true)), rendered(None));
    assert_eq!(rendered(Some(false)), "[gMASK]<sop><|user|>Why?<|assistant|></think>");
}

#[test]
fn marks_of_what_the_assistant_wrote_leave_no_trace() {
    let source =
        "{% for m in messages %}{%- generation -%} {{ m.content }}! {%- endgeneration %}{% endfor %}";
    assert_eq!(render(source), "Hello!Hi there!And you?!");
}

#[test]
fn values_print_as_python_prints_them() {
    assert_eq!(
        render("{{ none }} {{ true }} {{ [1, 'a', 1.5, none] }} {{ {'k': false} }}"),
        "None True [1, 'a', 1.5, None] {'k': False}"
    );
    assert_eq!(
        render("{{ tools is none }} {{ 7 // 2 }} {{ 'ab'[::-1] }} {{ 'a,b'.split(',')[-1] }}"),
        "True 3 ba b"
    );
}

#[test]
fn what_a_conversation_does_not_say_takes_the_templates_default() {
    let source = "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}\
                  {% if m.reasoning_content is string %}R{% elif m.tool_calls %}T{% endif %}\
                  {% if loop.index == 3 %}{% break %}{% endif %}{% endfor %}{{ ns.n }}\
                  {% if enable_thinking is defined and enable_thinking is false %}no{% endif %}";
    assert_eq!(render(source), "3");
}

#[test]
fn a_template_that_repeats_a_text_for_ever_is_stopped() {
    assert!(reason("{{ 'a' * 99999999999 }}").contains("too large"));
}

#[test]
fn a_source_of_no_end_is_not_compiled() {
    let long = "a".repeat(MAX_SOURCE + 1);
    assert_eq!(reason(&long), "it has 262145 bytes, and at most 262144 are compiled");
    assert_eq!(render(&long[1..]).len(), MAX_SOURCE);
}

#[test]
fn a_program_that_is_not_there_is_said() {
    let nowhere = Renderer::program("/nowhere/at/all".into());
    match ChatTemplate::new("model".into(), CHATML.into(), None, None, &nowhere) {
        Err(Error::Template { reason, .. }) => {
            assert!(reason.starts_with("what renders it cannot be started: "), "{reason}");
        }
        _ => panic!("expected a template error"),
    }
}

#[test]
fn a_program_that_does_not_answer_is_said() {
    // The test program does not know the argument and exits.
    let renderer = Renderer::program(std::env::current_exe().unwrap());
    match ChatTemplate::new("model".into(), CHATML.into(), None, None, &renderer) {
        Err(Error::Template { reason, .. }) => {
            assert_eq!(reason, "what renders it cannot be started: it did not become ready");
        }
        _ => panic!("expected a template error"),
    }
}
