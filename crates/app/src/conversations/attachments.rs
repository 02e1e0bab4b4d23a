//! Attachments of questions: their limits, their place in the prompt, and their token counts.

use foretoken_documents::{DocumentText, Excerpt, block, quoted};
use foretoken_engine::session::estimated_tokens;
use foretoken_engine::trace::Summary;
use foretoken_model::{Special, Tokenizer};
use foretoken_store as store;

use super::history::{ReadMessage, is_seen};
use super::pictures::AskedPicture;
use super::whole_files::WholeFiles;
use crate::app::App;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{
    ATTACHMENT_BYTES, ATTACHMENTS, Attached, AttachmentKind, CommandError, ContextUse, ErrorCode, Sent,
    TokenCount,
};

/// A question with all its attachments loaded.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) attached: Vec<store::Attached>,
    /// Excerpts as JSON, if documents are searched.
    pub(crate) excerpts: Option<String>,
    /// Folder of a new conversation.
    pub(crate) folder: Option<i64>,
}

impl Question {
    /// Returns the question for the store.
    pub(crate) fn asked(&self) -> store::NewQuestion<'_> {
        let Self { text, attached, excerpts, folder } = self;
        store::NewQuestion { text, attached, excerpts: excerpts.as_deref(), folder: *folder }
    }
}

