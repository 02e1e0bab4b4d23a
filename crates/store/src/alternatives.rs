//! Alternatives: replies that were begun in the place of another. Until one is whole the conversation shows the
//! reply that was there before; what was stopped, failed or was killed is kept beside it until a person decides.
//! Search does not find alternatives.

use rusqlite::{Connection, params};

use crate::messages::{add_reply, find, remove};
use crate::{Error, Message, Result, Store};

impl Store {
    /// Stores an empty alternative to a reply of a conversation, which stays as it is meanwhile.
    pub fn begin_again(&mut self, reply: i64, target: &str, draft: Option<&str>) -> Result<Message> {
        let now = self.now();
        let transaction = self.writing()?;
        let before = find(&transaction, reply)?;
        if before.role != crate::Role::Assistant || before.instead_of.is_some() {
            return Err(Error::NotFound { what: "reply", id: reply });
        }
        let alternative = add_reply(&transaction, before.conversation, target, draft, Some(before.id), now)?;
        transaction.commit()?;
        Ok(alternative)
    }

    /// What is kept beside the replies of a conversation, oldest first.
    pub fn alternatives(&self, conversation: i64) -> Result<Vec<Message>> {
        self.conversation(conversation)?;
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {} FROM messages WHERE conversation = ?1 AND instead_of IS NOT NULL ORDER BY id",
            Message::COLUMNS
        ))?;
        Ok(statement.query_map([conversation], Message::read)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Puts an alternative in the place of the reply that the conversation shows, which becomes one of its
    /// alternatives.
    pub fn choose_alternative(&mut self, alternative: i64) -> Result<()> {
        let transaction = self.writing()?;
        let shown = shown_instead(&transaction, alternative)?;
        exchange(&transaction, shown, alternative)?;
        Ok(transaction.commit()?)
    }

    /// Removes an alternative with its rounds for good.
    pub fn discard_alternative(&mut self, alternative: i64) -> Result<()> {
        let transaction = self.writing()?;
        shown_instead(&transaction, alternative)?;
        remove(&transaction, alternative)?;
        Ok(transaction.commit()?)
    }

    /// Removes the alternatives that a killed program left before anything was in them; returns how many.
    pub(crate) fn drop_barren_alternatives(&self) -> Result<usize> {
        Ok(self.connection.execute(
            "DELETE FROM messages
             WHERE instead_of IS NOT NULL AND text = '' AND finish IS NULL AND problem IS NULL",
            [],
        )?)
    }
}

/// Shows `alternative` where `shown` was, which becomes an alternative to it like all that were its own.
pub(crate) fn exchange(connection: &Connection, shown: i64, alternative: i64) -> Result<()> {
    connection.execute("UPDATE messages SET instead_of = NULL, indexed = 1 WHERE id = ?1", [alternative])?;
    connection.execute(
        "UPDATE messages SET instead_of = ?2, indexed = 0 WHERE id = ?1 OR instead_of = ?1",
        params![shown, alternative],
    )?;
    Ok(())
}

