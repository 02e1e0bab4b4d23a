//! Builds a tree of messages linked by parent: hidden messages are left out, and their children
//! attached to the nearest visible ancestor.

use std::collections::HashMap;

use foretoken_store::{Node, Tree, title_from};

/// A message in another program's file.
#[derive(Debug, Default)]
pub struct ImportedMessage {
    /// Id in that file.
    pub key: String,
    /// Id of its parent.
    pub parent: Option<String>,
    /// Milliseconds since 1970, if known.
    pub at: Option<i64>,
    /// Visible content, if any.
    pub shown: Option<Shown>,
    /// `true` for a message that could not be read, which is left out.
    pub odd: bool,
}

/// A conversation as read from a file.
#[derive(Debug)]
pub struct ReadTree {
    pub tree: Tree,
    /// Messages that could not be read and were left out.
    pub left_out: u32,
}

#[derive(Debug, Default)]
pub struct Shown {
    /// `true` for a reply, `false` for a question.
    pub reply: bool,
    pub text: String,
    pub model: Option<String>,
}

/// Facts about the whole conversation; times are milliseconds since 1970.
#[derive(Debug, Default)]
pub struct Head {
    pub title: Option<String>,
    pub created_at: Option<i64>,
    pub updated_at: Option<i64>,
    pub pinned: bool,
    /// Id of the last message of the shown branch.
    pub current: Option<String>,
}

/// Last millisecond of the year 9999, since 1970: later times have no date in every calendar.
const MAX_TIME: i64 = 253_402_300_799_999;

/// Returns a title without control characters and those that change the direction of text, with
/// which it could imitate another. White space stays.
pub fn visible(title: &str) -> String {
    let hidden = |c: char| {
        c.is_control() && !c.is_whitespace()
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    title.chars().filter(|&c| !hidden(c)).collect()
}

/// Converts seconds to milliseconds since 1970; an invalid time becomes 0.
pub fn milliseconds(seconds: f64) -> i64 {
    clamped((seconds * 1000.0) as i64)
}

/// Limits a time to the supported range.
pub fn clamped(time: i64) -> i64 {
    time.clamp(0, MAX_TIME)
}

/// Builds the tree of the messages that can be reached from a root. Siblings are ordered by time,
/// and else as in the file.
pub fn tree(head: Head, mut messages: Vec<ImportedMessage>) -> ReadTree {
    let left_out = messages.iter().filter(|message| message.odd).count() as u32;
    messages.sort_by_key(|message| message.at);
    let places: HashMap<String, usize> =
        messages.iter().enumerate().map(|(place, message)| (message.key.clone(), place)).collect();
    let parent = |message: &ImportedMessage| message.parent.as_ref().and_then(|key| places.get(key).copied());
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); messages.len()];
    let mut waiting = Vec::new();
    for (place, message) in messages.iter().enumerate().rev() {
        match parent(message) {
            Some(parent) => below[parent].push(place),
            None => waiting.push((place, None)),
        }
    }
    let mut nodes: Vec<Node> = Vec::new();
    let mut leaf = None;
    let current = head.current.as_ref().and_then(|key| places.get(key));
    let mut shown_as = vec![None; messages.len()];
    // Depth-first from the roots; the earliest sibling is on top of the stack.
    while let Some((place, before)) = waiting.pop() {
        let message = &mut messages[place];
        let last = match message.shown.take().filter(|shown| !shown.text.trim().is_empty()) {
            Some(shown) => {
                let created_at = message.at.map_or(0, clamped);
                nodes.push(node(shown, before, created_at, &nodes));
                Some(nodes.len() - 1)
            }
            None => before,
        };
        shown_as[place] = last;
        waiting.extend(below[place].iter().map(|&next| (next, last)));
    }
    if let Some(&current) = current {
        leaf = shown_as[current];
    }
    let first = nodes.iter().map(|node| node.created_at).find(|&at| at > 0);
    let created_at = head.created_at.map(clamped).or(first).unwrap_or_default();
    for node in nodes.iter_mut().filter(|node| node.created_at == 0) {
        node.created_at = created_at;
    }
    let newest = nodes.iter().map(|node| node.created_at).max().unwrap_or(created_at);
    let words = || nodes.first().map_or_else(String::new, |node| node.text.clone());
    let title = head.title.filter(|title| !title.trim().is_empty()).unwrap_or_else(words);
    let tree = Tree {
        title: title_from(&visible(&title)),
        named: true,
        pinned: head.pinned,
        created_at,
        updated_at: head.updated_at.map_or(newest, clamped),
        nodes,
        leaf,
        ..Tree::default()
    };
    ReadTree { tree, left_out }
}

/// Creates a node. A reply below another reply continues it in a new paragraph.
fn node(shown: Shown, parent: Option<usize>, created_at: i64, before: &[Node]) -> Node {
    let Shown { reply, text, model } = shown;
    let goes_on = reply && parent.is_some_and(|parent| before[parent].reply);
    Node {
        parent,
        reply,
        text: if goes_on { format!("\n\n{text}") } else { text },
        created_at,
        finish: reply.then(|| "stop".to_owned()),
        target: model.filter(|_| reply),
        ..Node::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(key: &str, parent: &str, text: &str) -> ImportedMessage {
        ImportedMessage {
            key: key.to_owned(),
            parent: (!parent.is_empty()).then(|| parent.to_owned()),
            at: None,
            odd: false,
            shown: Some(Shown { reply: text.starts_with('a'), text: text.to_owned(), model: None }),
        }
    }

    fn lines(tree: &Tree) -> Vec<(&str, Option<usize>)> {
        tree.nodes.iter().map(|node| (node.text.as_str(), node.parent)).collect()
    }

    #[test]
    fn children_of_a_hidden_message_are_attached_to_its_parent() {
        let hidden = ImportedMessage { shown: None, ..message("h", "q", "") };
        let messages =
            vec![message("r", "h", "a fox"), hidden, message("q", "", "Why?"), message("s", "q", "a hen")];
        let head = Head { current: Some("h".to_owned()), ..Head::default() };
        let tree = tree(head, messages).tree;
        assert_eq!(lines(&tree), [("Why?", None), ("a fox", Some(0)), ("a hen", Some(0))]);
        assert_eq!((tree.leaf, tree.title.as_str()), (Some(0), "Why?"));
    }

    #[test]
    fn cycles_and_missing_parents_are_harmless() {
        let messages = vec![
            message("a", "b", "x"),
            message("b", "a", "y"),
            message("c", "c", "z"),
            message("d", "gone", "Who?"),
        ];
        assert_eq!(lines(&tree(Head::default(), messages).tree), [("Who?", None)]);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_messages_is_read() {
        let messages =
            (0..100_000).map(|at| message(&at.to_string(), &(at - 1).to_string(), "Hm?")).collect();
        let tree = tree(Head::default(), messages).tree;
        assert_eq!((tree.nodes.len(), tree.nodes[99_999].parent), (100_000, Some(99_998)));
    }

    #[test]
    fn times_are_limited_to_1970_through_9999() {
        for (seconds, expected) in
            [(f64::NAN, 0), (-7.0, 0), (f64::INFINITY, MAX_TIME), (1e300, MAX_TIME), (1.5, 1_500)]
        {
            assert_eq!(milliseconds(seconds), expected, "{seconds}");
        }
    }
}
