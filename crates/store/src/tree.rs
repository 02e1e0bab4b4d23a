//! Conversations as a whole, with all their branches: out of the store, and into it, for copies, exports and imports.
//! What their files look like is not known here.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use crate::conversations::missing;
use crate::{
    Attached, Conversation, Error, Result, Role, Store, attachments, branches, conversations, rounds,
};

/// A conversation as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    pub title: String,
    /// Whether a person or a model gave it its title.
    pub named: bool,
    pub pinned: bool,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When a message was last added, in milliseconds since 1970.
    pub updated_at: i64,
    /// All messages in the order in which they were said: each comes after the one it follows.
    pub nodes: Vec<Node>,
    /// A message of the shown branch, which goes on to the newest of what follows it; `None` for the last one.
    pub leaf: Option<usize>,
    /// The first that the model still sees; `None` while it sees all.
    pub seen_from: Option<usize>,
    /// What it is written with: JSON, anything else is refused; `None` where no reply was written here.
    pub setup: Option<String>,
}

/// A message of a [`Tree`]; see [`crate::Message`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its number in the store; 0 for one that was not there.
    pub id: i64,
    /// Which message of the tree it follows.
    pub parent: Option<usize>,
    /// Whether a model wrote it.
    pub reply: bool,
    pub text: String,
    /// The files beside it.
    pub attached: Vec<Attached>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    pub finish: Option<String>,
    /// JSON; anything else is refused.
    pub summary: Option<String>,
    pub target: Option<String>,
    pub draft: Option<String>,
    pub problem: Option<String>,
    /// The first that the model saw when it wrote the reply.
    pub seen_from: Option<usize>,
    /// Its trace, a JSON document for each round, where it is brought along: [`Store::tree`] leaves that to
    /// [`Store::rounds`], since traces take most of the room.
    pub rounds: Vec<String>,
}

impl Tree {
    /// What leads to the message of this number, and that; `None` where there is none.
    fn up_to(mut self, message: i64) -> Option<Self> {
        let last = self.nodes.iter().position(|node| node.id == message)?;
        let mut path: Vec<usize> =
            std::iter::successors(Some(last), |&place| self.nodes[place].parent).collect();
        path.reverse();
        let place = |old: Option<usize>| old.and_then(|old| path.binary_search(&old).ok());
        let nodes = path.iter().map(|&old| {
            let node = std::mem::take(&mut self.nodes[old]);
            Node { parent: place(node.parent), seen_from: place(node.seen_from), ..node }
        });
        let nodes = nodes.collect();
        Some(Self { nodes, leaf: None, seen_from: place(self.seen_from), ..self })
    }
}

impl Node {
    /// Without its files and rounds. `places` has those of the messages before it, by their numbers.
    fn read(row: &Row<'_>, places: &HashMap<i64, usize>) -> rusqlite::Result<Self> {
        let place = |id: Option<i64>| id.and_then(|id| places.get(&id).copied());
        Ok(Self {
            id: row.get(0)?,
            parent: place(row.get(1)?),
            reply: row.get::<_, Role>(2)? == Role::Assistant,
            text: row.get(3)?,
            attached: Vec::new(),
            created_at: row.get(4)?,
            finish: row.get(5)?,
            summary: row.get(6)?,
            target: row.get(7)?,
            draft: row.get(8)?,
            problem: row.get(9)?,
            seen_from: place(row.get(10)?),
            rounds: Vec::new(),
        })
    }
}

/// What was said, in the order of the numbers, and what it followed.
type Said = Vec<(Option<usize>, bool, String)>;

