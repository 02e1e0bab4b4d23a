//! Excerpts of documents that are too long for the model's context: passages that match a question.
//! They are stored with the question, so that its prompt stays the same.

use std::fmt::Write;

use foretoken_documents::{DocumentKey, Found, block};
use foretoken_engine::session::estimated_tokens;
use foretoken_store as store;

use super::document_search::{Document, Matches};
use super::history::ReadMessage;
use super::whole_files::{Part, WholeFiles};
use crate::app::App;
use crate::error::Result;
use crate::ipc::{Attached, Excerpt};

/// Most passages of a question, and most tokens of them.
const PASSAGES: usize = 6;
const TOKENS: usize = 1_500;

impl App {
    /// Adds the text of a file to the index if it is too long for the prompt of a new conversation,
    /// so that the question need not wait for it.
    pub(crate) fn prepare_search(&self, file: &Attached) -> Result<()> {
        let part = self.whole_files_if(false).next(file.kind.into(), file.text.len());
        if let Part::Beginning(_) = part {
            self.document_search.add(&file.text)?;
        }
        Ok(())
    }

    /// Finds the excerpts for a question with the files `attached`, after messages with theirs: of
    /// all documents that are not part of the prompt as a whole.
    pub(crate) fn excerpts(
        &self,
        question: &str,
        attached: &[store::Attached],
        before: &[ReadMessage],
        mut whole: WholeFiles,
    ) -> Result<Vec<Excerpt>> {
        let (mut documents, mut names) = (Vec::new(), Vec::new());
        for file in before.iter().flat_map(|message| &message.attachments) {
            if let Part::Beginning(_) = whole.next(file.kind, file.bytes as usize) {
                documents.push(Document::Stored(file.id));
                names.push(file.name.as_str());
            }
        }
        for file in attached {
            if let Part::Beginning(_) = whole.next(file.kind, file.text.len()) {
                documents.push(Document::New(&file.text));
                names.push(&file.name);
            }
        }
        if documents.is_empty() {
            return Ok(Vec::new());
        }
        let text_of = |id| Ok(self.store().attachment(id)?.text);
        let Matches { keys, passages } =
            self.document_search.find(&documents, question, PASSAGES, text_of)?;
        let named: Vec<_> = keys.into_iter().zip(names).collect();
        Ok(joined(best(passages, TOKENS.min(whole.limit / 2)), &named))
    }
}

/// The first passages that have at most `tokens` together, at least one, in the order of their
/// documents.
fn best(found: Vec<Found>, tokens: usize) -> Vec<Found> {
    let mut sum = 0;
    let mut best: Vec<Found> = found
        .into_iter()
        .enumerate()
        .take_while(|(index, found)| {
            sum += estimated_tokens(found.text.len());
            *index == 0 || sum <= tokens
        })
        .map(|(_, found)| found)
        .collect();
    best.sort_by_key(|found| found.number);
    best
}

/// Joins passages that follow each other, and names their documents.
fn joined(passages: Vec<Found>, named: &[(DocumentKey, &str)]) -> Vec<Excerpt> {
    let mut last: Option<(DocumentKey, i64)> = None;
    let mut excerpts: Vec<Excerpt> = Vec::new();
    for Found { document, number, text, page, heading } in passages {
        match excerpts.last_mut() {
            Some(excerpt) if last == Some((document, number - 1)) => excerpt.text.push_str(&text),
            _ => {
                // The latest file with this text is the one that is meant.
                let name = named.iter().rev().find(|(key, _)| *key == document);
                let name = name.map_or("", |(_, name)| *name).to_owned();
                excerpts.push(Excerpt { name, page, heading, text });
            }
        }
        last = Some((document, number));
    }
    for excerpt in &mut excerpts {
        excerpt.text = excerpt.text.trim().to_owned();
    }
    excerpts
}

/// Formats excerpts for a prompt: numbered, each with its place.
pub(crate) fn quoted(excerpts: &[Excerpt]) -> String {
    let mut text = String::from("Excerpts of the attached files that match the question:");
    for (number, Excerpt { name, page, heading, text: excerpt }) in (1..).zip(excerpts) {
        let mut place = format!("[{number}] {name}");
        if let Some(page) = page {
            let _ = write!(place, ", page {page}");
        }
        if let Some(heading) = heading {
            let _ = write!(place, ", {heading}");
        }
        let _ = write!(text, "\n\n{}", block(&place, excerpt));
    }
    text.push_str("\n\nCite the excerpts that the answer is taken from by their numbers, like [1].");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str, number: i64, text: &str) -> Found {
        let document = DocumentKey::of(document);
        Found { document, number, text: text.to_owned(), page: Some(number as u32), heading: None }
    }

    #[test]
    fn neighbours_become_one_excerpt_in_the_order_of_the_text() {
        let [a, b] = ["a", "b"].map(DocumentKey::of);
        let passages =
            [found("a", 4, "fox\n"), found("b", 5, "hen"), found("a", 3, " the "), found("a", 1, "x")];
        let excerpts = joined(best(passages.into(), 100), &[(a, "a.txt"), (b, "b.txt")]);
        let facts: Vec<_> = excerpts.iter().map(|it| (&*it.name, it.page, &*it.text)).collect();
        assert_eq!(
            facts,
            [("a.txt", Some(1), "x"), ("a.txt", Some(3), "the fox"), ("b.txt", Some(5), "hen")]
        );
    }

    #[test]
    fn the_best_passages_fit_and_the_first_always_stays() {
        let long = "fox ".repeat(200);
        let passages = || (0..9).map(|number| found("a", 2 * number, &long)).collect::<Vec<_>>();
        assert_eq!(best(passages(), usize::MAX).len(), 9);
        assert_eq!(best(passages(), 2 * estimated_tokens(long.len())).len(), 2);
        assert_eq!(best(passages(), 0).len(), 1);
    }

    #[test]
    fn excerpts_are_numbered_with_their_places() {
        let excerpt = |page, heading: Option<&str>| Excerpt {
            name: "a.pdf".into(),
            page,
            heading: heading.map(str::to_owned),
            text: "fox".into(),
        };
        let text = quoted(&[excerpt(Some(3), None), excerpt(None, Some("Foxes"))]);
        assert_eq!(
            text,
            "Excerpts of the attached files that match the question:\n\n[1] a.pdf, page 3:\n```\nfox\n```\n\n\
             [2] a.pdf, Foxes:\n```\nfox\n```\n\nCite the excerpts that the answer is taken from by their \
             numbers, like [1]."
        );
    }
}
