//! Full-text search over all messages. The query is a list of words, never a query language:
//! quotes, stars and the like have no special meaning.

use rusqlite::params;

use crate::{Conversation, Result, Store};

/// Most matches that are ranked: ranking every match of a common word takes too long and adds
/// little.
const RANKED: u32 = 1000;

/// Words of an excerpt; FTS5 returns at most 64.
const SHORT: u32 = 16;
const LONG: u32 = 64;

/// A message that contains all words of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub conversation: Conversation,
    pub message: i64,
    /// Text around the words; each matched word stands between U+0002 and U+0003.
    pub excerpt: String,
}

impl Store {
    /// Returns the best `limit` messages that contain every word of `query`; the last word may be a
    /// prefix, because it may still be being typed. With more than a thousand matches the newest
    /// are returned. Case and accents are ignored. Unfinished replies and deleted conversations are
    /// left out.
    pub fn search(&self, query: &str, limit: u32) -> Result<Vec<Hit>> {
        self.find(query, limit, SHORT, None)
    }

    /// As [`Self::search`], in all conversations but one, and with longer excerpts.
    pub fn search_elsewhere(&self, query: &str, limit: u32, conversation: i64) -> Result<Vec<Hit>> {
        self.find(query, limit, LONG, Some(conversation))
    }

    fn find(&self, query: &str, limit: u32, words: u32, except: Option<i64>) -> Result<Vec<Hit>> {
        let Some(expression) = expression(query) else {
            return Ok(Vec::new());
        };
        let order = if self.matches_exceed(&expression, RANKED)? { "" } else { "messages_text.rank, " };
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {}, messages.id, snippet(messages_text, 0, char(2), char(3), '…', ?3)
             FROM messages_text
             JOIN messages ON messages.id = messages_text.rowid
             JOIN conversations ON conversations.id = messages.conversation
             WHERE messages_text MATCH ?1 AND conversations.deleted_at IS NULL AND conversations.id IS NOT ?4
             ORDER BY {order}messages_text.rowid DESC
             LIMIT ?2",
            Conversation::COLUMNS
        ))?;
        let hits = statement.query_map(params![expression, limit, words, except], |row| {
            let message = row.get(Conversation::WIDTH)?;
            let excerpt = row.get(Conversation::WIDTH + 1)?;
            Ok(Hit { conversation: Conversation::read(row)?, message, excerpt })
        })?;
        Ok(hits.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns whether more than `most` messages match an FTS5 expression.
    fn matches_exceed(&self, expression: &str, most: u32) -> Result<bool> {
        let mut statement = self.connection.prepare_cached(
            "SELECT count(*) > ?2 FROM (SELECT 1 FROM messages_text WHERE messages_text MATCH ?1 LIMIT ?2 + 1)",
        )?;
        Ok(statement.query_row(params![expression, most], |row| row.get(0))?)
    }
}

/// Characters of a query that are read: FTS5 takes time with the square of the number of words.
const LONGEST: usize = 1_000;

