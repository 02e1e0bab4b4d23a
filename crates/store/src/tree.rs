//! Whole conversations with all their branches, read from the store and added to it, for copies,
//! exports and imports. File formats are defined elsewhere.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use crate::conversations::missing;
use crate::{
    Attached, Conversation, Error, NewCall, Result, Role, Store, attachments, branches, calls, conversations,
    folders, rounds, tool_sets,
};

/// A whole conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    pub title: String,
    /// `true` if a person or a model gave the title.
    pub named: bool,
    pub pinned: bool,
    /// Name of its folder; `None` if it is in none.
    pub folder: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When a message was last added, in milliseconds since 1970.
    pub updated_at: i64,
    /// All messages in the order they were written: each comes after its parent.
    pub nodes: Vec<Node>,
    /// A message of the shown branch, which continues with the newest messages below it; `None` for
    /// the last one.
    pub leaf: Option<usize>,
    /// First message in the model's context; `None` if it has all messages.
    pub seen_from: Option<usize>,
    /// The conversation's own settings as JSON; other text is refused. `None` before the first
    /// reply.
    pub setup: Option<String>,
    /// Tools of replies, each set as JSON; other text is refused.
    pub tool_sets: Vec<String>,
}

/// A message of a [`Tree`]; see [`crate::Message`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Id in the store; 0 for a message from elsewhere.
    pub id: i64,
    /// Index of the parent in the tree.
    pub parent: Option<usize>,
    /// `true` for a reply, `false` for a question.
    pub reply: bool,
    pub text: String,
    /// Attachments with their texts.
    pub attached: Vec<Attached>,
    /// Excerpts of documents that a question's prompt contains, as JSON; other text is refused.
    pub excerpts: Option<String>,
    /// Calls of a reply.
    pub calls: Vec<NewCall>,
    /// Index of the reply's tools among those of the tree.
    pub tool_set: Option<usize>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    pub finish: Option<String>,
    /// Statistics as JSON; other text is refused.
    pub summary: Option<String>,
    pub target: Option<String>,
    pub draft: Option<String>,
    pub problem: Option<String>,
    /// First message in the model's context when it wrote the reply.
    pub seen_from: Option<usize>,
    /// Rounds of the trace, a JSON document each, if they were read: [`Store::tree`] leaves them to
    /// [`Store::rounds`], because traces take most of the space.
    pub rounds: Vec<String>,
}

impl Tree {
    /// Keeps only the message with this id and its ancestors; `None` if there is no such message.
    fn up_to(mut self, message: i64) -> Option<Self> {
        let last = self.nodes.iter().position(|node| node.id == message)?;
        let mut path: Vec<usize> =
            std::iter::successors(Some(last), |&index| self.nodes[index].parent).collect();
        path.reverse();
        let index = |old: Option<usize>| old.and_then(|old| path.binary_search(&old).ok());
        let nodes = path.iter().map(|&old| {
            let node = std::mem::take(&mut self.nodes[old]);
            Node { parent: index(node.parent), seen_from: index(node.seen_from), ..node }
        });
        let nodes = nodes.collect();
        Some(Self { nodes, leaf: None, seen_from: index(self.seen_from), ..self })
    }
}

impl Node {
    /// Reads a message without attachments and rounds. `indices` maps ids of earlier messages to
    /// their indices.
    fn read(row: &Row<'_>, indices: &HashMap<i64, usize>) -> rusqlite::Result<Self> {
        let index = |id: Option<i64>| id.and_then(|id| indices.get(&id).copied());
        Ok(Self {
            id: row.get(0)?,
            parent: index(row.get(1)?),
            reply: row.get::<_, Role>(2)? == Role::Assistant,
            text: row.get(3)?,
            attached: Vec::new(),
            excerpts: row.get(12)?,
            calls: Vec::new(),
            tool_set: None,
            created_at: row.get(4)?,
            finish: row.get(5)?,
            summary: row.get(6)?,
            target: row.get(7)?,
            draft: row.get(8)?,
            problem: row.get(9)?,
            seen_from: index(row.get(10)?),
            rounds: Vec::new(),
        })
    }
}

/// Texts of a tree in order, each with its parent's index and whether it is a reply.
type Texts = Vec<(Option<usize>, bool, String)>;

