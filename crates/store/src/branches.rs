//! Branches: a conversation is a tree of messages and shows the path from the first message to one
//! leaf. Edited questions and regenerated replies become siblings of the original, which is kept
//! with everything below it. Search covers all branches.

use rusqlite::{Connection, OptionalExtension, params};

use crate::conversations::missing;
use crate::messages::{Models, add_both, add_reply, find};
use crate::{Error, Message, NewQuestion, Result, Role, Store};

impl Store {
    /// Stores an edited question as a sibling of `question`, with an empty reply by the models with
    /// these labels, and shows both.
    pub fn ask_instead<'a>(
        &mut self,
        question: i64,
        asked: impl Into<NewQuestion<'a>>,
        target: &str,
        draft: Option<&str>,
    ) -> Result<(Message, Message)> {
        let now = self.now();
        let transaction = self.writing()?;
        let before = visible(&transaction, question, Role::User)?;
        let by = Models { target, draft };
        let both = add_both(&transaction, before.conversation, before.parent, asked.into(), by, now)?;
        transaction.commit()?;
        Ok(both)
    }

    /// Stores an empty reply by the models with these labels as a sibling of another reply, and
    /// shows it.
    pub fn begin_again(&mut self, reply: i64, target: &str, draft: Option<&str>) -> Result<Message> {
        self.begin_after(reply, Role::Assistant, |reply| reply.parent, Models { target, draft })
    }

    /// Stores an empty reply to a question by the models with these labels, and shows it.
    pub fn begin_answer(&mut self, question: i64, target: &str, draft: Option<&str>) -> Result<Message> {
        self.begin_after(question, Role::User, |question| Some(question.id), Models { target, draft })
    }

    /// Stores an empty reply by the models with these labels that continues a reply that was cut
    /// off, and shows it.
    pub fn begin_continuation(&mut self, reply: i64, target: &str, draft: Option<&str>) -> Result<Message> {
        self.begin_after(reply, Role::Assistant, |reply| Some(reply.id), Models { target, draft })
    }

    /// Stores an empty reply below the parent that `parent` picks from the message
    /// `existing` by `role`.
    fn begin_after(
        &mut self,
        existing: i64,
        role: Role,
        parent: impl FnOnce(&Message) -> Option<i64>,
        by: Models<'_>,
    ) -> Result<Message> {
        let now = self.now();
        let transaction = self.writing()?;
        let existing = visible(&transaction, existing, role)?;
        let begun = add_reply(&transaction, existing.conversation, parent(&existing), by, now)?;
        transaction.commit()?;
        Ok(begun)
    }

    /// Shows the branch of a message; below it, the newest messages. Nothing changes if the message
    /// is already shown.
    pub fn choose_branch(&mut self, message: i64) -> Result<()> {
        let transaction = self.writing()?;
        choose(&transaction, message)?;
        Ok(transaction.commit()?)
    }

    /// Hides a message and everything below it; [`Store::restore_message`] undoes this for a day of
    /// the store's own clock. If the message was shown, a sibling is shown instead, or else the
    /// conversation ends with its parent.
    pub fn delete_message(&mut self, id: i64) -> Result<()> {
        let age = self.age()?;
        let transaction = self.writing()?;
        let message = find_visible(&transaction, id)?;
        transaction.execute(
            &format!(
                "{BELOW} UPDATE messages SET deleted_with = ?1, deleted_at = ?2, indexed = 0
                 WHERE id IN (SELECT id FROM below)"
            ),
            params![id, age],
        )?;
        let shown = leaf(&transaction, message.conversation)?;
        let gone = shown.map(|leaf| find_visible(&transaction, leaf)).is_some_and(|leaf| leaf.is_err());
        if gone {
            let beside = message.siblings.iter().rfind(|&&sibling| sibling != id);
            let next = match beside {
                Some(&sibling) => Some(newest_below(&transaction, sibling)?),
                None => message.parent,
            };
            show(&transaction, message.conversation, next)?;
        }
        Ok(transaction.commit()?)
    }

    /// Restores a deleted message with everything below it, and shows it.
    pub fn restore_message(&mut self, id: i64) -> Result<()> {
        let transaction = self.writing()?;
        if let Some(parent) = find(&transaction, id)?.parent {
            find_visible(&transaction, parent)?;
        }
        transaction.execute(
            "UPDATE messages SET deleted_with = NULL, deleted_at = NULL, indexed = 1 WHERE deleted_with = ?1",
            [id],
        )?;
        choose(&transaction, id)?;
        Ok(transaction.commit()?)
    }

    /// Removes replies that a killed program left empty, as [`Store::finish_reply`] does; returns
    /// their number.
    pub(crate) fn remove_empty_replies(&mut self) -> Result<usize> {
        let transaction = self.writing()?;
        let empty: Vec<i64> = transaction
            .prepare(
                "SELECT messages.id FROM messages JOIN conversations ON conversations.id = conversation
                 WHERE role = 'assistant' AND text = '' AND finish IS NULL AND problem IS NULL
                 AND deleted_with IS NULL AND conversations.deleted_at IS NULL",
            )?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let mut removed = 0;
        for reply in empty {
            removed += usize::from(remove_empty_reply(&transaction, reply)?.is_some());
        }
        transaction.commit()?;
        Ok(removed)
    }
}

