//! Excerpts of documents that are too long for the model's context: passages that match a question,
//! as its prompt contains them.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::block::block;
use crate::budget::FileBudget;
use crate::index::{DocumentKey, Found};

/// Most passages of a question, and most tokens of them.
pub const PASSAGES: usize = 6;
const TOKENS: usize = 1_500;

/// Sentence about the rest of a file that is searched.
pub const ADDED: &str = "Excerpts that match a question are added to it.";

/// A part of an attached document that matches a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Excerpt {
    /// Name of the document.
    pub name: String,
    /// Page of its first letter, from 1, in a document with pages.
    pub page: Option<u32>,
    /// Last heading before it.
    pub heading: Option<String>,
    pub text: String,
}

/// Returns the best of the found passages that take at most half of a budget, in the order of
/// their documents, which are named. Passages that follow each other are one excerpt.
pub fn excerpts(found: Vec<Found>, budget: &FileBudget, named: &[(DocumentKey, &str)]) -> Vec<Excerpt> {
    joined(best(found, budget), named)
}

/// The first passages that fit together, at least one, in the order of their documents.
fn best(found: Vec<Found>, budget: &FileBudget) -> Vec<Found> {
    let most = TOKENS.min(budget.limit() / 2);
    let mut sum = 0;
    let mut best: Vec<Found> = found
        .into_iter()
        .enumerate()
        .take_while(|(index, found)| {
            sum += budget.tokens(found.text.len());
            *index == 0 || sum <= most
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
pub fn quoted(excerpts: &[Excerpt]) -> String {
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

    fn budget(limit: usize) -> FileBudget {
        FileBudget::new(limit, |bytes| bytes.div_ceil(4))
    }

    #[test]
    fn neighbours_become_one_excerpt_in_the_order_of_the_text() {
        let [a, b] = ["a", "b"].map(DocumentKey::of);
        let passages =
            [found("a", 4, "fox\n"), found("b", 5, "hen"), found("a", 3, " the "), found("a", 1, "x")];
        let excerpts = super::excerpts(passages.into(), &budget(200), &[(a, "a.txt"), (b, "b.txt")]);
        let facts: Vec<_> = excerpts.iter().map(|it| (&*it.name, it.page, &*it.text)).collect();
        assert_eq!(
            facts,
            [("a.txt", Some(1), "x"), ("a.txt", Some(3), "the fox"), ("b.txt", Some(5), "hen")]
        );
    }

    #[test]
    fn the_best_passages_fit_and_the_first_always_stays() {
        // A passage of 200 tokens.
        let long = "fox ".repeat(200);
        let passages = || (0..9).map(|number| found("a", 2 * number, &long)).collect::<Vec<_>>();
        let fitting = |limit| best(passages(), &budget(limit)).len();
        assert_eq!([usize::MAX, 1_000, 800, 798, 0].map(fitting), [7, 2, 2, 1, 1]);
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