/// A question as the model reads it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadQuestion {
    pub(crate) words: String,
    pub(crate) pictures: Vec<AskedPicture>,
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
        self.documents.read_encoded(file).into()
    }

    /// Counts the tokens of an attachment in a prompt, and prepares its search if it is long.
    ///
    /// # Errors
    /// Returns `BadAttachment` for a picture that cannot be read.
    pub fn count_attachment(&self, file: &Attached) -> Result<TokenCount> {
        if file.kind == AttachmentKind::Picture {
            return self.count_picture(&file.text);
        }
        self.prepare_search(file)?;
        Ok(self.count(&[block(&file.name, &file.text)], &Cancel::default()))
    }

    /// Counts the tokens of a picture, which are known for a model that sees.
    fn count_picture(&self, url: &str) -> Result<TokenCount> {
        let AskedPicture { picture, detail } = self.pictures.read(url)?;
        let tokens = self.engine.encoder().and_then(|encoder| encoder.picture_tokens(&picture, detail));
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
        let mut whole = self.whole_files(conversation)?;
        if let Some(id) = conversation {
            let store = self.store();
            let seen_from = store.conversation(id)?.seen_from;
            let messages = store.messages(id)?;
            let last = messages.last().filter(|last| last.seen_from == seen_from && last.target == target);
            counted = last.and_then(tokens_after);
            for message in messages {
                if !is_seen(&message, seen_from) {
                    whole.pass(&message.attachments);
                    continue;
                }
                if !message.attachments.is_empty() || message.excerpts.is_some() {
                    let attached = store.attached(message.id)?;
                    files.extend(with_excerpts(&attached, message.excerpts.as_deref(), &mut whole)?);
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
        Ok(ContextUse { used, system_prompt, attachments, whole_files: whole.budget().left() })
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

    /// Loads and checks a message to send after the messages `before`, and finds the excerpts for
    /// it.
    ///
    /// # Errors
    /// Returns `EmptyPrompt`; `BadAttachment` for too many or too long attachments; `NotFound` for
    /// missing ones.
    pub(crate) fn question(
        &self,
        sent: Sent,
        before: &[ReadMessage],
        conversation: Option<i64>,
    ) -> Result<Question> {
        let Sent { text, kept, attached, folder } = sent;
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
        let excerpts = self.excerpts(&text, &files, before, self.whole_files(conversation)?)?;
        let excerpts = (!excerpts.is_empty()).then(|| serde_json::to_string(&excerpts)).transpose()?;
        Ok(Question { text, attached: files, excerpts, folder })
    }

    /// Returns the messages of a branch as the model receives them, with their attachments.
    pub(crate) fn as_read(
        &self,
        messages: Vec<store::Message>,
        mut whole: WholeFiles,
    ) -> Result<Vec<ReadMessage>> {
        let read = |mut message: store::Message| {
            if message.attachments.is_empty() && message.excerpts.is_none() {
                return Ok(message.into());
            }
            let attached = self.store().attached(message.id)?;
            message.text = words(&message.text, &attached, message.excerpts.as_deref(), &mut whole)?;
            Ok(ReadMessage { message, pictures: self.pictures_of(&attached)? })
        };
        messages.into_iter().map(read).collect()
    }

    /// Returns a question after the messages `before`, as the model receives it.
    pub(crate) fn read_question(
        &self,
        question: &Question,
        before: &[ReadMessage],
        conversation: Option<i64>,
    ) -> Result<ReadQuestion> {
        let mut whole = self.whole_files(conversation)?;
        before.iter().for_each(|message| whole.pass(&message.attachments));
        let Question { text, attached, excerpts, .. } = question;
        Ok(ReadQuestion {
            words: words(text, attached, excerpts.as_deref(), &mut whole)?,
            pictures: self.pictures_of(attached)?,
        })
    }

    fn pictures_of(&self, attached: &[store::Attached]) -> Result<Vec<AskedPicture>> {
        let pictures = attached.iter().filter(|file| file.kind == store::AttachmentKind::Picture);
        Ok(pictures.map(|file| self.pictures.read(&file.text)).collect::<foretoken_model::Result<_>>()?)
    }

    /// Returns the limit of whole files in a conversation.
    pub(crate) fn whole_files(&self, conversation: Option<i64>) -> Result<WholeFiles> {
        Ok(self.whole_files_if(self.reads_attachments(conversation)?))
    }

    /// Returns the limit of whole files: half of the context, or a quarter if the model can read
    /// the others with a tool. Remote servers get all files whole.
    pub(crate) fn whole_files_if(&self, has_tool: bool) -> WholeFiles {
        let context = self.engine.status().target.map_or(0, |target| target.context as usize);
        let share = if has_tool { context / 4 } else { context / 2 };
        WholeFiles::new(if context == 0 { usize::MAX } else { share }, has_tool)
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

/// Joins a question, its attachments and its excerpts, as JSON, into a prompt: attachments as they
/// are [`WholeFiles::shown`], excerpts, then the question.
fn words(
    text: &str,
    attached: &[store::Attached],
    excerpts: Option<&str>,
    whole: &mut WholeFiles,
) -> Result<String> {
    let mut parts = with_excerpts(attached, excerpts, whole)?;
    parts.extend((!text.is_empty()).then(|| text.to_owned()));
    Ok(parts.join("\n\n"))
}

/// Returns attachments as they are shown, and the excerpts of a question.
fn with_excerpts(
    attached: &[store::Attached],
    excerpts: Option<&str>,
    whole: &mut WholeFiles,
) -> Result<Vec<String>> {
    let excerpts: Vec<Excerpt> = excerpts.map_or_else(|| Ok(Vec::new()), serde_json::from_str)?;
    let files = attached.iter().filter_map(|file| whole.shown(file));
    Ok(files.chain((!excerpts.is_empty()).then(|| quoted(&excerpts))).collect())
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
        let words = |text, files: &[store::Attached]| {
            words(text, files, None, &mut WholeFiles::new(100, false)).unwrap()
        };
        assert_eq!(
            words("Which is older?", &[file("a.csv", "fox,3\nhen,2\n"), file("notes", "")]),
            "a.csv:\n```csv\nfox,3\nhen,2\n```\n\nnotes:\n```\n\n```\n\nWhich is older?"
        );
        assert_eq!(words("", &[file("a b.md", "# A")]), "a b.md:\n```md\n# A\n```");
        assert_eq!(words("Hm?", &[]), "Hm?");
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