/// SQL prefix that defines `below`: message `?1` and its descendants that are not deleted.
const BELOW: &str = "
    WITH RECURSIVE below (id) AS (
        SELECT id FROM messages WHERE id = ?1 AND deleted_with IS NULL
        UNION ALL
        SELECT messages.id FROM below JOIN messages ON messages.parent = below.id AND deleted_with IS NULL
    )";

/// Returns the last message that a conversation shows.
pub(crate) fn leaf(connection: &Connection, conversation: i64) -> Result<Option<i64>> {
    let mut statement =
        connection.prepare_cached("SELECT leaf FROM conversations WHERE id = ?1 AND deleted_at IS NULL")?;
    statement.query_row([conversation], |row| row.get(0)).optional()?.ok_or(missing(conversation))
}

/// Shows the branch that ends with `leaf`.
pub(crate) fn show(connection: &Connection, conversation: i64, leaf: Option<i64>) -> Result<()> {
    connection.execute("UPDATE conversations SET leaf = ?2 WHERE id = ?1", params![conversation, leaf])?;
    Ok(())
}

/// Removes an empty reply without children if something else can be shown: a sibling, or the reply
/// it continues. Returns the message to show.
pub(crate) fn remove_empty_reply(connection: &Connection, reply: i64) -> Result<Option<i64>> {
    let message = find(connection, reply)?;
    let followed = newest_below(connection, reply)? != reply;
    let beside = message.siblings.iter().copied().rfind(|&sibling| sibling != reply);
    let instead = match (beside, message.parent) {
        _ if followed => None,
        (Some(sibling), _) => Some(sibling),
        (None, Some(parent)) if find(connection, parent)?.role == Role::Assistant => Some(parent),
        _ => None,
    };
    if let Some(instead) = instead {
        let conversation = message.conversation;
        let shown = leaf(connection, conversation)? == Some(reply);
        if shown {
            show(connection, conversation, None)?;
        }
        connection.execute("DELETE FROM messages WHERE id = ?1", [reply])?;
        if shown {
            show(connection, conversation, Some(newest_below(connection, instead)?))?;
        }
    }
    Ok(instead)
}

fn choose(connection: &Connection, message: i64) -> Result<()> {
    let conversation = find_visible(connection, message)?.conversation;
    let shown = leaf(connection, conversation)?;
    let is_shown: bool = connection.query_row(
        &format!("{BELOW} SELECT EXISTS (SELECT 1 FROM below WHERE id = ?2)"),
        params![message, shown],
        |row| row.get(0),
    )?;
    if !is_shown {
        show(connection, conversation, Some(newest_below(connection, message)?))?;
    }
    Ok(())
}

/// Returns the last message of the newest branch through a message. Messages are older than their
/// children, so the newest one has none.
pub(crate) fn newest_below(connection: &Connection, message: i64) -> Result<i64> {
    let newest: Option<i64> =
        connection.query_row(&format!("{BELOW} SELECT max(id) FROM below"), [message], |row| row.get(0))?;
    newest.ok_or(Error::NotFound { what: "message", id: message })
}

/// Returns a message that is not deleted.
fn find_visible(connection: &Connection, id: i64) -> Result<Message> {
    let message = find(connection, id)?;
    if message.siblings.contains(&id) { Ok(message) } else { Err(Error::NotFound { what: "message", id }) }
}