impl Store {
    /// All that is in a conversation and not deleted.
    pub fn tree(&self, conversation: i64) -> Result<Tree> {
        let Conversation { title, pinned, created_at, updated_at, seen_from, .. } =
            self.conversation(conversation)?;
        let mut statement = self.connection.prepare_cached(
            "SELECT id, parent, role, text, created_at, finish, summary, target, draft, problem, seen_from
             FROM messages WHERE conversation = ?1 AND deleted_with IS NULL ORDER BY id",
        )?;
        let mut rows = statement.query([conversation])?;
        let mut nodes: Vec<Node> = Vec::new();
        let mut places = HashMap::new();
        while let Some(row) = rows.next()? {
            let node = Node::read(row, &places)?;
            places.insert(node.id, nodes.len());
            nodes.push(node);
        }
        let place = |id: Option<i64>| id.and_then(|id| places.get(&id).copied());
        let leaf = place(branches::leaf(&self.connection, conversation)?);
        for node in &mut nodes {
            node.attached = self.attached(node.id)?;
        }
        let (named, setup) = (self.is_named(conversation)?, self.setup(conversation)?);
        let seen_from = place(seen_from);
        Ok(Tree { title, named, pinned, created_at, updated_at, nodes, leaf, seen_from, setup })
    }

    /// Stores a copy of a conversation under another title, with its traces: all its branches, or what leads to the
    /// message `up_to` and that alone.
    pub fn copy_conversation(
        &mut self,
        conversation: i64,
        up_to: Option<i64>,
        title: &str,
    ) -> Result<Conversation> {
        let now = self.now();
        let mut tree = self.tree(conversation)?;
        if let Some(id) = up_to {
            tree = tree.up_to(id).ok_or(Error::NotFound { what: "message", id })?;
        }
        let tree = Tree { title: title.to_owned(), named: true, pinned: false, updated_at: now, ..tree };
        let transaction = self.writing()?;
        let (copy, messages) = insert(&transaction, &tree)?;
        for (node, message) in tree.nodes.iter().zip(messages) {
            for table in ["traces (message, packed) SELECT ?2, packed FROM traces", ROUNDS] {
                transaction
                    .prepare_cached(&format!("INSERT INTO {table} WHERE message = ?1"))?
                    .execute([node.id, message])?;
            }
        }
        transaction.commit()?;
        self.conversation(copy)
    }

    /// Stores a conversation of another file as one that is deleted, so that nobody sees it before
    /// [`Store::show_added`]. Where that never comes, because the program is killed say, it goes as what is deleted
    /// does. Returns its number.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a message that follows none before it.
    pub fn add_hidden(&mut self, tree: &Tree) -> Result<i64> {
        let age = self.age()?;
        let transaction = self.writing()?;
        let (id, messages) = insert(&transaction, tree)?;
        for (node, message) in tree.nodes.iter().zip(messages).filter(|(node, _)| !node.rounds.is_empty()) {
            rounds::keep(&transaction, message, &node.rounds)?;
        }
        transaction.execute("UPDATE conversations SET deleted_at = ?2 WHERE id = ?1", params![id, age])?;
        transaction.commit()?;
        Ok(id)
    }

    /// Shows conversations that were added hidden: all of them or none.
    pub fn show_added(&mut self, conversations: &[i64]) -> Result<()> {
        self.of_all(conversations, "UPDATE conversations SET deleted_at = NULL WHERE id = ?1")
    }

    /// Removes conversations that were added hidden, with everything in them.
    pub fn remove_added(&mut self, conversations: &[i64]) -> Result<()> {
        self.of_all(conversations, "DELETE FROM conversations WHERE id = ?1")
    }

    fn of_all(&mut self, conversations: &[i64], sql: &str) -> Result<()> {
        let transaction = self.writing()?;
        for id in conversations {
            if transaction.prepare_cached(sql)?.execute([id])? == 0 {
                return Err(missing(*id));
            }
        }
        Ok(transaction.commit()?)
    }

