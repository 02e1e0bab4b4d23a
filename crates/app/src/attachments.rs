//! Files beside a question: what may be attached, how a model reads it, and how many tokens that takes.

use foretoken_engine::model::{Special, Tokenizer};
use foretoken_engine::trace::Summary;
use foretoken_store as store;

use crate::app::App;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::estimate::{estimated, exceeds};
use crate::history::seen_since;
use crate::ipc::{
    ATTACHMENT_BYTES, ATTACHMENTS, Attached, CommandError, ContextUse, ErrorCode, Sent, TokenCount,
};

/// What a person asks, with all files at hand.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) attached: Vec<store::Attached>,
}

impl Question {
    /// For the store.
    pub(crate) fn asked(&self) -> store::Asked<'_> {
        store::Asked { text: &self.text, attached: &self.attached }
    }

    /// As a model reads it.
    pub(crate) fn words(&self) -> String {
        words(&self.text, &self.attached)
    }
}

impl App {
    /// A file that stands beside a message.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn attachment(&self, id: i64) -> Result<Attached> {
        Ok(self.store().attachment(id)?.into())
    }

    /// The tokens that a file takes in a prompt.
    pub fn count_attachment(&self, file: &Attached) -> TokenCount {
        self.count(&[block(&file.name, &file.text)], &Cancel::default())
    }

    /// Tokens in the model's context before the next message, and how many of them are the system prompt's and the
    /// files'. The last reply has counted them, unless the context or the model has changed since. A later call makes
    /// the count under way an estimate.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn context_use(&self, conversation: Option<i64>) -> Result<ContextUse> {
        let counting = self.counting.begin();
        let target = self.engine.status().target.map(|target| target.label);
        let (mut files, mut texts, mut counted) = (Vec::new(), Vec::new(), None);
        if let Some(id) = conversation {
            let store = self.store();
            let seen_from = store.conversation(id)?.seen_from;
            let messages = store.messages(id)?;
            let last = messages.last().filter(|last| last.seen_from == seen_from && last.target == target);
            counted = last.and_then(tokens_after);
            for message in seen_since(messages, seen_from) {
                if !message.attachments.is_empty() {
                    let attached = store.attached(message.id)?;
                    files.extend(attached.iter().map(|file| block(&file.name, &file.text)));
                }
                texts.push(message.text);
            }
        }
        let system_prompt = self.setup_of(conversation)?.values.system_prompt.trim().to_owned();
        let system_prompt = self.count(&[system_prompt], &counting);
        let attachments = self.count(&files, &counting);
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

    /// The tokens of all these together: estimated where there is no tokenizer, where they cannot fit anyway, and where
    /// nobody waits for them any more.
    fn count(&self, texts: &[String], counting: &Cancel) -> TokenCount {
        let bytes = texts.iter().map(String::len).sum();
        let context = self.engine.status().target.map_or(0, |target| target.context as usize);
        let cannot_fit = |tokenizer: &Tokenizer| context > 0 && exceeds(bytes, tokenizer, context);
        let tokenizer = self.engine.tokenizer().filter(|tokenizer| !cannot_fit(tokenizer));
        let encode = |text: &String| {
            let tokenizer = tokenizer.as_ref().filter(|_| !counting.is_cancelled())?;
            Some(tokenizer.encode(text, Special::Ignore).ok()?.len())
        };
        let counted: Option<usize> = texts.iter().map(encode).sum();
        let tokens = counted.unwrap_or_else(|| estimated(bytes));
        // Of no text at all, nothing is to be counted.
        let exact = counted.is_some() && tokenizer.is_some();
        TokenCount { tokens: u32::try_from(tokens).unwrap_or(u32::MAX), exact }
    }

    /// What was sent, if there is something in it.
    ///
    /// # Errors
    /// `EmptyPrompt`; `BadAttachment` for files that are too many or too long; `NotFound` for those that are gone.
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
            if text.trim().is_empty() {
                return Err(refused(format!("{name} has no text in it. Remove it.")));
            }
            if text.len() > ATTACHMENT_BYTES {
                let most = ATTACHMENT_BYTES >> 20;
                return Err(refused(format!("{name} has more than {most} MB of text. Attach a part of it.")));
            }
            files.push(Attached { name, ..file }.into());
        }
        let text = text.trim().to_owned();
        if text.is_empty() && files.is_empty() {
            return Err(foretoken_engine::Error::EmptyPrompt.into());
        }
        Ok(Question { text, attached: files })
    }

    /// Messages as a model reads them: with the files beside them in their text.
    pub(crate) fn as_read(&self, mut messages: Vec<store::Message>) -> Result<Vec<store::Message>> {
        for message in messages.iter_mut().filter(|message| !message.attachments.is_empty()) {
            let attached = self.store().attached(message.id)?;
            message.text = words(&message.text, &attached);
        }
        Ok(messages)
    }
}

/// Tokens in the context after a stored reply, where they were counted.
fn tokens_after(reply: &store::Message) -> Option<u32> {
    let summary: Summary = serde_json::from_str(reply.summary.as_deref()?).ok()?;
    Some(summary.prompt_tokens + summary.tokens)
}

fn refused(message: String) -> CommandError {
    CommandError::new(ErrorCode::BadAttachment, message)
}

/// A name on one line, as long as names of files are.
pub(crate) fn shown_name(name: &str) -> String {
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(255).collect();
    match name.trim() {
        "" => "text".to_owned(),
        name => name.to_owned(),
    }
}

/// The prompt that a question and the files beside it make: the files come first, each as [`block`].
fn words(text: &str, attached: &[store::Attached]) -> String {
    let mut parts: Vec<String> = attached.iter().map(|file| block(&file.name, &file.text)).collect();
    parts.extend((!text.is_empty()).then(|| text.to_owned()));
    parts.join("\n\n")
}

/// A file's name, and its text in a fence that is longer than any in it.
fn block(name: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let language = name.rsplit_once('.').map_or("", |(_, end)| end);
    let is_word = !language.is_empty() && language.chars().all(|letter| letter.is_ascii_alphanumeric());
    let language = if is_word { language } else { "" };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{name}:\n{fence}{language}\n{text}{end}{fence}")
}

/// Backticks in a row, at most.
fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use foretoken_store::AttachmentKind;

    use super::*;

    #[test]
    fn a_file_stands_before_the_question_in_a_fence_with_its_name() {
        let file = |name: &str, text: &str| store::Attached {
            name: name.to_owned(),
            kind: AttachmentKind::Text,
            text: text.to_owned(),
        };
        assert_eq!(
            words("Which is older?", &[file("a.csv", "fox,3\nhen,2\n"), file("notes", "")]),
            "a.csv:\n```csv\nfox,3\nhen,2\n```\n\nnotes:\n```\n\n```\n\nWhich is older?"
        );
        assert_eq!(words("", &[file("a b.md", "# A")]), "a b.md:\n```md\n# A\n```");
        assert_eq!(words("Hm?", &[]), "Hm?");
    }

    #[test]
    fn no_fence_in_a_file_ends_its_own() {
        for (text, fence) in [("```\nx\n```", "````"), ("a `` b", "```"), ("``````", "```````")] {
            let block = block("x.tar.gz !", text);
            assert_eq!(block, format!("x.tar.gz !:\n{fence}\n{text}\n{fence}"));
        }
    }

    #[test]
    fn a_name_is_one_line_and_never_empty() {
        assert_eq!(shown_name(" a\nb\u{7}.txt "), "ab.txt");
        assert_eq!(shown_name("\n"), "text");
        assert_eq!(shown_name(&"ä".repeat(300)).chars().count(), 255);
    }
}
