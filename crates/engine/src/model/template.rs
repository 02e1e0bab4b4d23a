//! A model's own chat template, rendered as Hugging Face renders it. Knows nothing of tokens; a
//! template that runs too long, recurses or refuses is an error in its own words.

use std::fmt::Write;
use std::path::PathBuf;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, ErrorKind, context};
use serde::Serialize;

use crate::error::{Error, Result};

/// Instructions a rendering may take: a long conversation needs some thousands, an endless loop is
/// stopped within a second.
const FUEL: u64 = 20_000_000;

const NAME: &str = "chat";

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    pub role: Role,
    pub content: String,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
}

impl Role {
    /// The name templates know it by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A compiled template.
pub struct ChatTemplate {
    path: PathBuf,
    environment: Environment<'static>,
}

impl ChatTemplate {
    /// Compiles `source`. `bos` and `eos` are the texts of those tokens, where the model has them;
    /// `path` is for messages.
    ///
    /// # Errors
    /// `Error::Template` when the source is not valid Jinja.
    pub fn new(path: PathBuf, source: String, bos: Option<&str>, eos: Option<&str>) -> Result<Self> {
        let failed =
            |error: minijinja::Error| Error::Template { path: path.clone(), reason: describe(&error) };
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        let syntax = syntax.map_err(failed)?;
        let mut environment = Environment::new();
        environment.set_syntax(syntax);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        environment.add_filter("tojson", to_json);
        for (name, text) in [("bos_token", bos), ("eos_token", eos)] {
            if let Some(text) = text {
                environment.add_global(name, text.to_owned());
            }
        }
        environment.add_template_owned(NAME, source).map_err(failed)?;
        Ok(Self { path, environment })
    }

    /// The text the model is to continue. `add_generation_prompt` opens the assistant's next turn.
    ///
    /// # Errors
    /// `Error::Template` with the template's own words when it refuses, or with what went wrong.
    pub fn render(&self, messages: &[ChatMessage], add_generation_prompt: bool) -> Result<String> {
        let messages: Vec<Value> = messages
            .iter()
            .map(|m| context! { role => m.role.as_str(), content => m.content.as_str() })
            .collect();
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(context! { messages, add_generation_prompt }))
            .map_err(|error| Error::Template { path: self.path.clone(), reason: describe(&error) })
    }
}

/// One line: what went wrong and where, or the template's own words alone.
fn describe(error: &minijinja::Error) -> String {
    let detail = error.detail().unwrap_or_default();
    match error.kind() {
        RAISED => detail.to_owned(),
        ErrorKind::OutOfFuel => "it runs too long".into(),
        kind => {
            let line = error.line().map(|n| format!(" (line {n})")).unwrap_or_default();
            let colon = if detail.is_empty() { "" } else { ": " };
            format!("{kind}{colon}{detail}{line}")
        }
    }
}

/// The kind of error that `raise_exception` makes; the engine itself raises none of it here, as
/// nothing is included from elsewhere.
const RAISED: ErrorKind = ErrorKind::BadInclude;

fn raise_exception(message: String) -> std::result::Result<Value, minijinja::Error> {
    Err(minijinja::Error::new(RAISED, message))
}

/// The local time, in the form that `format` describes.
fn strftime_now(format: &str) -> std::result::Result<String, minijinja::Error> {
    let mut text = String::new();
    // An unknown directive is a formatting error.
    write!(text, "{}", chrono::Local::now().format(format)).map_err(|_| {
        minijinja::Error::new(ErrorKind::InvalidOperation, format!("unknown date format '{format}'"))
    })?;
    Ok(text)
}

/// JSON as Python writes it: a space after commas and colons, nothing escaped for HTML.
fn to_json(value: &Value, options: Kwargs) -> std::result::Result<String, minijinja::Error> {
    let indent: Option<usize> = options.get("indent")?;
    options.assert_all_used()?;
    let mut text = Vec::new();
    let written = match indent {
        None => value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, OneLine)),
        Some(width) => {
            let width = " ".repeat(width.min(16));
            let pretty = serde_json::ser::PrettyFormatter::with_indent(width.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, pretty))
        }
    };
    let failed = |error: String| minijinja::Error::new(ErrorKind::BadSerialization, error);
    written.map_err(|error| failed(error.to_string()))?;
    String::from_utf8(text).map_err(|error| failed(error.to_string()))
}

/// Python's separators, ", " and ": ".
struct OneLine;

impl serde_json::ser::Formatter for OneLine {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::model::fixture::shared;

    const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

    fn template(source: &str) -> ChatTemplate {
        compile(source, None, None).unwrap()
    }

    fn compile(source: &str, bos: Option<&str>, eos: Option<&str>) -> Result<ChatTemplate> {
        ChatTemplate::new("model".into(), source.into(), bos, eos)
    }

