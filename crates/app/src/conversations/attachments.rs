//! Attachments of questions: their limits, their place in the prompt, and their token counts.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foretoken_documents::{DocumentText, Unread, block};
use foretoken_engine::session::estimated_tokens;
use foretoken_engine::trace::Summary;
use foretoken_model::{Picture, Special, Tokenizer};
use foretoken_store as store;

use super::history::{ReadMessage, seen_since};
use super::pictures::DETAIL;
use crate::app::App;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{
    ATTACHMENT_BYTES, ATTACHMENTS, Attached, AttachmentKind, Builtin, CommandError, ContextUse, ErrorCode,
    Sent, TokenCount,
};

/// A question with all its attachments loaded.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) attached: Vec<store::Attached>,
}

impl Question {
    /// Returns the question for the store.
    pub(crate) fn asked(&self) -> store::NewQuestion<'_> {
        store::NewQuestion { text: &self.text, attached: &self.attached }
    }

    /// Returns the text for the model, with attachments of at most `longest` tokens.
    pub(crate) fn words(&self, longest: usize) -> String {
        words(&self.text, &self.attached, longest)
    }
}

/// A question as the model reads it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadQuestion {
    pub(crate) words: String,
    pub(crate) pictures: Vec<Arc<Picture>>,
}

impl App {
    /// Returns a stored attachment.
    ///
    /// # Errors
    /// Returns `NotFound` if it does not exist.
    pub fn attachment(&self, id: i64) -> Result<Attached> {
        Ok(self.store().attachment(id)?.into())
    }

    /// Extracts the text of a document's file in Base64.
    pub fn read_document(&self, file: &str) -> DocumentText {
        STANDARD
            .decode(file)
            .map_err(|_| Unread::Damaged)
            .and_then(|bytes| self.documents.read(&bytes))
            .into()
    }

    /// Counts the tokens of an attachment in a prompt.
    ///
    /// # Errors
    /// Returns `BadAttachment` for a picture that cannot be read.
    pub fn count_attachment(&self, file: &Attached) -> Result<TokenCount> {
        if file.kind == AttachmentKind::Picture {
            return self.count_picture(&file.text);
        }
        Ok(self.count(&[block(&file.name, &file.text)], &Cancel::default()))
    }

    /// Counts the tokens of a picture, which are known for a model that sees.
    fn count_picture(&self, url: &str) -> Result<TokenCount> {
        let picture = self.pictures.read(url)?;
        let tokens = self.engine.encoder().and_then(|encoder| encoder.picture_tokens(&picture, DETAIL));
        Ok(TokenCount { tokens: tokens.unwrap_or(0) as u32, exact: tokens.is_some() })
    }

    /// Counts the tokens in the model's context before the next message, and those of the system
    /// prompt and the attachments. The last reply's count is used unless the context or the model
    /// has changed since. A later call turns a running count into an estimate.
    ///
    /// # Errors
    /// Returns `NotFound` if the conversation does not exist.
    pub fn context_use(&self, conversation: Option<i64>) -> Result<ContextUse> {
        let counting = self.counting.begin();
        let target = self.engine.status().target.map(|target| target.label);
        let (mut files, mut texts, mut counted, mut pictures) = (Vec::new(), Vec::new(), None, 0);
        let longest = self.longest_attachment(self.reads_attachments(conversation)?);
        if let Some(id) = conversation {
            let store = self.store();
            let seen_from = store.conversation(id)?.seen_from;
            let messages = store.messages(id)?;
            let last = messages.last().filter(|last| last.seen_from == seen_from && last.target == target);
            counted = last.and_then(tokens_after);
            for message in seen_since(messages, seen_from) {
                if !message.attachments.is_empty() {
                    let attached = store.attached(message.id)?;
                    let texts = attached.iter().filter(|file| file.kind != store::AttachmentKind::Picture);
                    files.extend(texts.map(|file| shown(file, longest)));
                    let seen = attached.iter().filter(|file| file.kind == store::AttachmentKind::Picture);
                    let counts = seen.filter_map(|file| self.count_picture(&file.text).ok());
                    pictures += counts.map(|count| count.tokens).sum::<u32>();
                }
                texts.push(message.text);
            }
        }
        let system_prompt = self.setup_of(conversation)?.values.system_prompt.trim().to_owned();
        let system_prompt = self.count(&[system_prompt], &counting);
        let attachments = self.count(&files, &counting);
        let attachments = TokenCount { tokens: attachments.tokens + pictures, ..attachments };
        let used = counted.map_or_else(
            || {
                let tokens = self.count(&texts, &counting).tokens;
                // The template's own tokens are not counted.
                TokenCount { tokens: tokens + system_prompt.tokens + attachments.tokens, exact: false }
            },
            |tokens| TokenCount { tokens, exact: true },
        );
        Ok(ContextUse { used, system_prompt, attachments })
    }

