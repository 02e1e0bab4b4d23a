//! Messages that name what they follow, as a tree: what nobody shall see is left out, and what followed it follows what
//! was before.

use std::collections::HashMap;

use foretoken_store::{Node, Tree, title_from};

/// A message in the file of another program.
#[derive(Debug, Default)]
pub struct Said {
    /// What others call it.
    pub key: String,
    /// What it follows.
    pub parent: Option<String>,
    /// Milliseconds since 1970, where it is known.
    pub at: Option<i64>,
    /// What is shown of it, if anything.
    pub shown: Option<Shown>,
}

#[derive(Debug, Default)]
pub struct Shown {
    /// Whether a model wrote it.
    pub reply: bool,
    pub text: String,
    pub model: Option<String>,
}

/// What is known of the conversation as a whole, times in milliseconds since 1970.
#[derive(Debug, Default)]
pub struct Head {
    pub title: Option<String>,
    pub created_at: Option<i64>,
    pub updated_at: Option<i64>,
    pub pinned: bool,
    /// The key of the message that the shown branch ends with.
    pub current: Option<String>,
}

/// The last moment that every calendar has, in milliseconds since 1970.
const LAST: i64 = 253_402_300_799_999;

/// Milliseconds since 1970 from seconds; what is no time is the beginning.
pub fn milliseconds(seconds: f64) -> i64 {
    within((seconds * 1000.0) as i64)
}

/// The same time, or the nearest that every calendar has.
pub fn within(time: i64) -> i64 {
    time.clamp(0, LAST)
}

/// The messages that can be reached from a first one. Those that follow the same one are in the order of their times,
/// and else of the file.
pub fn tree(head: Head, mut messages: Vec<Said>) -> Tree {
    messages.sort_by_key(|said| said.at);
    let places: HashMap<String, usize> =
        messages.iter().enumerate().map(|(place, said)| (said.key.clone(), place)).collect();
    let parent = |said: &Said| said.parent.as_ref().and_then(|key| places.get(key).copied());
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); messages.len()];
    let mut waiting = Vec::new();
    for (place, said) in messages.iter().enumerate().rev() {
        match parent(said) {
            Some(parent) => below[parent].push(place),
            None => waiting.push((place, None)),
        }
    }
    let mut nodes: Vec<Node> = Vec::new();
    let mut leaf = None;
    let current = head.current.as_ref().and_then(|key| places.get(key));
    let mut shown_as = vec![None; messages.len()];
    // From each message to what follows it; the earliest is on top.
    while let Some((place, before)) = waiting.pop() {
        let said = &mut messages[place];
        let last = match said.shown.take().filter(|shown| !shown.text.trim().is_empty()) {
            Some(shown) => {
                let created_at = said.at.map_or(0, within);
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
    let created_at = head.created_at.map(within).or(first).unwrap_or_default();
    for node in nodes.iter_mut().filter(|node| node.created_at == 0) {
        node.created_at = created_at;
    }
    let newest = nodes.iter().map(|node| node.created_at).max().unwrap_or(created_at);
    let words = || nodes.first().map_or_else(String::new, |node| node.text.clone());
    let title = head.title.filter(|title| !title.trim().is_empty()).unwrap_or_else(words);
    Tree {
        title: title_from(&title),
        named: true,
        pinned: head.pinned,
        created_at,
        updated_at: head.updated_at.map_or(newest, within),
        nodes,
        leaf,
        seen_from: None,
        setup: None,
    }
}

/// A reply that follows another one goes on with it, in a paragraph of its own.
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

    fn said(key: &str, parent: &str, text: &str) -> Said {
        Said {
            key: key.to_owned(),
            parent: (!parent.is_empty()).then(|| parent.to_owned()),
            at: None,
            shown: Some(Shown { reply: text.starts_with('a'), text: text.to_owned(), model: None }),
        }
    }

    fn lines(tree: &Tree) -> Vec<(&str, Option<usize>)> {
        tree.nodes.iter().map(|node| (node.text.as_str(), node.parent)).collect()
    }

    #[test]
    fn what_follows_something_hidden_follows_what_was_before() {
        let hidden = Said { shown: None, ..said("h", "q", "") };
        let messages = vec![said("r", "h", "a fox"), hidden, said("q", "", "Why?"), said("s", "q", "a hen")];
        let head = Head { current: Some("h".to_owned()), ..Head::default() };
        let tree = tree(head, messages);
        assert_eq!(lines(&tree), [("Why?", None), ("a fox", Some(0)), ("a hen", Some(0))]);
        assert_eq!((tree.leaf, tree.title.as_str()), (Some(0), "Why?"));
    }

    #[test]
    fn messages_in_a_circle_and_what_follows_nothing_there_do_no_harm() {
        let messages =
            vec![said("a", "b", "x"), said("b", "a", "y"), said("c", "c", "z"), said("d", "gone", "Who?")];
        assert_eq!(lines(&tree(Head::default(), messages)), [("Who?", None)]);
    }

    #[test]
    fn a_conversation_of_a_hundred_thousand_messages_in_a_row_is_read() {
        let messages = (0..100_000).map(|at| said(&at.to_string(), &(at - 1).to_string(), "Hm?")).collect();
        let tree = tree(Head::default(), messages);
        assert_eq!((tree.nodes.len(), tree.nodes[99_999].parent), (100_000, Some(99_998)));
    }

    #[test]
    fn no_time_is_before_1970_or_after_the_year_9999() {
        for (seconds, expected) in
            [(f64::NAN, 0), (-7.0, 0), (f64::INFINITY, LAST), (1e300, LAST), (1.5, 1_500)]
        {
            assert_eq!(milliseconds(seconds), expected, "{seconds}");
        }
    }
}