    fn message(role: Role, content: &str) -> ChatMessage {
        ChatMessage { role, content: content.into() }
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
    fn a_conversation_takes_the_form_of_chatml() {
        let turns = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi there<|im_end|>\n\
                     <|im_start|>user\nAnd you?<|im_end|>\n";
        let chatml = template(CHATML);
        assert_eq!(chatml.render(&conversation(false), false).unwrap(), turns);
        let system = "<|im_start|>system\nBe brief.<|im_end|>\n";
        let with_system = chatml.render(&conversation(true), true).unwrap();
        assert_eq!(with_system, format!("{system}{turns}<|im_start|>assistant\n"));
    }

    /// Renders a well-known template with and without a system message.
    fn known(name: &str, bos: &str, eos: &str) -> Option<(String, Result<String>)> {
        let path = shared(&format!("templates/{name}.jinja"))?;
        let source = std::fs::read_to_string(path).unwrap();
        let template = compile(&source, Some(bos), Some(eos)).unwrap();
        let plain = template.render(&conversation(false), true).unwrap();
        Some((plain, template.render(&conversation(true), true)))
    }

    #[test]
    fn llama_3_1_renders_as_its_makers_meant_it() {
        let name = "meta-llama-Llama-3.1-8B-Instruct";
        let Some((plain, system)) = known(name, "<|begin_of_text|>", "<|eot_id|>") else { return };
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
        let Some((plain, system)) = known(name, "<|begin_of_text|>", "<|eot_id|>") else { return };
        let after = today();
        for text in [plain, system.unwrap()] {
            assert!(text.contains(&before) || text.contains(&after), "{text}");
            assert!(text.ends_with("And you?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"));
        }
    }

    #[test]
    fn gemma_renders_and_refuses_a_system_message_in_its_own_words() {
        let Some((plain, system)) = known("google-gemma-2-2b-it", "<bos>", "<eos>") else { return };
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
        let Some((plain, system)) = known(name, "<s>", "</s>") else { return };
        assert_eq!(plain, "<s>[INST]Hello[/INST]Hi there</s>[INST]And you?[/INST]");
        assert_eq!(system.unwrap(), "<s>[INST]Hello[/INST]Hi there</s>[INST]Be brief.\n\nAnd you?[/INST]");
    }

    #[test]
    fn qwen_2_5_and_3_render_chatml() {
        let turns = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi there<|im_end|>\n\
                     <|im_start|>user\nAnd you?<|im_end|>\n<|im_start|>assistant\n";
        let system = |text| format!("<|im_start|>system\n{text}<|im_end|>\n{turns}");
        let end = "<|im_end|>";
        let Some((plain, with_system)) = known("Qwen-Qwen2.5-7B-Instruct", "", end) else { return };
        let own = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
        assert_eq!(plain, system(own));
        assert_eq!(with_system.unwrap(), system("Be brief."));
        let Some((plain, with_system)) = known("Qwen-Qwen3-0.6B", "", end) else { return };
        assert_eq!(plain, turns);
        assert_eq!(with_system.unwrap(), system("Be brief."));
    }

    #[test]
    fn phi_3_5_renders_turns_with_bars() {
        let name = "microsoft-Phi-3.5-mini-instruct";
        let Some((plain, system)) = known(name, "<s>", "<|endoftext|>") else { return };
        let turns = "<|user|>\nHello<|end|>\n<|assistant|>\nHi there<|end|>\n<|user|>\nAnd you?<|end|>\n\
                     <|assistant|>\n";
        assert_eq!(plain, turns);
        assert_eq!(system.unwrap(), format!("<|system|>\nBe brief.<|end|>\n{turns}"));
    }

    #[test]
    fn deepseek_r1_drops_the_thinking_of_earlier_turns() {
        let name = "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B";
        let Some(path) = shared(&format!("templates/{name}.jinja")) else { return };
        let template = compile(&std::fs::read_to_string(path).unwrap(), Some("<B>"), None).unwrap();
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
        let Some(path) = shared("templates/HuggingFaceTB-SmolLM3-3B.jinja") else { return };
        let template = template(&std::fs::read_to_string(path).unwrap());
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
        assert_eq!(
            render("{{ {'a': [1, 'é<b>'], 'c': none} | tojson }}"),
            r#"{"a": [1, "é<b>"], "c": null}"#
        );
        assert_eq!(render("{{ {'a': [1]} | tojson(indent=2) }}"), "{\n  \"a\": [\n    1\n  ]\n}");
    }

    #[test]
    fn what_the_model_lacks_is_undefined() {
        assert_eq!(
            render("{{ tools is defined }} {{ bos_token is defined }}[{{ bos_token }}]"),
            "False False[]"
        );
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
        assert_eq!(reason(endless), "it runs too long");
    }

    #[test]
    fn a_template_that_calls_itself_is_stopped() {
        let reason = reason("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}");
        assert!(reason.contains("recursion"), "{reason}");
    }
}