fn visible(connection: &Connection, id: i64, role: Role) -> Result<Message> {
    let what = if role == Role::User { "question" } else { "reply" };
    find_visible(connection, id)
        .ok()
        .filter(|message| message.role == role)
        .ok_or(Error::NotFound { what, id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ending;
    use crate::store::tests::Fixture;

    /// Asks at the end of a conversation, or in a new one, and replies; returns the ids of both
    /// messages.
    fn talk(fixture: &mut Fixture, conversation: Option<i64>, question: &str, reply: &str) -> (i64, i64) {
        let (asked, begun) = fixture.store.ask(conversation, question, "Starter", None).unwrap();
        finish(fixture, begun.id, reply);
        (asked.id, begun.id)
    }

    fn finish(fixture: &mut Fixture, reply: i64, text: &str) -> Message {
        fixture.store.append_rounds(reply, text, &[(0, format!("[{reply}]"))]).unwrap();
        fixture.store.finish_reply(reply, Ending { text, finish: Some("stop"), ..Ending::default() }).unwrap()
    }

    fn again(fixture: &mut Fixture, reply: i64, text: &str) -> i64 {
        let begun = fixture.store.begin_again(reply, "Starter", Some("n-gram")).unwrap().id;
        finish(fixture, begun, text).id
    }

    #[test]
    fn a_question_without_a_reply_is_answered_below_itself() {
        let mut fixture = Fixture::new();
        let (question, reply) = talk(&mut fixture, None, "Why?", "Because.");
        fixture.store.delete_message(reply).unwrap();
        let begun = fixture.store.begin_answer(question, "Starter", None).unwrap();
        let answer = finish(&mut fixture, begun.id, "So.");
        assert_eq!((answer.parent, &answer.siblings), (Some(question), &vec![answer.id]));
        let shown = fixture.store.messages(answer.conversation).unwrap();
        assert_eq!(shown.iter().map(|message| message.id).collect::<Vec<_>>(), [question, answer.id]);
    }

    fn conversation_of(fixture: &Fixture, message: i64) -> i64 {
        fixture.store.message(message).unwrap().conversation
    }

    fn shown(fixture: &Fixture, conversation: i64) -> Vec<String> {
        fixture.store.messages(conversation).unwrap().into_iter().map(|message| message.text).collect()
    }

    fn hits(fixture: &Fixture, word: &str) -> Vec<i64> {
        fixture.store.search(word, 10).unwrap().into_iter().map(|hit| hit.message).collect()
    }

    #[test]
    fn a_regenerated_reply_is_shown_and_the_original_keeps_everything_below_it() {
        let mut fixture = Fixture::new();
        let (question, first) = talk(&mut fixture, None, "Why?", "a fox");
        let conversation = conversation_of(&fixture, question);
        talk(&mut fixture, Some(conversation), "And?", "a hen");
        let second = again(&mut fixture, first, "a bird");
        assert_eq!(shown(&fixture, conversation), ["Why?", "a bird"]);
        let messages = fixture.store.messages(conversation).unwrap();
        assert_eq!(messages[1].siblings, [first, second]);
        assert_eq!(messages[0].siblings, [question]);
        assert_eq!((hits(&fixture, "fox"), hits(&fixture, "bird")), (vec![first], vec![second]));
        assert_eq!(fixture.store.rounds(first).unwrap(), [format!("[{first}]")]);

        let mut fixture = fixture.reopen(0);
        fixture.store.choose_branch(first).unwrap();
        assert_eq!(shown(&fixture, conversation), ["Why?", "a fox", "And?", "a hen"]);
        fixture.store.choose_branch(question).unwrap();
        assert_eq!(shown(&fixture, conversation).len(), 4, "already shown");
        fixture.store.choose_branch(second).unwrap();
        talk(&mut fixture, Some(conversation), "So?", "an egg");
        assert_eq!(shown(&fixture, conversation), ["Why?", "a bird", "So?", "an egg"]);
    }

    #[test]
    fn an_edited_question_becomes_a_sibling_even_of_the_first_message() {
        let mut fixture = Fixture::new();
        let (question, reply) = talk(&mut fixture, None, "Why?", "a fox");
        let conversation = conversation_of(&fixture, question);
        let (other, begun) = fixture.store.ask_instead(question, "Who?", "Starter", None).unwrap();
        finish(&mut fixture, begun.id, "a hen");
        assert_eq!(shown(&fixture, conversation), ["Who?", "a hen"]);
        assert_eq!((other.parent, other.siblings), (None, vec![question, other.id]));
        let up_to = fixture.store.messages_up_to(reply).unwrap();
        assert_eq!(up_to.iter().map(|message| message.id).collect::<Vec<_>>(), [question, reply]);
        assert_eq!(fixture.store.latest_texts(9).unwrap(), ["a hen", "Who?", "a fox", "Why?"]);
    }

    #[test]
    fn a_reply_that_was_cut_off_is_continued_in_a_new_message() {
        let mut fixture = Fixture::new();
        let (question, cut) = talk(&mut fixture, None, "Count.", "one two");
        let conversation = conversation_of(&fixture, question);
        let more = fixture.store.begin_continuation(cut, "Starter", None).unwrap();
        assert_eq!(more.parent, Some(cut));
        finish(&mut fixture, more.id, " three");
        assert_eq!(shown(&fixture, conversation), ["Count.", "one two", " three"]);
        let nothing = fixture.store.begin_continuation(more.id, "Starter", None).unwrap().id;
        let left = fixture.store.finish_reply(nothing, Ending::default()).unwrap();
        assert_eq!((left.id, shown(&fixture, conversation).len()), (more.id, 3));
    }

    #[test]
    fn an_empty_reply_is_removed_if_another_one_can_be_shown() {
        let mut fixture = Fixture::new();
        let (question, reply) = talk(&mut fixture, None, "Why?", "a fox");
        let conversation = conversation_of(&fixture, question);
        talk(&mut fixture, Some(conversation), "And?", "a hen");
        let stopped = fixture.store.begin_again(reply, "Starter", None).unwrap().id;
        let ending = Ending { finish: Some("cancelled"), ..Ending::default() };
        assert_eq!(fixture.store.finish_reply(stopped, ending).unwrap().id, reply);
        assert_eq!(shown(&fixture, conversation).len(), 4);
        let killed = fixture.store.begin_again(reply, "Starter", None).unwrap().id;
        let (_, unanswered) = fixture.store.ask(None, "Hm?", "Starter", None).unwrap();
        let fixture = fixture.reopen(0);
        assert!(fixture.store.message(killed).is_err() && fixture.store.message(stopped).is_err());
        assert_eq!(shown(&fixture, conversation).len(), 4);
        assert_eq!(shown(&fixture, unanswered.conversation), ["Hm?", ""]);
    }

    #[test]
    fn stopped_failed_and_killed_replies_are_kept_as_siblings() {
        let mut fixture = Fixture::new();
        let (question, reply) = talk(&mut fixture, None, "Why?", "a fox");
        let conversation = conversation_of(&fixture, question);
        let failed = fixture.store.begin_again(reply, "Starter", None).unwrap().id;
        fixture.store.finish_reply(failed, Ending { problem: Some("broken"), ..Ending::default() }).unwrap();
        let killed = fixture.store.begin_again(reply, "Starter", None).unwrap().id;
        fixture.store.append_rounds(killed, "half", &[(0, "[]")]).unwrap();
        let fixture = fixture.reopen(0);
        let last = fixture.store.messages(conversation).unwrap().pop().unwrap();
        assert_eq!((last.text.as_str(), last.siblings), ("half", vec![reply, failed, killed]));
        assert_eq!(hits(&fixture, "half"), [killed]);
    }

    #[test]
    fn a_deleted_message_is_hidden_with_everything_below_it_until_it_is_restored() {
        let mut fixture = Fixture::new();
        let (question, first) = talk(&mut fixture, None, "Why?", "a fox");
        let conversation = conversation_of(&fixture, question);
        let second = again(&mut fixture, first, "a bird");
        let (and, hen) = talk(&mut fixture, Some(conversation), "And?", "a hen");
        fixture.store.delete_message(hen).unwrap();
        assert_eq!(shown(&fixture, conversation), ["Why?", "a bird", "And?"]);
        fixture.store.delete_message(second).unwrap();
        assert_eq!(shown(&fixture, conversation), ["Why?", "a fox"], "its sibling is shown");
        assert!(hits(&fixture, "bird").is_empty() && hits(&fixture, "hen").is_empty());
        assert_eq!(fixture.store.message(first).unwrap().siblings, [first]);
        for gone in [second, and] {
            assert!(matches!(fixture.store.choose_branch(gone), Err(Error::NotFound { .. })));
            assert!(matches!(fixture.store.delete_message(gone), Err(Error::NotFound { .. })));
        }
        assert!(fixture.store.restore_message(hen).is_err(), "its parent is gone");

        let mut fixture = fixture.reopen(0);
        fixture.store.restore_message(second).unwrap();
        assert_eq!(shown(&fixture, conversation), ["Why?", "a bird", "And?"]);
        fixture.store.restore_message(hen).unwrap();
        assert_eq!(shown(&fixture, conversation), ["Why?", "a bird", "And?", "a hen"]);
        assert_eq!((hits(&fixture, "bird"), hits(&fixture, "hen")), (vec![second], vec![hen]));
        fixture.store.delete_message(question).unwrap();
        assert!(shown(&fixture, conversation).is_empty());
        talk(&mut fixture, Some(conversation), "New?", "an owl");
        fixture.store.restore_message(question).unwrap();
        assert_eq!(shown(&fixture, conversation).len(), 4);
    }

    #[test]
    fn a_message_deleted_for_more_than_a_day_is_purged() {
        let mut fixture = Fixture::new();
        let (question, first) = talk(&mut fixture, None, "Why?", "a fox");
        let conversation = conversation_of(&fixture, question);
        let second = again(&mut fixture, first, "a bird");
        talk(&mut fixture, Some(conversation), "And?", "a hen");
        fixture.store.delete_message(second).unwrap();
        let fixture = fixture.reopen_for_a_day();
        let left: i64 = fixture
            .store
            .connection
            .query_row("SELECT count(*) FROM messages", [], |row| row.get(0))
            .unwrap();
        assert_eq!((left, shown(&fixture, conversation).len()), (2, 2));
        assert!(fixture.store.rounds(second).is_err());
    }

    #[test]
    fn a_conversation_of_thousands_of_messages_is_shown_and_purged() {
        let mut fixture = Fixture::new();
        let conversation = fixture.store.create_conversation("long").unwrap().id;
        let transaction = fixture.store.writing().unwrap();
        for number in 0..3_000 {
            let last = leaf(&transaction, conversation).unwrap();
            add_both(
                &transaction,
                conversation,
                last,
                (&*format!("{number}?")).into(),
                Models { target: "Starter", draft: None },
                0,
            )
            .unwrap();
        }
        transaction.commit().unwrap();
        let messages = fixture.store.messages(conversation).unwrap();
        assert_eq!(messages.len(), 6_000);
        fixture.store.delete_message(messages[1].id).unwrap();
        assert_eq!(shown(&fixture, conversation), ["0?"]);
        fixture.store.restore_message(messages[1].id).unwrap();
        assert_eq!(shown(&fixture, conversation).len(), 6_000);
        fixture.store.delete_conversation(conversation).unwrap();
        let fixture = fixture.reopen_for_a_day();
        let left: i64 = fixture
            .store
            .connection
            .query_row("SELECT count(*) FROM messages", [], |row| row.get(0))
            .unwrap();
        assert_eq!(left, 0);
    }

    #[test]
    fn only_questions_can_be_edited_and_only_replies_regenerated_or_continued() {
        let mut fixture = Fixture::new();
        let (question, reply) = talk(&mut fixture, None, "Why?", "a fox");
        let store = &mut fixture.store;
        let not_found = |result: Result<()>| assert!(matches!(result, Err(Error::NotFound { .. })));
        not_found(store.ask_instead(reply, "Who?", "Starter", None).map(drop));
        not_found(store.begin_again(question, "Starter", None).map(drop));
        not_found(store.begin_answer(reply, "Starter", None).map(drop));
        not_found(store.begin_continuation(question, "Starter", None).map(drop));
        for missing in [0, 99] {
            not_found(store.choose_branch(missing));
            not_found(store.delete_message(missing));
            not_found(store.restore_message(missing));
            not_found(store.begin_again(missing, "Starter", None).map(drop));
        }
        let conversation = store.message(question).unwrap().conversation;
        store.delete_conversation(conversation).unwrap();
        not_found(store.begin_again(reply, "Starter", None).map(drop));
        not_found(store.choose_branch(reply));
        store.restore_conversation(conversation).unwrap();
        assert_eq!(store.messages(conversation).unwrap().len(), 2);
    }
}