    /// Whether all that is said in `tree` is in a conversation that began at the same moment.
    pub fn holds(&self, tree: &Tree) -> Result<bool> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT id FROM conversations WHERE created_at = ?1 AND deleted_at IS NULL")?;
        let candidates: Vec<i64> =
            statement.query_map([tree.created_at], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let wanted = said(tree);
        for candidate in candidates {
            let there = said(&self.tree(candidate)?);
            if there.len() >= wanted.len()
                && wanted.iter().all(|message| there.binary_search(message).is_ok())
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Of a reply that is not over: what is not packed yet.
const ROUNDS: &str = "rounds (message, idx, json) SELECT ?2, idx, json FROM rounds";

/// What is said in a tree, sorted: texts with what they follow, by its place among the texts before.
fn said(tree: &Tree) -> Said {
    let mut said: Said = tree.nodes.iter().map(|node| (node.parent, node.reply, node.text.clone())).collect();
    said.sort_unstable();
    said
}

/// Inserts a conversation with its messages, without traces; returns its number and theirs.
fn insert(connection: &Connection, tree: &Tree) -> Result<(i64, Vec<i64>)> {
    let conversation = conversations::insert(connection, &tree.title, tree.named, tree.created_at)?;
    let mut ids: Vec<i64> = Vec::with_capacity(tree.nodes.len());
    let mut statement = connection.prepare_cached(
        "INSERT INTO messages (conversation, role, text, created_at, finish, summary, target, draft, problem, \
         seen_from, parent, indexed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 1)",
    )?;
    for node in &tree.nodes {
        let parent = match node.parent {
            Some(parent) => Some(*ids.get(parent).ok_or_else(|| {
                Error::Damaged("a message follows one that does not come before it".to_owned())
            })?),
            None => None,
        };
        statement.execute(params![
            conversation,
            if node.reply { "assistant" } else { "user" },
            node.text,
            node.created_at,
            node.finish,
            node.summary,
            node.target,
            node.draft,
            node.problem,
            node.seen_from.and_then(|place| ids.get(place)),
            parent,
        ])?;
        let id = connection.last_insert_rowid();
        attachments::add(connection, id, &node.attached)?;
        ids.push(id);
    }
    let shown = tree.leaf.and_then(|leaf| ids.get(leaf)).or(ids.last());
    // What follows the last message that is shown could not be reached.
    let leaf = shown.map(|&shown| branches::newest_below(connection, shown)).transpose()?;
    connection.execute(
        "UPDATE conversations SET pinned = ?2, updated_at = ?3, leaf = ?4, seen_from = ?5, setup = ?6 \
         WHERE id = ?1",
        params![
            conversation,
            tree.pinned,
            tree.updated_at,
            leaf,
            tree.seen_from.and_then(|place| ids.get(place)),
            tree.setup,
        ],
    )?;
    Ok((conversation, ids))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::store::tests::Fixture;
    use crate::{Asked, AttachmentKind, Ending};

    /// Two questions and a reply to each; the first reply was written again, and the branch of the first is shown.
    fn branched() -> (Fixture, i64) {
        let mut fixture = Fixture::new();
        let file = Attached { name: "a.txt".into(), kind: AttachmentKind::Pdf, text: "Foxes".into() };
        let asked = Asked { text: "Why?", attached: &[file] };
        let (question, first) = fixture.store.ask(None, asked, "Starter", Some("n-gram")).unwrap();
        let ending = Ending { text: "a fox", finish: Some("stop"), summary: Some("{}"), problem: None };
        fixture.store.append_rounds(first.id, "a fox", &[(0, "[0]"), (1, "[1]")]).unwrap();
        fixture.store.finish_reply(first.id, ending).unwrap();
        let again = fixture.store.begin_again(first.id, "Starter", None).unwrap().id;
        fixture.store.finish_reply(again, Ending { text: "a hen", ..ending }).unwrap();
        fixture.store.choose_branch(first.id).unwrap();
        fixture.wait(9);
        let id = question.conversation;
        let (asked, failed) = fixture.store.ask(Some(id), "And?", "Starter", None).unwrap();
        fixture
            .store
            .finish_reply(failed.id, Ending { problem: Some("broken"), ..Ending::default() })
            .unwrap();
        fixture.store.see_from(id, Some(asked.id)).unwrap();
        fixture.store.save_setup(id, Some(r#"{"own":true}"#)).unwrap();
        (fixture, id)
    }

    #[test]
    fn a_copy_up_to_a_message_has_what_leads_to_it_and_nothing_beside() {
        let (mut fixture, id) = branched();
        let all = fixture.store.tree(id).unwrap();
        let [question, first, again, next, ..] = [0, 1, 2, 3].map(|place: usize| all.nodes[place].id);
        let texts = |fixture: &Fixture, id: i64| -> Vec<String> {
            fixture.store.messages(id).unwrap().into_iter().map(|message| message.text).collect()
        };
        let copy = fixture.store.copy_conversation(id, Some(again), "From here").unwrap();
        assert_eq!(texts(&fixture, copy.id), ["Why?", "a hen"]);
        assert_eq!(copy.seen_from, None, "that message did not come along");
        let copy = fixture.store.copy_conversation(id, Some(next), "And on").unwrap();
        assert_eq!(texts(&fixture, copy.id), ["Why?", "a fox", "And?"]);
        let copied = fixture.store.tree(copy.id).unwrap();
        assert_eq!((copied.nodes.len(), copied.seen_from, copied.nodes[0].attached.len()), (3, Some(2), 1));
        assert_eq!(fixture.store.rounds(copied.nodes[1].id).unwrap(), ["[0]", "[1]"]);
        for known in [question, first] {
            assert_eq!(fixture.store.message(known).unwrap().conversation, id, "the original stays");
        }
        let missing = fixture.store.copy_conversation(copy.id, Some(first), "x").unwrap_err();
        assert!(matches!(missing, Error::NotFound { what: "message", .. }), "{missing}");
    }

    /// A tree as it is elsewhere.
    fn without_numbers(mut tree: Tree) -> Tree {
        tree.nodes.iter_mut().for_each(|node| node.id = 0);
        tree
    }

    #[test]
    fn a_copy_has_all_branches_and_traces_and_nothing_of_it_is_the_originals() {
        let (mut fixture, id) = branched();
        let before = fixture.store.tree(id).unwrap();
        fixture.wait(5);
        let copy = fixture.store.copy_conversation(id, None, "Copy").unwrap();
        assert_eq!((copy.title.as_str(), copy.updated_at), ("Copy", before.updated_at + 5));
        let copied = fixture.store.tree(copy.id).unwrap();
        let expected =
            Tree { title: "Copy".into(), named: true, updated_at: copy.updated_at, ..before.clone() };
        assert_eq!(without_numbers(copied.clone()), without_numbers(expected));
        assert_eq!((copied.nodes[0].attached.len(), copied.setup.is_some()), (1, true));
        assert_eq!(fixture.store.rounds(copied.nodes[1].id).unwrap(), ["[0]", "[1]"]);
        assert_eq!(fixture.store.search("fox", 9).unwrap().len(), 2);
        fixture.store.delete_message(copied.nodes[0].id).unwrap();
        assert_eq!(fixture.store.tree(id).unwrap(), before);
        assert!(fixture.store.tree(copy.id).unwrap().nodes.is_empty());
    }

    #[test]
    fn a_reply_that_is_not_over_is_copied_as_far_as_it_is() {
        let (mut fixture, id) = branched();
        let (_, begun) = fixture.store.ask(Some(id), "So?", "Starter", None).unwrap();
        fixture.store.append_rounds(begun.id, "half", &[(0, "[0]")]).unwrap();
        let copy = fixture.store.copy_conversation(id, None, "Copy").unwrap().id;
        let last = fixture.store.messages(copy).unwrap().pop().unwrap();
        assert_eq!((last.text.as_str(), last.finish), ("half", None));
        assert_eq!(fixture.store.rounds(last.id).unwrap(), ["[0]"]);
    }

    #[test]
    fn what_was_added_is_seen_when_all_of_it_is_and_goes_without_a_trace_otherwise() {
        let (mut fixture, id) = branched();
        let mut tree = without_numbers(fixture.store.tree(id).unwrap());
        tree.nodes[1].rounds = vec!["[7]".to_owned()];
        let mut there = Vec::new();
        for _ in 0..3 {
            there.push(fixture.store.add_hidden(&tree).unwrap());
        }
        assert_eq!(fixture.store.conversations().unwrap().len(), 1);
        assert_eq!(fixture.store.search("fox", 9).unwrap().len(), 1);
        let killed = there.pop().unwrap();
        fixture.store.remove_added(&there[1..]).unwrap();
        fixture.store.show_added(&there[..1]).unwrap();
        let shown = fixture.store.tree(there[0]).unwrap();
        assert_eq!(fixture.store.rounds(shown.nodes[1].id).unwrap(), ["[7]"]);
        tree.nodes[1].rounds.clear();
        assert_eq!(without_numbers(shown), tree);
        assert!(fixture.store.show_added(&[there[0], 99]).is_err());
        let fixture = fixture.reopen_for_a_day().reopen(0);
        assert!(matches!(fixture.store.restore_conversation(killed), Err(Error::NotFound { .. })));
        assert_eq!(fixture.store.conversations().unwrap().len(), 2);
    }

    #[test]
    fn a_branch_that_is_shown_to_its_middle_goes_on_to_the_newest_below() {
        let mut fixture = Fixture::new();
        let node = |parent, text: &str| Node { parent, text: text.to_owned(), ..Node::default() };
        let nodes = vec![
            node(None, "Why?"),
            node(Some(0), "a fox"),
            node(Some(1), "And?"),
            node(Some(1), "So?"),
            node(None, "Who?"),
        ];
        for (leaf, expected) in [
            (Some(1), vec!["Why?", "a fox", "So?"]),
            (Some(2), vec!["Why?", "a fox", "And?"]),
            (None, vec!["Who?"]),
        ] {
            let id =
                fixture.store.add_hidden(&Tree { nodes: nodes.clone(), leaf, ..Tree::default() }).unwrap();
            fixture.store.show_added(&[id]).unwrap();
            let shown: Vec<_> = fixture.store.messages(id).unwrap().into_iter().map(|it| it.text).collect();
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn thousands_of_messages_after_the_same_one_are_read_as_quickly_as_in_a_row() {
        let mut fixture = Fixture::new();
        let mut seconds = |parent: fn(usize) -> usize| {
            let node = |place: usize| Node { parent: place.checked_sub(1).map(parent), ..Node::default() };
            let tree = Tree { nodes: (0..=20_000).map(node).collect(), ..Tree::default() };
            let id = fixture.store.add_hidden(&tree).unwrap();
            fixture.store.show_added(&[id]).unwrap();
            let begin = Instant::now();
            assert_eq!(fixture.store.tree(id).unwrap().nodes.len(), 20_001);
            begin.elapsed().as_secs_f64()
        };
        let (row, beside) = (seconds(|before| before), seconds(|_| 0));
        assert!(beside < 20.0 * row, "{beside} s, and {row} s in a row");
    }

    #[test]
    fn a_conversation_is_known_again_also_when_it_went_on_since() {
        let (mut fixture, id) = branched();
        let tree = fixture.store.tree(id).unwrap();
        fixture.store.ask(Some(id), "So?", "Starter", None).unwrap();
        fixture.store.rename_conversation(id, "Other").unwrap();
        assert!(fixture.store.holds(&tree).unwrap());
        let mut longer = fixture.store.tree(id).unwrap();
        longer.nodes[3].text.push('!');
        assert!(!fixture.store.holds(&longer).unwrap());
        assert!(!fixture.store.holds(&Tree { created_at: 1, ..tree.clone() }).unwrap());
        fixture.store.delete_conversation(id).unwrap();
        assert!(!fixture.store.holds(&tree).unwrap());
    }

    #[test]
    fn a_message_that_follows_none_before_it_is_refused_and_nothing_is_kept() {
        let mut fixture = Fixture::new();
        for parent in [0, 7] {
            let node = Node { parent: Some(parent), ..Node::default() };
            let tree = Tree { nodes: vec![node], ..Tree::default() };
            assert!(matches!(fixture.store.add_hidden(&tree), Err(Error::Damaged(_))));
        }
        let left: i64 = fixture
            .store
            .connection
            .query_row("SELECT count(*) FROM conversations", [], |row| row.get(0))
            .unwrap();
        assert_eq!(left, 0);
    }
}
