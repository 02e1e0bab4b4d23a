//! Messages with channels in gpt-oss's Harmony format: the model writes reasoning to one channel
//! and its answer to another, each after a header of control tokens. Converts between this form and
//! reasoning between `<think>` tags.

use std::borrow::Cow;

use super::template::{IN_A_CHANNEL, Thinking};
use super::tokenizer::Tokenizer;
use crate::token::TokenId;

/// Tags around the reasoning in converted text.
const TAGS: Thinking = Thinking::KNOWN[0];

/// Channel of the reasoning.
const ANALYSIS: &str = "analysis";

/// Recipient of a call in a header, before the tool's name.
const FUNCTIONS: &str = "to=functions.";

/// Texts before and after the tool's name in the text of a call's header, whatever the order of its
/// parts.
const CALL: &str = "<|channel|>commentary to=functions.";
const MESSAGE: &str = "<|message|>";

/// Header of a reasoning message, after the role.
const THINKS: &str = IN_A_CHANNEL;
/// Header of an answer, after the role.
pub const ANSWER: &str = "<|channel|>final<|message|>";
/// End of a message and start of the assistant's next one.
const NEXT: &str = "<|end|><|start|>assistant";

/// Control tokens of message headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marks {
    start: TokenId,
    channel: TokenId,
    message: TokenId,
}

/// State of the conversion within a reply.
#[derive(Debug, Clone)]
pub struct Channels {
    marks: Marks,
    /// Text of the current header, until its message begins.
    header: Option<String>,
    /// Recipient that the header named, before its channel or after it.
    recipient: Option<String>,
    /// True if the text is between the tags.
    thinks: bool,
}

impl Channels {
    /// Starts after `prompt`; `None` if the vocabulary lacks the control tokens.
    pub fn after(prompt: &[TokenId], tokenizer: &Tokenizer) -> Option<Self> {
        let control = |text| tokenizer.id_of(text).filter(|&token| tokenizer.is_control(token));
        let marks = Marks {
            start: control("<|start|>")?,
            channel: control("<|channel|>")?,
            message: control("<|message|>")?,
        };
        let mut channels = Self { marks, header: None, recipient: None, thinks: false };
        let last = prompt.iter().rposition(|&token| token == marks.start).unwrap_or(prompt.len());
        for &token in &prompt[last..] {
            channels.push(token, &String::from_utf8_lossy(tokenizer.decode_bytes(token)));
        }
        // The role alone is a complete header: without a channel, text follows.
        channels.header = channels.header.take().filter(|_| prompt[last..].contains(&marks.channel));
        Some(channels)
    }

    /// Returns the text for `token`; `None` if `text`, the token's own text, stands.
    pub fn push(&mut self, token: TokenId, text: &str) -> Option<Cow<'static, str>> {
        if token == self.marks.start || token == self.marks.channel {
            let header = self.header.replace(String::new()).unwrap_or_default();
            self.recipient = recipient(&header).map(str::to_owned).filter(|_| token == self.marks.channel);
        } else if token == self.marks.message {
            let header = self.header.take().unwrap_or_default();
            let recipient = recipient(&header).map(str::to_owned).or(self.recipient.take());
            let thinks = header.trim().starts_with(ANALYSIS) && recipient.is_none();
            let between = match (std::mem::replace(&mut self.thinks, thinks), thinks) {
                (false, true) => "<think>\n",
                (true, false) => "\n</think>\n\n",
                (true, true) => "\n",
                (false, false) => "",
            };
            return Some(match recipient {
                Some(tool) => [between, CALL, &tool, MESSAGE].concat().into(),
                None => between.into(),
            });
        } else if let Some(header) = &mut self.header {
            header.push_str(text);
        } else {
            return None;
        }
        Some("".into())
    }

    /// Returns whether a message has begun, so that a reply goes on with it.
    pub fn is_in_message(prompt: &[TokenId], tokenizer: &Tokenizer) -> bool {
        let Some(Self { marks, .. }) = Self::after(prompt, tokenizer) else { return false };
        let last = |mark| prompt.iter().rposition(|&token| token == mark);
        last(marks.message) > last(marks.start)
    }
}

/// Tool that a header names as the recipient of its message.
fn recipient(header: &str) -> Option<&str> {
    let (_, named) = header.split_once(FUNCTIONS)?;
    named.split(char::is_whitespace).next().filter(|name| !name.is_empty())
}

/// Returns the answer in `reply`, without the reasoning before it.
pub fn said(reply: &str) -> &str {
    match parts(reply) {
        Some((_, said)) => said.unwrap_or_default(),
        None => reply,
    }
}

/// Returns a partial reply in the model's own form, after the role. An empty reply gets no header
/// if the model may reason first (`thinks`), otherwise the header of an answer.
pub fn written(reply: &str, thinks: bool) -> String {
    match parts(reply) {
        Some((thought, Some(said))) => format!("{THINKS}{thought}{NEXT}{ANSWER}{said}"),
        Some((thought, None)) => format!("{THINKS}{thought}"),
        None if reply.is_empty() && thinks => String::new(),
        None => format!("{ANSWER}{reply}"),
    }
}

