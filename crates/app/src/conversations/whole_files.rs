//! Files that are part of a prompt as a whole; longer ones are searched, or read with a tool.

use foretoken_documents::{ADDED, FileBudget, Part};
use foretoken_engine::session::estimated_tokens;
use foretoken_store::{Attached, Attachment, AttachmentKind};

use crate::ipc::Builtin;

/// Decides which files are part of a prompt as a whole, in the order in which they were attached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WholeFiles {
    budget: FileBudget,
    /// `true` if the model can read files with a tool.
    has_tool: bool,
}

impl WholeFiles {
    /// Whole files have at most `limit` tokens together.
    pub(crate) fn new(limit: usize, has_tool: bool) -> Self {
        Self { budget: FileBudget::new(limit, estimated_tokens), has_tool }
    }

    pub(crate) fn budget(&self) -> &FileBudget {
        &self.budget
    }

    /// Returns what the prompt has of the next file, of `bytes` of text; `None` for a picture,
    /// which has no text.
    pub(crate) fn next(&mut self, kind: AttachmentKind, bytes: usize) -> Option<Part> {
        (kind != AttachmentKind::Picture).then(|| self.budget.next(bytes))
    }

    /// Takes the files of a message into account.
    pub(crate) fn pass(&mut self, files: &[Attachment]) {
        for file in files {
            self.next(file.kind, file.bytes as usize);
        }
    }

    /// Formats the next file for a prompt, or its beginning; `None` for a picture.
    pub(crate) fn shown(&mut self, Attached { name, kind, text }: &Attached) -> Option<String> {
        let rest = if self.has_tool {
            format!("Read it with the tool {}.", Builtin::ReadAttachment.name())
        } else {
            ADDED.to_owned()
        };
        (*kind != AttachmentKind::Picture).then(|| self.budget.shown(name, text, &rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_long_file_is_read_with_a_tool_or_searched_and_a_picture_has_no_text() {
        let file = |kind| Attached { name: "a.txt".into(), kind, text: "fox\n".repeat(1_000) };
        for (has_tool, end) in [
            (true, "Read it with the tool read_attachment.]"),
            (false, "Excerpts that match a question are added to it.]"),
        ] {
            let mut whole = WholeFiles::new(500, has_tool);
            assert_eq!(whole.shown(&file(AttachmentKind::Picture)), None);
            assert_eq!(whole.next(AttachmentKind::Picture, usize::MAX), None);
            assert_eq!(whole.budget().left(), Some(500));
            assert!(whole.shown(&file(AttachmentKind::Text)).unwrap().ends_with(end));
        }
    }
}