    /// Counts the tokens of all texts: estimated without a tokenizer, if they cannot fit anyway,
    /// and once the result is no longer needed.
    fn count(&self, texts: &[String], counting: &Cancel) -> TokenCount {
        let bytes = texts.iter().map(String::len).sum();
        let context = self.engine.status().target.map_or(0, |target| target.context as usize);
        let cannot_fit = |tokenizer: &Tokenizer| context > 0 && tokenizer.at_least(bytes) > context;
        let tokenizer = self.engine.tokenizer().filter(|tokenizer| !cannot_fit(tokenizer));
        let encode = |text: &String| {
            let tokenizer = tokenizer.as_ref().filter(|_| !counting.is_cancelled())?;
            Some(tokenizer.encode(text, Special::Ignore).ok()?.len())
        };
        let counted: Option<usize> = texts.iter().map(encode).sum();
        let tokens = counted.unwrap_or_else(|| estimated_tokens(bytes));
        // An empty list has no tokens.
        let exact = counted.is_some() && tokenizer.is_some();
        TokenCount { tokens: u32::try_from(tokens).unwrap_or(u32::MAX), exact }
    }

    /// Loads and checks a message to send.
    ///
    /// # Errors
    /// Returns `EmptyPrompt`; `BadAttachment` for too many or too long attachments; `NotFound` for
    /// missing ones.
    pub(crate) fn question(&self, sent: Sent) -> Result<Question> {
        let Sent { text, kept, attached } = sent;
        if kept.len() + attached.len() > ATTACHMENTS {
            return Err(refused(format!("At most {ATTACHMENTS} files can be attached to a message.")));
        }
        let mut files = Vec::new();
        for id in kept {
            files.push(self.store().attachment(id)?);
        }
        for file in attached {
            let name = shown_name(&file.name);
            let text = &file.text;
            if file.kind == AttachmentKind::Picture {
                self.pictures.read(text)?;
                files.push(Attached { name, ..file }.into());
                continue;
            }
            if text.trim().is_empty() {
                return Err(refused(format!("{name} contains no text. Remove it.")));
            }
            if text.len() > ATTACHMENT_BYTES {
                let most = ATTACHMENT_BYTES >> 20;
                return Err(refused(format!(
                    "{name} has more than {most} MB of text. Attach only part of it."
                )));
            }
            files.push(Attached { name, ..file }.into());
        }
        let text = text.trim().to_owned();
        if text.is_empty() && files.is_empty() {
            return Err(foretoken_model::Error::EmptyPrompt.into());
        }
        Ok(Question { text, attached: files })
    }

    /// Returns the messages as the model receives them, with their attachments. Of texts with more
    /// than `longest` tokens, only the beginning.
    pub(crate) fn as_read(&self, messages: Vec<store::Message>, longest: usize) -> Result<Vec<ReadMessage>> {
        let read = |mut message: store::Message| {
            if message.attachments.is_empty() {
                return Ok(message.into());
            }
            let attached = self.store().attached(message.id)?;
            message.text = words(&message.text, &attached, longest);
            Ok(ReadMessage { message, pictures: self.pictures_of(&attached)? })
        };
        messages.into_iter().map(read).collect()
    }

    /// Returns a question of a conversation, or a new one, as the model receives it.
    pub(crate) fn read_question(
        &self,
        question: &Question,
        conversation: Option<i64>,
    ) -> Result<ReadQuestion> {
        let longest = self.longest_attachment(self.reads_attachments(conversation)?);
        Ok(ReadQuestion { words: question.words(longest), pictures: self.pictures_of(&question.attached)? })
    }

    fn pictures_of(&self, attached: &[store::Attached]) -> Result<Vec<Arc<Picture>>> {
        let pictures = attached.iter().filter(|file| file.kind == store::AttachmentKind::Picture);
        Ok(pictures.map(|file| self.pictures.read(&file.text)).collect::<foretoken_model::Result<_>>()?)
    }