/// The reply that the conversation shows in the place of `alternative`.
fn shown_instead(connection: &Connection, alternative: i64) -> Result<i64> {
    let missing = Error::NotFound { what: "alternative", id: alternative };
    find(connection, alternative)?.instead_of.ok_or(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ending;
    use crate::store::tests::Fixture;

    const WHOLE: Ending<'_> =
        Ending { text: "another fox", finish: Some("stop"), summary: None, problem: None, whole: true };

    /// A store with a question and its reply, "a fox", with one round.
    fn fixture() -> (Fixture, Message, Message) {
        let mut fixture = Fixture::new();
        let (question, reply) = fixture.store.ask(None, "Why?", "Starter", None).unwrap();
        fixture.store.append_rounds(reply.id, "a fox", &[(0, "[0]")]).unwrap();
        let ending = Ending { text: "a fox", finish: Some("stop"), ..WHOLE };
        let reply = fixture.store.finish_reply(reply.id, ending).unwrap();
        (fixture, question, reply)
    }

    fn hits(fixture: &Fixture, word: &str) -> Vec<i64> {
        fixture.store.search(word, 10).unwrap().into_iter().map(|hit| hit.message).collect()
    }

    #[test]
    fn a_reply_stays_until_another_in_its_place_is_whole_and_goes_with_its_rounds_then() {
        let (mut fixture, question, reply) = fixture();
        let conversation = question.conversation;
        let other = fixture.store.begin_again(reply.id, "Starter", Some("n-gram")).unwrap();
        fixture.store.append_rounds(other.id, "another", &[(0, "[1]")]).unwrap();
        assert_eq!(fixture.store.messages(conversation).unwrap(), [question.clone(), reply.clone()]);
        assert_eq!((hits(&fixture, "fox"), hits(&fixture, "another")), (vec![reply.id], vec![]));
        assert_eq!(fixture.store.latest_texts(9).unwrap(), ["a fox", "Why?"]);

        let whole = fixture.store.finish_reply(other.id, WHOLE).unwrap();
        assert_eq!((whole.id, whole.instead_of, whole.text.as_str()), (other.id, None, "another fox"));
        assert_eq!(fixture.store.messages(conversation).unwrap(), [question, whole]);
        assert_eq!(hits(&fixture, "fox"), [other.id]);
        assert!(fixture.store.alternatives(conversation).unwrap().is_empty());
        assert!(matches!(fixture.store.rounds(reply.id), Err(Error::NotFound { .. })));
        assert_eq!(fixture.store.trace_storage().unwrap().replies, 1);
    }

    #[test]
    fn what_was_stopped_or_failed_is_kept_beside_the_reply_until_a_person_decides() {
        let (mut fixture, question, reply) = fixture();
        let conversation = question.conversation;
        let stopped = fixture.store.begin_again(reply.id, "Starter", None).unwrap().id;
        let ending = Ending { text: "half a bird", finish: Some("cancelled"), ..Ending::default() };
        fixture.store.finish_reply(stopped, ending).unwrap();
        let failed = fixture.store.begin_again(reply.id, "Starter", None).unwrap().id;
        fixture.store.finish_reply(failed, Ending { problem: Some("broken"), ..Ending::default() }).unwrap();

        let mut fixture = fixture.reopen(0);
        assert_eq!(fixture.store.messages(conversation).unwrap(), [question, reply.clone()]);
        let beside: Vec<i64> =
            fixture.store.alternatives(conversation).unwrap().iter().map(|message| message.id).collect();
        assert_eq!(beside, [stopped, failed]);
        assert!(hits(&fixture, "bird").is_empty());

        fixture.store.choose_alternative(stopped).unwrap();
        assert_eq!(fixture.store.messages(conversation).unwrap()[1].text, "half a bird");
        assert_eq!((hits(&fixture, "bird"), hits(&fixture, "fox")), (vec![stopped], vec![]));
        fixture.store.discard_alternative(failed).unwrap();
        fixture.store.choose_alternative(reply.id).unwrap();
        assert_eq!((hits(&fixture, "bird"), hits(&fixture, "fox")), (vec![], vec![reply.id]));
        fixture.store.discard_alternative(stopped).unwrap();
        assert!(fixture.store.alternatives(conversation).unwrap().is_empty());
        assert_eq!(fixture.store.rounds(reply.id).unwrap(), ["[0]"]);
    }

    #[test]
    fn an_alternative_in_which_nothing_is_leaves_nothing() {
        let (mut fixture, question, reply) = fixture();
        let stopped = fixture.store.begin_again(reply.id, "Starter", None).unwrap().id;
        let ending = Ending { finish: Some("cancelled"), ..Ending::default() };
        assert_eq!(fixture.store.finish_reply(stopped, ending).unwrap(), reply);
        let killed = fixture.store.begin_again(reply.id, "Starter", None).unwrap().id;
        let fixture = fixture.reopen(0);
        assert!(fixture.store.message(killed).is_err() && fixture.store.message(stopped).is_err());
        assert_eq!(fixture.store.messages(question.conversation).unwrap(), [question, reply]);
    }

    #[test]
    fn only_what_is_kept_beside_a_reply_can_be_chosen_or_discarded_and_has_no_alternatives_itself() {
        let (mut fixture, question, reply) = fixture();
        let alternative = fixture.store.begin_again(reply.id, "Starter", None).unwrap();
        let not_found = |result: Result<()>| assert!(matches!(result, Err(Error::NotFound { .. })));
        for shown in [question.id, reply.id, 99] {
            not_found(fixture.store.choose_alternative(shown));
            not_found(fixture.store.discard_alternative(shown));
        }
        not_found(fixture.store.begin_again(alternative.id, "Starter", None).map(drop));
        fixture.store.delete_conversation(question.conversation).unwrap();
        not_found(fixture.store.begin_again(reply.id, "Starter", None).map(drop));
        fixture.store.restore_conversation(question.conversation).unwrap();
        assert_eq!(fixture.store.messages(question.conversation).unwrap(), [question, reply]);
    }

    #[test]
    fn a_whole_alternative_takes_over_those_that_are_kept_beside_the_reply() {
        let (mut fixture, question, reply) = fixture();
        let stopped = fixture.store.begin_again(reply.id, "Starter", None).unwrap().id;
        let ending = Ending { text: "half", finish: Some("cancelled"), ..Ending::default() };
        fixture.store.finish_reply(stopped, ending).unwrap();
        let other = fixture.store.begin_again(reply.id, "Starter", None).unwrap().id;
        fixture.store.finish_reply(other, WHOLE).unwrap();
        let beside = fixture.store.alternatives(question.conversation).unwrap();
        assert_eq!(
            beside.iter().map(|kept| (kept.id, kept.instead_of)).collect::<Vec<_>>(),
            [(stopped, Some(other))]
        );
    }
}
