//! Files that are part of a prompt as a whole; longer ones are searched, or read with a tool.

use foretoken_documents::block;
use foretoken_engine::session::estimated_tokens;
use foretoken_store::{Attached, Attachment, AttachmentKind};

use crate::ipc::Builtin;

/// Most bytes of another file that a prompt begins with.
const BEGINNING: usize = 2_000;

/// Part of a file that a prompt has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nothing of its text: it is a picture.
    Nothing,
    Whole,
    /// As many bytes of its beginning; the file is searched.
    Beginning(usize),
}

/// Decides which files are part of a prompt as a whole, in the order in which they were attached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WholeFiles {
    /// Most tokens of all together.
    pub(crate) limit: usize,
    /// Tokens left for further ones.
    left: usize,
    /// `true` if the model can read files with a tool.
    has_tool: bool,
}

impl WholeFiles {
    pub(crate) fn new(limit: usize, has_tool: bool) -> Self {
        Self { limit, left: limit, has_tool }
    }

    /// Tokens left for further files; `None` without a limit.
    pub(crate) fn left(&self) -> Option<u32> {
        (self.limit < usize::MAX).then(|| u32::try_from(self.left).unwrap_or(u32::MAX))
    }

    /// Returns what the prompt has of the next file, of `bytes` of text.
    pub(crate) fn next(&mut self, kind: AttachmentKind, bytes: usize) -> Part {
        if kind == AttachmentKind::Picture {
            return Part::Nothing;
        }
        let (part, tokens) = match estimated_tokens(bytes) {
            tokens if tokens <= self.left => (Part::Whole, tokens),
            _ => {
                let beginning = BEGINNING.min(self.left);
                (Part::Beginning(beginning), estimated_tokens(beginning))
            }
        };
        self.left -= tokens;
        part
    }

    /// Takes the files of a message into account.
    pub(crate) fn pass(&mut self, files: &[Attachment]) {
        for file in files {
            self.next(file.kind, file.bytes as usize);
        }
    }

    /// Formats the next file as a [`block`], or its beginning; `None` for a picture.
    pub(crate) fn shown(&mut self, Attached { name, kind, text }: &Attached) -> Option<String> {
        let beginning = match self.next(*kind, text.len()) {
            Part::Nothing => return None,
            Part::Whole => return Some(block(name, text)),
            Part::Beginning(bytes) => &text[..text.floor_char_boundary(bytes)],
        };
        let lines = text.lines().count();
        let rest = if self.has_tool {
            format!("Read it with the tool {}.", Builtin::ReadAttachment.name())
        } else {
            "Excerpts that match a question are added to it.".to_owned()
        };
        Some(format!(
            "{}\n[The file has {lines} lines and is too long to be shown whole. {rest}]",
            block(name, beginning)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(kind: AttachmentKind, text: &str) -> Attached {
        Attached { name: "a.txt".into(), kind, text: text.to_owned() }
    }

    #[test]
    fn files_are_whole_until_their_sum_exceeds_the_limit() {
        let mut whole = WholeFiles::new(100, false);
        let per_token = 10_000 / estimated_tokens(10_000);
        let mut next = |tokens: usize| whole.next(AttachmentKind::Text, tokens * per_token);
        assert_eq!([50, 51].map(&mut next), [Part::Whole, Part::Beginning(50)]);
        let left = 50 - estimated_tokens(50);
        assert_eq!([left, 1, 0].map(&mut next), [Part::Whole, Part::Beginning(0), Part::Whole]);
        assert_eq!(whole.next(AttachmentKind::Picture, usize::MAX), Part::Nothing);
    }

    #[test]
    fn a_long_file_is_shown_with_its_beginning() {
        let long = "äöü fox\n".repeat(1_000);
        let file = file(AttachmentKind::Text, &long);
        assert_eq!(WholeFiles::new(usize::MAX, true).shown(&file).unwrap(), block("a.txt", &long));
        for (has_tool, end) in [
            (true, "Read it with the tool read_attachment.]"),
            (false, "Excerpts that match a question are added to it.]"),
        ] {
            let short = WholeFiles::new(500, has_tool).shown(&file).unwrap();
            assert!(short.len() < 500 + 200, "{}", short.len());
            assert!(short.starts_with("a.txt:\n```txt\näöü fox\n"), "{short}");
            assert!(short.ends_with(&format!("has 1000 lines and is too long to be shown whole. {end}")));
        }
        assert_eq!(WholeFiles::new(0, true).shown(&self::file(AttachmentKind::Picture, "")), None);
    }
}