    /// Returns the tokens of the longest attachment that is part of a prompt as a whole: a quarter
    /// of the context if the model can read the others with a tool.
    pub(crate) fn longest_attachment(&self, reads_attachments: bool) -> usize {
        match self.engine.status().target {
            Some(target) if reads_attachments && target.context > 0 => target.context as usize / 4,
            _ => usize::MAX,
        }
    }
}

/// Returns the tokens in the context after a stored reply, if they were counted.
fn tokens_after(reply: &store::Message) -> Option<u32> {
    let summary: Summary = serde_json::from_str(reply.summary.as_deref()?).ok()?;
    Some(summary.prompt_tokens + summary.tokens)
}

fn refused(message: String) -> CommandError {
    CommandError::new(ErrorCode::BadAttachment, message)
}

/// Shortens a name to one line and the usual length of file names.
pub(crate) fn shown_name(name: &str) -> String {
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(255).collect();
    match name.trim() {
        "" => "text".to_owned(),
        name => name.to_owned(),
    }
}

/// Joins a question and its attachments into a prompt: each attachment as it is [`shown`], then the
/// question.
fn words(text: &str, attached: &[store::Attached], longest: usize) -> String {
    let texts = attached.iter().filter(|file| file.kind != store::AttachmentKind::Picture);
    let mut parts: Vec<String> = texts.map(|file| shown(file, longest)).collect();
    parts.extend((!text.is_empty()).then(|| text.to_owned()));
    parts.join("\n\n")
}

/// Most bytes of an attachment that a model sees before it reads the rest with a tool.
const BEGINNING: usize = 2_000;

/// Formats an attachment as a [`block`], of one with more than `longest` tokens only the beginning.
fn shown(file: &store::Attached, longest: usize) -> String {
    if estimated_tokens(file.text.len()) <= longest {
        return block(&file.name, &file.text);
    }
    let beginning = &file.text[..file.text.floor_char_boundary(BEGINNING.min(longest))];
    let lines = file.text.lines().count();
    let tool = Builtin::ReadAttachment.name();
    format!(
        "{}\n[The file has {lines} lines and is too long to be shown whole. Read it with the tool {tool}.]",
        block(&file.name, beginning)
    )
}

#[cfg(test)]
mod tests {
    use foretoken_store::AttachmentKind;

    use super::*;

    #[test]
    fn an_attachment_comes_before_the_question_in_a_fence_with_its_name() {
        let file = |name: &str, text: &str| store::Attached {
            name: name.to_owned(),
            kind: AttachmentKind::Text,
            text: text.to_owned(),
        };
        assert_eq!(
            words("Which is older?", &[file("a.csv", "fox,3\nhen,2\n"), file("notes", "")], 100),
            "a.csv:\n```csv\nfox,3\nhen,2\n```\n\nnotes:\n```\n\n```\n\nWhich is older?"
        );
        assert_eq!(words("", &[file("a b.md", "# A")], 100), "a b.md:\n```md\n# A\n```");
        assert_eq!(words("Hm?", &[], 100), "Hm?");
    }

    #[test]
    fn a_model_that_can_read_attachments_sees_the_beginning_of_long_ones() {
        let long = "äöü fox\n".repeat(1_000);
        let file = store::Attached { name: "a.txt".into(), kind: AttachmentKind::Text, text: long.clone() };
        assert_eq!(shown(&file, usize::MAX), block("a.txt", &long));
        let short = shown(&file, 500);
        assert!(short.len() < 500 + 200, "{}", short.len());
        assert!(short.starts_with("a.txt:\n```txt\näöü fox\n"), "{short}");
        assert!(short.ends_with(
            "has 1000 lines and is too long to be shown whole. Read it with the tool read_attachment.]"
        ));
    }

    #[test]
    fn a_fence_in_an_attachment_does_not_end_its_block() {
        for (text, fence) in [("```\nx\n```", "````"), ("a `` b", "```"), ("``````", "```````")] {
            let block = block("x.tar.gz !", text);
            assert_eq!(block, format!("x.tar.gz !:\n{fence}\n{text}\n{fence}"));
        }
    }

    #[test]
    fn a_shown_name_is_one_line_and_never_empty() {
        assert_eq!(shown_name(" a\nb\u{7}.txt "), "ab.txt");
        assert_eq!(shown_name("\n"), "text");
        assert_eq!(shown_name(&"ä".repeat(300)).chars().count(), 255);
    }
}
