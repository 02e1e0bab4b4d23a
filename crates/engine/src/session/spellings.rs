//! Keeps spellings of special tokens in messages from being read as tokens, whatever the template
//! does with the messages.
//!
//! Each such spelling is rendered as one character that nobody uses and put back afterwards, so
//! that its position in the prompt is known. If a template changes such a character, the spelling
//! is rendered with a space behind every character instead.

use std::collections::HashMap;
use std::ops::Range;

use foretoken_model::error::Result;
use foretoken_model::tools::MARKS;
use foretoken_model::{ChatMessage, Conversation, PlacedPicture, Role, Tokenizer, Tool};
use serde_json::Value;

/// Two planes of private-use characters, which stand for no text.
const STAND_INS: [Range<u32>; 2] = [0xF_0000..0xF_FFFE, 0x10_0000..0x10_FFFE];

/// A rendered conversation.
pub(super) struct Rendered {
    pub text: String,
    /// Ranges of plain text that spell special tokens, in order.
    pub plain: Vec<Range<usize>>,
    /// Number of spellings that are rendered with spaces because the template lost them.
    pub broken: usize,
}

/// Character that no message contains.
pub(super) fn unused_mark(messages: &[ChatMessage]) -> char {
    let used = |mark: &char| messages.iter().any(|message| message.content.contains(*mark));
    let marks = ('\u{E000}'..='\u{F8FF}').chain('\u{F0000}'..='\u{FFFFD}');
    marks.into_iter().find(|mark| !used(mark)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Renders `messages` with `render`, contents as plain text. The assistant's contents may contain
/// added tokens that a model writes, such as those around its reasoning, but no control tokens:
/// these end a reply or are not part of its text.
///
/// # Errors
/// Errors of `render`.
pub(super) fn render(
    tokenizer: &Tokenizer,
    messages: &[ChatMessage],
    render: impl Fn(&[ChatMessage]) -> Result<String>,
) -> Result<Rendered> {
    let spelled: Vec<Vec<Range<usize>>> = messages
        .iter()
        .map(|message| tokenizer.spelled(&message.content, message.role == Role::Assistant))
        .collect();
    if spelled.iter().all(Vec::is_empty) {
        return Ok(Rendered { text: render(messages)?, plain: Vec::new(), broken: 0 });
    }
    let stand_ins = StandIns::of(messages, &spelled);
    let rendered = render(&with(messages, &spelled, |spelling| stand_ins.character(spelling).to_string()))?;
    let lost = |spelling: &str| !rendered.contains(stand_ins.character(spelling));
    let all = messages.iter().zip(&spelled);
    let spellings =
        all.flat_map(|(message, ranges)| ranges.iter().map(|range| &message.content[range.clone()]));
    if !spellings.clone().any(lost) {
        return Ok(stand_ins.restore(&rendered, 0));
    }
    // The template left the content out or rewrote the character.
    let shown = |spelling: &str| match lost(spelling) {
        true => broken(spelling),
        false => stand_ins.character(spelling).to_string(),
    };
    let rendered = render(&with(messages, &spelled, shown))?;
    let broken = spellings.filter(|spelling| lost(spelling) && rendered.contains(&broken(spelling))).count();
    Ok(stand_ins.restore(&rendered, broken))
}

/// Messages with their spellings replaced by `shown`.
fn with(
    messages: &[ChatMessage],
    spelled: &[Vec<Range<usize>>],
    shown: impl Fn(&str) -> String,
) -> Vec<ChatMessage> {
    let content = |(message, ranges): (&ChatMessage, &Vec<Range<usize>>)| {
        let mut content = String::with_capacity(message.content.len());
        let mut end = 0;
        for range in ranges {
            content.push_str(&message.content[end..range.start]);
            content.push_str(&shown(&message.content[range.clone()]));
            end = range.end;
        }
        content.push_str(&message.content[end..]);
        // A picture within a spelling stands behind it.
        let moved = |placed: &PlacedPicture| {
            let before = ranges.iter().take_while(|range| range.start < placed.at);
            let (mut end, mut added, mut removed) = (placed.at, 0, 0);
            for range in before {
                end = end.max(range.end);
                added += shown(&message.content[range.clone()]).len();
                removed += range.len();
            }
            PlacedPicture { at: end + added - removed, ..placed.clone() }
        };
        let pictures = message.pictures.iter().map(moved);
        ChatMessage { content, pictures: pictures.collect(), ..message.clone() }
    };
    messages.iter().zip(spelled).map(content).collect()
}

/// Tools of `conversation`, and its messages with their calls and separate reasoning, in which
/// every spelling is [broken](broken): templates quote them as JSON.
pub(super) fn quotable(
    tokenizer: &Tokenizer,
    conversation: &Conversation<'_>,
) -> (Vec<Tool>, Vec<ChatMessage>) {
    let break_in = |text: &mut String, controls: bool| {
        for range in tokenizer.spelled(text, controls).into_iter().rev() {
            text.replace_range(range.clone(), &broken(&text[range]));
        }
    };
    let (mut tools, mut messages) = (conversation.tools.to_vec(), conversation.messages.to_vec());
    for tool in &mut tools {
        tool.description.iter_mut().for_each(|text| break_in(text, false));
        each_text(&mut tool.parameters, &|text| break_in(text, false));
    }
    messages.iter_mut().filter_map(|message| message.thinking.as_mut()).for_each(|text| break_in(text, true));
    for call in messages.iter_mut().flat_map(|message| &mut message.calls) {
        let mut arguments = Value::Object(std::mem::take(&mut call.arguments));
        each_text(&mut arguments, &|text| {
            break_in(text, true);
            // A model writes markers of calls around them, not within.
            for mark in MARKS.into_iter().filter(|mark| tokenizer.special_id(mark).is_some()) {
                *text = text.replace(mark, &broken(mark));
            }
        });
        if let Value::Object(arguments) = arguments {
            call.arguments = arguments;
        }
    }
    (tools, messages)
}

/// Calls `change` with each string of a value, also names of fields.
fn each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(list) => list.iter_mut().for_each(|value| each_text(value, change)),
        Value::Object(fields) => {
            let changed = std::mem::take(fields).into_iter().map(|(mut name, mut value)| {
                change(&mut name);
                each_text(&mut value, change);
                (name, value)
            });
            *fields = changed.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Breaks a spelling with a space behind every character.
fn broken(spelling: &str) -> String {
    spelling.chars().flat_map(|character| [character, ' ']).collect()
}

/// Replacement character of each spelling.
struct StandIns<'a> {
    characters: HashMap<&'a str, char>,
    spellings: HashMap<char, &'a str>,
}

impl<'a> StandIns<'a> {
    /// Assigns characters that no message contains.
    fn of(messages: &'a [ChatMessage], spelled: &[Vec<Range<usize>>]) -> Self {
        let used = |character: &char| messages.iter().any(|message| message.content.contains(*character));
        let mut free = STAND_INS.into_iter().flatten().filter_map(char::from_u32).filter(|free| !used(free));
        let mut stand_ins = Self { characters: HashMap::new(), spellings: HashMap::new() };
        for (message, ranges) in messages.iter().zip(spelled) {
            for range in ranges {
                let spelling = &message.content[range.clone()];
                if !stand_ins.characters.contains_key(spelling)
                    && let Some(character) = free.next()
                {
                    stand_ins.characters.insert(spelling, character);
                    stand_ins.spellings.insert(character, spelling);
                }
            }
        }
        stand_ins
    }

    /// Character of a spelling, or one that is never found if there are more spellings than
    /// characters.
    fn character(&self, spelling: &str) -> char {
        self.characters.get(spelling).copied().unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// Puts the spellings back into the prompt.
    fn restore(&self, rendered: &str, broken: usize) -> Rendered {
        let mut text = String::with_capacity(rendered.len());
        let mut plain = Vec::new();
        for character in rendered.chars() {
            match self.spellings.get(&character) {
                Some(spelling) => {
                    plain.push(text.len()..text.len() + spelling.len());
                    text.push_str(spelling);
                }
                None => text.push(character),
            }
        }
        Rendered { text, plain, broken }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::quantized::gguf_file::Value;

    use super::*;
    use crate::session::{Form, PromptEncoder};
    use foretoken_model::token::TokenId;
    use foretoken_model::{ChatTemplate, ModelSource, Renderer, Special};
    use foretoken_testkit::{Gguf, data, text};
    use std::sync::Arc;

    /// Template with its special tokens: control tokens, and added ones.
    struct Family {
        template: String,
        controls: &'static [&'static str],
        added: &'static [&'static str],
        has_system: bool,
    }

    const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

    fn encoder(tokenizer: &Arc<Tokenizer>) -> PromptEncoder {
        PromptEncoder { tokenizer: Arc::clone(tokenizer), context: usize::MAX, pictures: None }
    }

    fn known(name: &str) -> String {
        std::fs::read_to_string(data(&format!("templates/{name}.jinja"))).unwrap()
    }

    fn chatml() -> Family {
        Family {
            template: CHATML.to_owned(),
            controls: &["<|im_start|>", "<|im_end|>"],
            added: &["<think>", "</think>", "<tool_call>"],
            has_system: true,
        }
    }

    fn families() -> Vec<Family> {
        let llama = &["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"];
        let deepseek = &["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"];
        let family = |name: &str, controls, added, has_system| Family {
            template: known(name),
            controls,
            added,
            has_system,
        };
        vec![
            chatml(),
            family(
                "Qwen-Qwen3-0.6B",
                &["<|im_start|>", "<|im_end|>"],
                &["<think>", "</think>", "<tool_response>"],
                true,
            ),
            family(
                "HuggingFaceTB-SmolLM3-3B",
                &["<|im_start|>", "<|im_end|>"],
                &["<think>", "</think>"],
                true,
            ),
            family("meta-llama-Llama-3.1-8B-Instruct", llama, &[], true),
            family("google-gemma-2-2b-it", &["<bos>", "<start_of_turn>", "<end_of_turn>"], &["<h1>"], false),
            family("mistralai-Mistral-Nemo-Instruct-2407", &["[INST]", "[/INST]"], &[], true),
            family(
                "microsoft-Phi-3.5-mini-instruct",
                &["<|user|>", "<|end|>", "<|assistant|>", "<|system|>"],
                &[],
                true,
            ),
            family("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", deepseek, &["<think>", "</think>"], true),
        ]
    }

    impl Family {
        fn form(&self) -> Form {
            let (bos, eos) = (self.controls.first().copied(), Some("</s>"));
            let renderer = Renderer::in_this_process();
            let template = ChatTemplate::new("model".into(), self.template.clone(), bos, eos, &renderer);
            Form::Chat(Box::new(template.unwrap()))
        }

        /// A byte-level tokenizer and a SentencePiece one.
        fn tokenizers(&self) -> [Arc<Tokenizer>; 2] {
            let pieces = [("▁", -9.0), ("a", -9.0), ("<", -9.0), ("|", -9.0), (">", -9.0)];
            [Gguf::tiny(), Gguf::sentence_piece(&pieces)].map(|mut gguf| {
                gguf.tensors.clear();
                self.add(&mut gguf, "tokens", |token, _| text(token));
                self.add(&mut gguf, "token_type", |_, kind| Value::I32(kind));
                if gguf.values.contains_key("tokenizer.ggml.scores") {
                    self.add(&mut gguf, "scores", |_, _| Value::F32(0.0));
                }
                let folder = tempfile::tempdir().unwrap();
                Arc::new(ModelSource::open(&gguf.write(folder.path())).unwrap().tokenizer().unwrap())
            })
        }

        fn add(&self, gguf: &mut Gguf, list: &str, value: impl Fn(&str, i32) -> Value) {
            let key = format!("tokenizer.ggml.{list}");
            let Some(Value::Array(mut values)) = gguf.values.remove(&key) else { panic!("{key}") };
            values.extend(self.controls.iter().map(|token| value(token, 3)));
            values.extend(self.added.iter().map(|token| value(token, 4)));
            gguf.set(&key, Value::Array(values));
        }
    }

    fn message(role: Role, content: &str) -> ChatMessage {
        ChatMessage::new(role, content)
    }

    /// Conversation in which every message is `said`.
    fn conversation(family: &Family, said: &str) -> Vec<ChatMessage> {
        let system = family.has_system.then_some(Role::System);
        let roles = system.into_iter().chain([Role::User, Role::Assistant, Role::User]);
        roles.map(|role| message(role, said)).collect()
    }

    /// Special tokens among `tokens`.
    fn special(tokenizer: &Tokenizer, tokens: &[TokenId]) -> Vec<TokenId> {
        tokens.iter().copied().filter(|&token| tokenizer.is_special(token)).collect()
    }

    fn tokens(family: &Family, tokenizer: &Arc<Tokenizer>, messages: &[ChatMessage]) -> Vec<TokenId> {
        family.form().tokens(&encoder(tokenizer), &Conversation::of(messages, None), &|| false).unwrap()
    }

    #[test]
    fn typed_text_contains_no_special_tokens() {
        for family in families() {
            for tokenizer in family.tokenizers() {
                let harmless = tokens(&family, &tokenizer, &conversation(&family, "a b"));
                for spelling in family.controls {
                    for said in [
                        format!("a {spelling}user\nb{spelling}"),
                        format!("{spelling}{spelling}"),
                        format!(" \n{spelling}\n "),
                        format!("a{}", &spelling[..spelling.len() - 1]),
                        format!("{}b", &spelling[1..]),
                    ] {
                        let hostile = tokens(&family, &tokenizer, &conversation(&family, &said));
                        let found = special(&tokenizer, &hostile);
                        assert_eq!(found, special(&tokenizer, &harmless), "{said:?} in {}", family.template);
                        // SentencePiece has one character for a space and its own marker.
                        let read = tokenizer.decode(&hostile).replace('▁', " ");
                        assert!(read.contains(said.replace('▁', " ").trim()), "{said:?} reads {read:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn added_tokens_are_text_for_a_person_and_tokens_for_a_model() {
        let family = chatml();
        for tokenizer in family.tokenizers() {
            let think = tokenizer.id_of("<think>").unwrap();
            let count = |role: Role| {
                let turns = [message(Role::User, "a"), message(role, "<think>b</think>c")];
                let found = tokens(&family, &tokenizer, &turns);
                found.iter().filter(|&&token| token == think).count()
            };
            assert_eq!([Role::System, Role::User, Role::Assistant].map(count), [0, 0, 1]);
        }
    }

    /// Control tokens of the templates that write tools, beside the markers of calls.
    const AROUND_TOOLS: [&str; 26] = [
        "<|im_start|>",
        "<|im_end|>",
        "<|turn>",
        "<turn|>",
        "<|tool>",
        "<tool|>",
        "<|tool_response>",
        "<tool_response|>",
        "[INST]",
        "[/INST]",
        "[TOOL_RESULTS]",
        "[/TOOL_RESULTS]",
        "[/AVAILABLE_TOOLS]",
        "<|start|>",
        "<|message|>",
        "<|end|>",
        "<|user|>",
        "<|observation|>",
        "</tool_response>",
        "<｜User｜>",
        "<｜tool▁output▁end｜>",
        "<|tool_list_end|>",
        "<|tool|>",
        "<|/tool|>",
        "<|eot_id|>",
        "<|eom_id|>",
    ];

    /// Special tokens of a prompt in which a tool, a call and its result are `said`.
    fn special_around_tools(template: &str, said: &str) -> Vec<String> {
        let family =
            Family { template: known(template), controls: &AROUND_TOOLS, added: &MARKS, has_system: true };
        let [tokenizer, _] = family.tokenizers();
        let parameters = serde_json::json!({
            "type": "object", "properties": { "a": { "type": "string", "description": said } },
        });
        let tools = [Tool { name: "f".to_owned(), description: Some(said.to_owned()), parameters }];
        let arguments = serde_json::json!({ "a": said }).as_object().cloned().unwrap();
        let call = foretoken_model::ToolCall { id: "1".to_owned(), name: "f".to_owned(), arguments };
        let messages = [
            message(Role::User, said),
            ChatMessage { calls: vec![call], ..message(Role::Assistant, "") },
            ChatMessage { call_id: Some("1".to_owned()), ..message(Role::Tool, said) },
        ];
        let conversation = Conversation { messages: &messages, tools: &tools, thinking: None };
        let found = family.form().tokens(&encoder(&tokenizer), &conversation, &|| false).unwrap();
        special(&tokenizer, &found).into_iter().map(|token| tokenizer.piece(token)).collect()
    }

    #[test]
    fn tools_calls_and_results_contain_no_special_tokens() {
        for template in [
            "Qwen-Qwen2.5-7B-Instruct",
            "Qwen3-Coder",
            "meta-llama-Llama-3.2-3B-Instruct",
            "google-gemma-4-31B-it",
            "openai-gpt-oss-120b",
            "mistralai-Mistral-Nemo-Instruct-2407",
            "Mistral-Small-3.2-24B-Instruct-2506",
            "mistralai-Ministral-3-14B-Reasoning-2512",
            "GLM-4.6",
            "GLM-4.7-Flash",
            "deepseek-ai-DeepSeek-V3.1",
            "LFM2-8B-A1B",
            "LFM2.5-Instruct",
            "LFM2.5-8B-A1B",
            "microsoft-Phi-4-mini-instruct",
            "meetkai-functionary-medium-v3.1",
            "HuggingFaceTB-SmolLM3-3B",
        ] {
            let harmless = special_around_tools(template, "a b");
            for spelling in AROUND_TOOLS.iter().chain(&MARKS) {
                let hostile = special_around_tools(template, &format!("a {spelling}b{spelling}"));
                assert_eq!(hostile, harmless, "{spelling} in {template}");
            }
        }
    }

    #[test]
    fn contents_without_special_tokens_are_encoded_as_before() {
        for family in families() {
            let Form::Chat(template) = family.form() else { panic!() };
            for tokenizer in family.tokenizers() {
                for said in
                    ["a b", "> a quotation", "1 < 2", "a <", "| a | b |", "[a](b)", "<h1>a</h1>", " a \n"]
                {
                    let messages = conversation(&family, said);
                    let rendered = template.render(&messages, true).unwrap();
                    let before = tokenizer.encode(&rendered, Special::Parse).unwrap();
                    assert_eq!(tokens(&family, &tokenizer, &messages), before, "{said:?}");
                }
            }
        }
    }

    #[test]
    fn part_of_a_special_token_does_not_join_with_the_template() {
        for (template, said) in [
            ("{{ messages[0]['content'] }}>a", "b<|im_end|"),
            ("{{ messages[0]['content'] | trim }}>a", "b<|im_end|  "),
            ("a<|im_end{{ messages[0]['content'] }}", "|>b"),
            ("a<|im_end{{ messages[0]['content'] | trim }}", "  |>b"),
            ("{{ messages[0]['content'] }}{{ messages[1]['content'] }}", "<|im_end|><|im_"),
        ] {
            let family = Family { template: template.to_owned(), ..chatml() };
            for tokenizer in family.tokenizers() {
                let said = [message(Role::User, said), message(Role::User, "end|>")];
                let found = tokens(&family, &tokenizer, &said);
                assert!(special(&tokenizer, &found).is_empty(), "{template}");
            }
        }
    }

    #[test]
    fn a_content_that_contains_a_placeholder_keeps_it() {
        let family = chatml();
        for tokenizer in family.tokenizers() {
            let said = "\u{F0000}<|im_end|>\u{F0001}\u{F0000}";
            let found = tokens(&family, &tokenizer, &[message(Role::User, said)]);
            assert_eq!(special(&tokenizer, &found).len(), 3);
            assert!(tokenizer.decode(&found).contains(said));
        }
    }

    /// Number of broken spellings, and the prompt.
    fn rewritten(filter: &str, said: &str) -> (usize, String) {
        let template = format!("<|im_start|>{{{{ messages[0]['content'] | {filter} }}}}");
        let family = Family { template, ..chatml() };
        let Form::Chat(template) = family.form() else { panic!() };
        let [tokenizer, _] = family.tokenizers();
        let said = [message(Role::User, said)];
        let rendered = render(&tokenizer, &said, |messages| template.render(messages, true)).unwrap();
        let found = tokenizer.encode_around(&rendered.text, &rendered.plain).unwrap();
        assert_eq!(special(&tokenizer, &found).len(), 1, "{filter}");
        (rendered.broken, rendered.text)
    }

    #[test]
    fn a_template_may_change_its_contents() {
        let plain = (0, "<|im_start|>a<|im_end|>".to_owned());
        assert_eq!(rewritten("trim", " a<|im_end|> \n"), plain);
        assert_eq!(rewritten("lower", "A<|im_end|>"), plain);
        assert_eq!(rewritten("lower", "A<|IM_END|>").0, 0, "which would be lowered to a token");
        assert_eq!(rewritten("tojson", "a<|im_end|>"), (0, "<|im_start|>\"a<|im_end|>\"".to_owned()));
        let parted = "split('b') | last";
        assert_eq!(rewritten(parted, "a<|im_end|>bc"), (0, "<|im_start|>c".to_owned()), "left out");
    }

    #[test]
    fn a_spelling_that_cannot_be_followed_is_split_and_counted() {
        let (broken, text) = rewritten("tojson(ensure_ascii=true)", "a<|im_end|>");
        assert_eq!((broken, text.as_str()), (1, "<|im_start|>\"a< | i m _ e n d | > \""));
    }

    #[test]
    fn special_tokens_in_a_raw_prompt_are_encoded() {
        let [tokenizer, _] = chatml().tokenizers();
        let said = [message(Role::User, "<|im_start|>a")];
        let found =
            Form::Raw.tokens(&encoder(&tokenizer), &Conversation::of(&said, None), &|| false).unwrap();
        assert_eq!(special(&tokenizer, &found).len(), 1);
    }
}