impl Store {
    /// Returns everything in a conversation that is not deleted.
    pub fn tree(&self, conversation: i64) -> Result<Tree> {
        let Conversation { title, pinned, created_at, updated_at, seen_from, .. } =
            self.conversation(conversation)?;
        let mut statement = self.connection.prepare_cached(
            "SELECT id, parent, role, text, created_at, finish, summary, target, draft, problem, seen_from, tool_set,
                    excerpts
             FROM messages WHERE conversation = ?1 AND deleted_with IS NULL ORDER BY id",
        )?;
        let mut rows = statement.query([conversation])?;
        let mut nodes: Vec<Node> = Vec::new();
        let mut indices = HashMap::new();
        let mut sets: Vec<i64> = Vec::new();
        while let Some(row) = rows.next()? {
            let mut node = Node::read(row, &indices)?;
            if let Some(set) = row.get::<_, Option<i64>>(11)? {
                let known = sets.iter().position(|&other| other == set);
                node.tool_set = known.or(Some(sets.len()));
                sets.extend(known.is_none().then_some(set));
            }
            indices.insert(node.id, nodes.len());
            nodes.push(node);
        }
        let index = |id: Option<i64>| id.and_then(|id| indices.get(&id).copied());
        let leaf = index(branches::leaf(&self.connection, conversation)?);
        for node in &mut nodes {
            node.attached = self.attached(node.id)?;
            node.calls = self.calls(node.id)?.into_iter().map(|call| call.call).collect();
        }
        let sql = "SELECT json FROM tool_sets WHERE id = ?1";
        let json = |id: &i64| self.connection.prepare_cached(sql)?.query_row([id], |row| row.get(0));
        let tool_sets = sets.iter().map(json).collect::<rusqlite::Result<_>>()?;
        let (named, setup) = (self.is_named(conversation)?, self.setup(conversation)?);
        let (seen_from, folder) = (index(seen_from), folders::name_of(&self.connection, conversation)?);
        Ok(Tree {
            title,
            named,
            pinned,
            folder,
            created_at,
            updated_at,
            nodes,
            leaf,
            seen_from,
            setup,
            tool_sets,
        })
    }

    /// Stores a copy of a conversation under another title in the same folder, with its traces: all
    /// branches, or only the path to the message `up_to`.
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
        if let Some(folder) = &tree.folder {
            folders::file_under(&transaction, copy, folder)?;
        }
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

    /// Stores a conversation from another file as deleted, so it stays invisible until
    /// [`Store::show_added`]. If that never happens, for example after a kill, the conversation is
    /// purged like other deleted ones. Its folder is left to that method. Returns its id.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] for a message whose parent does not come before it.
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