/// Builds the FTS5 expression: each word quoted, the last one a prefix; `None` without words.
fn expression(query: &str) -> Option<String> {
    let end = query.char_indices().nth(LONGEST).map_or(query.len(), |(end, _)| end);
    let words: Vec<String> = query[..end]
        // FTS5 ends the expression at a NUL.
        .split(|c: char| c.is_whitespace() || c == '\0')
        .filter(|word| word.contains(char::is_alphanumeric))
        .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
        .collect();
    (!words.is_empty()).then(|| words.join(" ") + "*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Fixture;
    use crate::{Ending, NewCall};

    fn fixture_with(texts: &[&str]) -> (Fixture, i64) {
        let mut fixture = Fixture::new();
        let conversation = fixture.store.create_conversation("c").unwrap().id;
        for text in texts {
            fixture.store.add_user_message(conversation, text).unwrap();
        }
        (fixture, conversation)
    }

    fn excerpts(store: &Store, query: &str) -> Vec<String> {
        store.search(query, 10).unwrap().into_iter().map(|hit| hit.excerpt).collect()
    }

    #[test]
    fn every_word_must_match_and_the_last_may_be_a_prefix() {
        let (fixture, conversation) = fixture_with(&["the quick fox", "the quick dog", "foxes"]);
        assert_eq!(excerpts(&fixture.store, "quick fo"), ["the \u{2}quick\u{3} \u{2}fox\u{3}"]);
        assert_eq!(excerpts(&fixture.store, "fox").len(), 2);
        assert!(excerpts(&fixture.store, "qui fox").is_empty());
        let hit = fixture.store.search("dog", 10).unwrap().remove(0);
        assert_eq!(hit.conversation, fixture.store.conversation(conversation).unwrap());
        assert_eq!(hit.message, fixture.store.messages(conversation).unwrap()[1].id);
    }

    #[test]
    fn case_and_accents_are_ignored() {
        let (fixture, _) = fixture_with(&["Übermäßig viel CAFÉ"]);
        assert_eq!(excerpts(&fixture.store, "ubermaßig cafe").len(), 1);
    }

    #[test]
    fn only_the_beginning_of_a_long_query_is_searched_for() {
        let (fixture, _) = fixture_with(&["the quick fox"]);
        let long = "the ".repeat(LONGEST / 4) + "absent";
        assert_eq!(excerpts(&fixture.store, &long).len(), 1);
        assert!(excerpts(&fixture.store, "the absent").is_empty());
    }

    #[test]
    fn any_input_is_safe_and_matches_only_its_words() {
        let (fixture, _) = fixture_with(&["say \"fox\" AND run", "don't stop"]);
        for query in
            ["", " ", "\"", "\"\"", "*", "-", "()", "^", "'", ":", "\0", "\u{301}", "NEAR(", "fox \u{301}"]
        {
            fixture.store.search(query, 10).unwrap();
        }
        for query in ["\"fox", "fox\"", "fox*", "fox -", "\" fox", "fox AND", "fox\0", "(fox)", "text:fox"] {
            let expected = usize::from(query != "text:fox");
            assert_eq!(excerpts(&fixture.store, query).len(), expected, "{query:?}");
        }
        assert_eq!(excerpts(&fixture.store, "don't").len(), 1);
        assert_eq!(excerpts(&fixture.store, "say fo *").len(), 1, "the last word is fo");
        let mark = "\u{903}";
        assert_eq!(
            excerpts(&fixture.store, &format!("{mark} fox")).len(),
            1,
            "counted as a letter here, but not by FTS5"
        );
        assert!(excerpts(&fixture.store, "\"").is_empty());
        assert!(excerpts(&fixture.store, "fox OR stop").is_empty());
    }

    #[test]
    fn a_reply_is_found_when_it_ends_and_only_by_its_final_text() {
        let (mut fixture, conversation) = fixture_with(&[]);
        let reply = fixture.store.begin_reply(conversation, "Starter", None).unwrap().id;
        fixture.store.append_rounds(reply, "a red", &[(0, "{}")]).unwrap();
        fixture.store.append_rounds(reply, "a red fox", &[(1, "{}")]).unwrap();
        fixture.store.finish_reply(reply, Ending { text: "a grey wolf", ..Ending::default() }).unwrap();
        assert_eq!(excerpts(&fixture.store, "wolf"), ["a grey \u{2}wolf\u{3}"]);
        assert!(excerpts(&fixture.store, "fox").is_empty());
        let other = fixture.store.begin_again(reply, "Starter", None).unwrap().id;
        fixture.store.append_rounds(other, "a bird", &[(0, "{}")]).unwrap();
        assert!(excerpts(&fixture.store, "bird").is_empty());
        fixture.store.finish_reply(other, Ending { text: "a bird", ..Ending::default() }).unwrap();
        assert_eq!(excerpts(&fixture.store, "wolf").len(), 1, "the earlier reply is kept");
        assert_eq!(excerpts(&fixture.store, "bird").len(), 1);
        integrity(&fixture.store);
    }

    #[test]
    fn a_search_elsewhere_leaves_one_conversation_out_and_has_longer_excerpts() {
        let long = format!("{} fox {}", "before ".repeat(100), "after ".repeat(100));
        let (mut fixture, conversation) = fixture_with(&["a fox"]);
        let other = fixture.store.create_conversation("d").unwrap().id;
        fixture.store.add_user_message(other, &long).unwrap();
        let found = fixture.store.search_elsewhere("fox", 10, conversation).unwrap();
        assert_eq!((found.len(), found[0].conversation.id), (1, other));
        assert!(found[0].excerpt.split(' ').count() > 50, "{}", found[0].excerpt);
    }

    #[test]
    fn the_text_of_calls_is_not_found_but_the_text_before_them_is() {
        let (mut fixture, conversation) = fixture_with(&[]);
        let reply = fixture.store.begin_reply(conversation, "Starter", None).unwrap().id;
        let text = "Ä fox: <call> wolf";
        fixture.store.finish_reply(reply, Ending { text, ..Ending::default() }).unwrap();
        let call = NewCall { text_start: "Ä fox:".len() as i64, ..crate::calls::tests::call("read") };
        fixture.store.add_calls(reply, std::slice::from_ref(&call)).unwrap();
        assert_eq!(excerpts(&fixture.store, "fox"), ["Ä \u{2}fox\u{3}:"]);
        assert!(excerpts(&fixture.store, "wolf").is_empty());
        let copy = fixture.store.copy_conversation(conversation, None, "Copy").unwrap();
        assert_eq!((excerpts(&fixture.store, "fox").len(), excerpts(&fixture.store, "wolf").len()), (2, 0));
        fixture.store.connection.execute("DELETE FROM conversations WHERE id = ?1", [copy.id]).unwrap();
        integrity(&fixture.store);
        fixture.store.connection.execute("DELETE FROM conversations", []).unwrap();
        assert!(excerpts(&fixture.store, "fox").is_empty());
        integrity(&fixture.store);
    }

    #[test]
    fn a_reply_interrupted_by_a_kill_is_found_after_a_restart_and_can_be_finished() {
        let (mut fixture, conversation) = fixture_with(&[]);
        let reply = fixture.store.begin_reply(conversation, "Starter", None).unwrap().id;
        fixture.store.append_rounds(reply, "a red fox", &[(0, "{}")]).unwrap();
        let mut fixture = fixture.reopen(0);
        assert_eq!(excerpts(&fixture.store, "fox").len(), 1);
        fixture.store.append_rounds(reply, "a red fox runs", &[(1, "{}")]).unwrap();
        fixture.store.finish_reply(reply, Ending { text: "a wolf", ..Ending::default() }).unwrap();
        assert_eq!((excerpts(&fixture.store, "wolf").len(), excerpts(&fixture.store, "fox").len()), (1, 0));
        integrity(&fixture.store);
    }

    #[test]
    fn deleted_conversations_are_left_out_until_restored() {
        let (fixture, conversation) = fixture_with(&["a fox"]);
        fixture.store.delete_conversation(conversation).unwrap();
        assert!(excerpts(&fixture.store, "fox").is_empty());
        fixture.store.restore_conversation(conversation).unwrap();
        assert_eq!(excerpts(&fixture.store, "fox").len(), 1);
    }

    #[test]
    fn at_most_limit_results_are_returned_with_shortened_texts() {
        let long = format!("{} fox {}", "before ".repeat(100), "after ".repeat(100));
        let (fixture, _) = fixture_with(&[&long, "fox", "fox"]);
        assert_eq!(fixture.store.search("fox", 2).unwrap().len(), 2);
        let excerpt = excerpts(&fixture.store, "before fox").remove(0);
        assert!(excerpt.contains("\u{2}fox\u{3}") && excerpt.len() < 200, "{excerpt}");
    }

    #[test]
    fn the_best_matches_come_first_and_of_a_very_common_word_the_newest() {
        let (mut fixture, conversation) = fixture_with(&["fox fox fox", "a fox among many other words"]);
        let first = |store: &Store| store.search("fox", 1).unwrap()[0].message;
        assert_eq!(first(&fixture.store), fixture.store.messages(conversation).unwrap()[0].id);
        for _ in 0..RANKED {
            fixture.store.add_user_message(conversation, "another fox").unwrap();
        }
        let messages = fixture.store.messages(conversation).unwrap();
        assert_eq!(first(&fixture.store), messages.last().unwrap().id);
    }

    /// Fails if the index and the messages disagree.
    fn integrity(store: &Store) {
        store
            .connection
            .execute("INSERT INTO messages_text (messages_text, rank) VALUES ('integrity-check', 1)", [])
            .unwrap();
    }
}