/// Splits `reply` into reasoning and the answer after it, if that has begun.
fn parts(reply: &str) -> Option<(&str, Option<&str>)> {
    let thought = reply.trim_start().strip_prefix(TAGS.open)?;
    let thought = thought.strip_prefix('\n').unwrap_or(thought);
    let Some((thought, said)) = thought.split_once(TAGS.close) else { return Some((thought, None)) };
    Some((thought.strip_suffix('\n').unwrap_or(thought), Some(said.trim_start_matches('\n'))))
}

#[cfg(test)]
mod tests {
    use candle_core::quantized::gguf_file::Value;

    use super::*;
    use crate::{ModelSource, Special, TextStream};
    use foretoken_testkit::{Gguf, text};

    const MARKS: [&str; 6] = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>"];

    /// Tokenizer with a token for each byte and for each control token.
    fn tokenizer() -> std::sync::Arc<Tokenizer> {
        let mut gguf = Gguf::tiny();
        gguf.tensors.clear();
        for (list, value) in
            [("tokens", MARKS.map(text).to_vec()), ("token_type", vec![Value::I32(3); MARKS.len()])]
        {
            let key = format!("tokenizer.ggml.{list}");
            let Some(Value::Array(mut values)) = gguf.values.remove(&key) else { panic!("{key}") };
            values.extend(value);
            gguf.set(&key, Value::Array(values));
        }
        let folder = tempfile::tempdir().unwrap();
        std::sync::Arc::new(ModelSource::open(&gguf.write(folder.path())).unwrap().tokenizer().unwrap())
    }

    /// Text of a reply after a prompt.
    fn shown(prompt: &str, reply: &str) -> String {
        let tokenizer = tokenizer();
        let tokens = |text: &str| tokenizer.encode(text, Special::Parse).unwrap();
        let mut stream = TextStream::new(tokenizer.clone(), &[]).after(&tokens(prompt));
        let mut shown: String = tokens(reply).into_iter().map(|token| stream.push(token)).collect();
        shown.push_str(&stream.finish());
        shown
    }

    const ASKED: &str = "<|start|>user<|message|>Why?<|end|><|start|>assistant";

    #[test]
    fn what_is_thought_stands_between_tags_and_what_is_said_after_them() {
        let thought = "<|channel|>analysis<|message|>Hm.<|end|>";
        let says = "<|start|>assistant<|channel|>final<|message|>So.<|return|>";
        assert_eq!(shown(ASKED, &format!("{thought}{says}")), "<think>\nHm.\n</think>\n\nSo.");
        assert_eq!(shown(ASKED, "<|channel|>final<|message|>So."), "So.");
        // A message to the user before the answer, and reasoning in two messages.
        let between = "<|start|>assistant<|channel|>commentary<|message|>Wait. <|end|>";
        assert_eq!(shown(ASKED, &format!("{thought}{between}{says}")), "<think>\nHm.\n</think>\n\nWait. So.");
        let more = format!("{thought}<|start|>assistant{thought}");
        assert_eq!(shown(ASKED, &format!("{more}{says}")), "<think>\nHm.\nHm.\n</think>\n\nSo.");
        // Headers name the tool that is called, before the channel or after it.
        let header = "<|channel|>commentary to=functions.f<|message|>{}";
        for call in [
            "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
            " to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
        ] {
            let next = format!("{thought}<|start|>assistant{call}");
            assert_eq!(shown(ASKED, &next), format!("<think>\nHm.\n</think>\n\n{header}"));
        }
    }

    #[test]
    fn a_reply_that_goes_on_is_in_the_channel_in_which_it_was_cut() {
        for (reply, more, all) in [
            ("", "<|channel|>final<|message|>So.", "So."),
            ("S", "o.", "So."),
            (
                "<think>\nH",
                "m.<|end|><|start|>assistant<|channel|>final<|message|>So.",
                "<think>\nHm.\n</think>\n\nSo.",
            ),
            ("<think>\nHm.\n</think>\n\nS", "o.", "<think>\nHm.\n</think>\n\nSo."),
        ] {
            let prompt = format!("{ASKED}{}", written(reply, true));
            assert_eq!(format!("{reply}{}", shown(&prompt, more)), all);
        }
    }

    #[test]
    fn a_model_that_shall_not_think_begins_with_what_it_says() {
        assert_eq!(written("", false), ANSWER);
        assert_eq!(shown(&format!("{ASKED}{ANSWER}"), "So.<|return|>"), "So.");
        assert_eq!(written("<think>\nHm.", false), written("<think>\nHm.", true));
    }

    #[test]
    fn text_without_headers_is_text() {
        assert_eq!(shown(ASKED, "So."), "So.");
        assert_eq!(shown("Once", " upon"), " upon");
        assert_eq!(said("So."), "So.");
        assert_eq!(said("<think>\nHm.\n</think>\n\nSo."), "So.");
        assert_eq!(said("<think>\nHm."), "");
    }

    #[test]
    fn an_end_of_a_message_ends_no_reply_where_another_token_does() {
        let tokenizer = tokenizer();
        let ends: Vec<String> = tokenizer.ends().iter().map(|&token| tokenizer.piece(token)).collect();
        assert!(["<|return|>", "<|call|>"].iter().all(|end| ends.contains(&(*end).to_owned())), "{ends:?}");
        assert!(!ends.contains(&"<|end|>".to_owned()), "{ends:?}");
    }
}