    /// Shows conversations that were added hidden: all of them or none. Each has the name of its
    /// folder, which is created if necessary.
    pub fn show_added(&mut self, conversations: &[(i64, Option<String>)]) -> Result<()> {
        let transaction = self.writing()?;
        for (id, folder) in conversations {
            of_added(&transaction, *id, "UPDATE conversations SET deleted_at = NULL WHERE id = ?1")?;
            if let Some(folder) = folder {
                folders::file_under(&transaction, *id, folder)?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// Removes conversations that were added hidden, with all their messages.
    pub fn remove_added(&mut self, conversations: &[i64]) -> Result<()> {
        let transaction = self.writing()?;
        for id in conversations {
            of_added(&transaction, *id, "DELETE FROM conversations WHERE id = ?1")?;
        }
        Ok(transaction.commit()?)
    }

    /// Returns whether a conversation that began at the same moment contains every text of `tree`.
    pub fn holds(&self, tree: &Tree) -> Result<bool> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT id FROM conversations WHERE created_at = ?1 AND deleted_at IS NULL")?;
        let candidates: Vec<i64> =
            statement.query_map([tree.created_at], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let wanted = texts(tree);
        for candidate in candidates {
            let there = texts(&self.tree(candidate)?);
            if there.len() >= wanted.len()
                && wanted.iter().all(|message| there.binary_search(message).is_ok())
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Runs a statement on a conversation that was added hidden.
fn of_added(connection: &Connection, id: i64, sql: &str) -> Result<()> {
    if connection.prepare_cached(sql)?.execute([id])? == 0 { Err(missing(id)) } else { Ok(()) }
}

/// SQL that copies the rounds of an unfinished reply, which are not packed yet.
const ROUNDS: &str = "rounds (message, idx, json) SELECT ?2, idx, json FROM rounds";

/// Texts of a tree, sorted, each with its parent's position among the earlier texts.
fn texts(tree: &Tree) -> Texts {
    let mut texts: Texts =
        tree.nodes.iter().map(|node| (node.parent, node.reply, node.text.clone())).collect();
    texts.sort_unstable();
    texts
}

/// Inserts a conversation with its messages, without traces; returns its id and theirs.
fn insert(connection: &Connection, tree: &Tree) -> Result<(i64, Vec<i64>)> {
    let conversation = conversations::insert(connection, &tree.title, tree.named, tree.created_at)?;
    let mut ids: Vec<i64> = Vec::with_capacity(tree.nodes.len());
    let mut statement = connection.prepare_cached(
        "INSERT INTO messages (conversation, role, text, created_at, finish, summary, target, draft, problem, \
         seen_from, parent, tool_set, excerpts, indexed)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 1)",
    )?;
    let sets = tree.tool_sets.iter().map(|json| tool_sets::find_or_add(connection, json));
    let sets = sets.collect::<Result<Vec<i64>>>()?;
    for node in &tree.nodes {
        let parent = match node.parent {
            Some(parent) => Some(
                *ids.get(parent)
                    .ok_or_else(|| Error::Damaged("a message comes before its parent".to_owned()))?,
            ),
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
            node.seen_from.and_then(|index| ids.get(index)),
            parent,
            node.tool_set.and_then(|set| sets.get(set)),
            node.excerpts,
        ])?;
        let id = connection.last_insert_rowid();
        attachments::add(connection, id, &node.attached)?;
        calls::add(connection, id, &node.calls)?;
        ids.push(id);
    }
    let shown = tree.leaf.and_then(|leaf| ids.get(leaf)).or(ids.last());
    // Messages below the last shown one would be unreachable.
    let leaf = shown.map(|&shown| branches::newest_below(connection, shown)).transpose()?;
    connection.execute(
        "UPDATE conversations SET pinned = ?2, updated_at = ?3, leaf = ?4, seen_from = ?5, setup = ?6 \
         WHERE id = ?1",
        params![
            conversation,
            tree.pinned,
            tree.updated_at,
            leaf,
            tree.seen_from.and_then(|index| ids.get(index)),
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
    use crate::{AttachmentKind, Ending, NewQuestion};

    /// A conversation of two questions with replies; the first reply was regenerated, and the
    /// original's branch is shown.
    fn branched() -> (Fixture, i64) {
        let mut fixture = Fixture::new();
        let file = Attached { name: "a.txt".into(), kind: AttachmentKind::Pdf, text: "Foxes".into() };
        let asked = NewQuestion { text: "Why?", attached: &[file], excerpts: Some("[1]"), folder: None };
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
    fn a_copy_up_to_a_message_contains_only_the_path_to_it() {
        let (mut fixture, id) = branched();
        let all = fixture.store.tree(id).unwrap();
        let [question, first, again, next, ..] = [0, 1, 2, 3].map(|index: usize| all.nodes[index].id);
        let texts = |fixture: &Fixture, id: i64| -> Vec<String> {
            fixture.store.messages(id).unwrap().into_iter().map(|message| message.text).collect()
        };
        let copy = fixture.store.copy_conversation(id, Some(again), "From here").unwrap();
        assert_eq!(texts(&fixture, copy.id), ["Why?", "a hen"]);
        assert_eq!(copy.seen_from, None, "that message was not copied");
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

    /// Removes the ids, as in a tree from another store.
    fn without_ids(mut tree: Tree) -> Tree {
        tree.nodes.iter_mut().for_each(|node| node.id = 0);
        tree
    }

    #[test]
    fn a_copy_has_all_branches_and_traces_and_shares_nothing_with_the_original() {
        let (mut fixture, id) = branched();
        let work = fixture.store.create_folder("Work").unwrap().id;
        fixture.store.move_conversation(id, Some(work)).unwrap();
        let before = fixture.store.tree(id).unwrap();
        fixture.wait(5);
        let copy = fixture.store.copy_conversation(id, None, "Copy").unwrap();
        assert_eq!((copy.title.as_str(), copy.updated_at), ("Copy", before.updated_at + 5));
        let copied = fixture.store.tree(copy.id).unwrap();
        let expected =
            Tree { title: "Copy".into(), named: true, updated_at: copy.updated_at, ..before.clone() };
        assert_eq!(without_ids(copied.clone()), without_ids(expected));
        assert_eq!(copied.folder.as_deref(), Some("Work"));
        assert_eq!((copied.nodes[0].attached.len(), copied.setup.is_some()), (1, true));
        assert_eq!(fixture.store.rounds(copied.nodes[1].id).unwrap(), ["[0]", "[1]"]);
        assert_eq!(fixture.store.search("fox", 9).unwrap().len(), 2);
        fixture.store.delete_message(copied.nodes[0].id).unwrap();
        assert_eq!(fixture.store.tree(id).unwrap(), before);
        assert!(fixture.store.tree(copy.id).unwrap().nodes.is_empty());
    }

    #[test]
    fn an_unfinished_reply_is_copied_as_far_as_it_is_written() {
        let (mut fixture, id) = branched();
        let (_, begun) = fixture.store.ask(Some(id), "So?", "Starter", None).unwrap();
        fixture.store.append_rounds(begun.id, "half", &[(0, "[0]")]).unwrap();
        let copy = fixture.store.copy_conversation(id, None, "Copy").unwrap().id;
        let last = fixture.store.messages(copy).unwrap().pop().unwrap();
        assert_eq!((last.text.as_str(), last.finish), ("half", None));
        assert_eq!(fixture.store.rounds(last.id).unwrap(), ["[0]"]);
    }

    #[test]
    fn added_conversations_appear_together_and_are_purged_otherwise() {
        let (mut fixture, id) = branched();
        let mut tree = without_ids(fixture.store.tree(id).unwrap());
        tree.folder = Some("Work".to_owned());
        tree.nodes[1].rounds = vec!["[7]".to_owned()];
        let mut there = Vec::new();
        for _ in 0..3 {
            there.push(fixture.store.add_hidden(&tree).unwrap());
        }
        assert_eq!(fixture.store.conversations().unwrap().len(), 1);
        assert_eq!(fixture.store.search("fox", 9).unwrap().len(), 1);
        let killed = there.pop().unwrap();
        fixture.store.remove_added(&there[1..]).unwrap();
        assert_eq!(fixture.store.folders().unwrap(), []);
        fixture.store.show_added(&[(there[0], tree.folder.clone())]).unwrap();
        let shown = fixture.store.tree(there[0]).unwrap();
        assert_eq!(fixture.store.rounds(shown.nodes[1].id).unwrap(), ["[7]"]);
        tree.nodes[1].rounds.clear();
        assert_eq!(without_ids(shown), tree);
        assert!(fixture.store.show_added(&[(there[0], None), (99, None)]).is_err());
        let fixture = fixture.reopen_for_a_day().reopen(0);
        assert!(matches!(fixture.store.restore_conversation(killed), Err(Error::NotFound { .. })));
        assert_eq!(fixture.store.conversations().unwrap().len(), 2);
    }

    #[test]
    fn a_tree_that_shows_an_inner_message_continues_to_the_newest_below_it() {
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
            fixture.store.show_added(&[(id, None)]).unwrap();
            let shown: Vec<_> = fixture.store.messages(id).unwrap().into_iter().map(|it| it.text).collect();
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn thousands_of_siblings_are_read_as_quickly_as_a_chain() {
        let mut fixture = Fixture::new();
        let mut seconds = |parent: fn(usize) -> usize| {
            let node = |index: usize| Node { parent: index.checked_sub(1).map(parent), ..Node::default() };
            let tree = Tree { nodes: (0..=20_000).map(node).collect(), ..Tree::default() };
            let id = fixture.store.add_hidden(&tree).unwrap();
            fixture.store.show_added(&[(id, None)]).unwrap();
            let begin = Instant::now();
            assert_eq!(fixture.store.tree(id).unwrap().nodes.len(), 20_001);
            begin.elapsed().as_secs_f64()
        };
        let (row, beside) = (seconds(|before| before), seconds(|_| 0));
        assert!(beside < 20.0 * row, "{beside} s, and {row} s in a row");
    }

    #[test]
    fn a_conversation_is_recognised_even_if_it_was_continued() {
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
    fn a_message_that_comes_before_its_parent_is_refused_and_nothing_is_stored() {
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
