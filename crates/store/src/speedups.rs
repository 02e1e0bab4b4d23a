//! Speed-ups of replies: sums over all replies of a pair of models, and replies of older versions
//! that did not record one. Of a summary's JSON this module reads only `speedup.plain_ms` and
//! `speedup.elapsed_ms`.

use rusqlite::params;

use crate::{Error, Result, Store};

/// Times of all drafted replies of a pair of models: measured, and estimated without a draft.
#[derive(Debug, Clone, PartialEq)]
pub struct PairTimes {
    /// Labels of the models, as stored with their replies.
    pub target: String,
    pub draft: String,
    pub plain_ms: f64,
    pub elapsed_ms: f64,
    /// Number of replies; a continued reply counts once.
    pub replies: u32,
}

impl Store {
    /// Returns the sums of each pair, the pair with the most replies first.
    pub fn pair_times(&self) -> Result<Vec<PairTimes>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT reply.target, reply.draft, total(json_extract(reply.summary, '$.speedup.plain_ms')),
                    total(json_extract(reply.summary, '$.speedup.elapsed_ms')),
                    count(*) FILTER (WHERE before.role IS NULL OR before.role <> 'assistant') AS replies
             FROM messages AS reply
             JOIN conversations ON conversations.id = reply.conversation
             LEFT JOIN messages AS before ON before.id = reply.parent
             WHERE conversations.deleted_at IS NULL AND reply.deleted_with IS NULL AND reply.target IS NOT NULL
               AND reply.draft IS NOT NULL AND json_extract(reply.summary, '$.speedup.elapsed_ms') > 0
             GROUP BY reply.target, reply.draft ORDER BY replies DESC",
        )?;
        let pairs = statement.query_map([], |row| {
            Ok(PairTimes {
                target: row.get(0)?,
                draft: row.get(1)?,
                plain_ms: row.get(2)?,
                elapsed_ms: row.get(3)?,
                replies: row.get::<_, u32>(4)?.max(1),
            })
        })?;
        Ok(pairs.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns replies with a trace whose summary records no speed-up, not even its absence: the
    /// newest `most` of them, newest first.
    pub fn unmeasured_replies(&self, most: u32) -> Result<Vec<i64>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT messages.id FROM messages JOIN traces ON traces.message = messages.id
             WHERE summary IS NOT NULL AND json_type(summary, '$.speedup') IS NULL
             ORDER BY messages.id DESC LIMIT ?1",
        )?;
        Ok(statement.query_map([most], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
    }

    /// Adds a speed-up, as JSON, to the summary of an ended reply.
    pub fn set_speedup(&self, reply: i64, json: &str) -> Result<()> {
        let sql = "UPDATE messages SET summary = json_set(summary, '$.speedup', json(?2))
                   WHERE id = ?1 AND summary IS NOT NULL";
        match self.connection.execute(sql, params![reply, json])? {
            0 => Err(Error::NotFound { what: "reply", id: reply }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ending;
    use crate::store::tests::Fixture;

    fn ended(fixture: &mut Fixture, reply: i64, summary: &str) {
        let ending = Ending { text: "text", summary: Some(summary), ..Ending::default() };
        fixture.store.finish_reply(reply, ending).unwrap();
    }

    fn reply(fixture: &mut Fixture, draft: Option<&str>, summary: &str) -> (i64, i64) {
        let (_, reply) = fixture.store.ask(None, "Why?", "Target", draft).unwrap();
        ended(fixture, reply.id, summary);
        (reply.conversation, reply.id)
    }

    #[test]
    fn times_of_a_pair_are_summed_and_a_continued_reply_counts_once() {
        let mut fixture = Fixture::new();
        let speedup = |plain_ms: u32| format!(r#"{{"speedup":{{"plain_ms":{plain_ms},"elapsed_ms":100}}}}"#);
        let (_, first) = reply(&mut fixture, Some("Draft"), &speedup(200));
        let more = fixture.store.begin_continuation(first, "Target", Some("Draft")).unwrap();
        ended(&mut fixture, more.id, &speedup(100));
        reply(&mut fixture, Some("Draft"), &speedup(150));
        reply(&mut fixture, Some("Other"), &speedup(90));
        reply(&mut fixture, Some("Other"), r#"{"speedup":null}"#);
        reply(&mut fixture, None, "{}");
        let (deleted, _) = reply(&mut fixture, Some("Draft"), &speedup(900));
        fixture.store.delete_conversation(deleted).unwrap();
        let pair = |draft: &str, plain_ms, elapsed_ms, replies| PairTimes {
            target: "Target".into(),
            draft: draft.into(),
            plain_ms,
            elapsed_ms,
            replies,
        };
        let expected = [pair("Draft", 450.0, 300.0, 2), pair("Other", 90.0, 100.0, 1)];
        assert_eq!(fixture.store.pair_times().unwrap(), expected);
    }

    #[test]
    fn a_reply_of_an_older_version_is_measured_once() {
        let mut fixture = Fixture::new();
        let (_, untraced) = fixture.store.ask(None, "Why?", "Target", Some("Draft")).unwrap();
        ended(&mut fixture, untraced.id, "{}");
        let (_, traced) = fixture.store.ask(None, "Why?", "Target", Some("Draft")).unwrap();
        fixture.store.append_rounds(traced.id, "text", &[(0, "[0]")]).unwrap();
        ended(&mut fixture, traced.id, r#"{"rounds":1}"#);
        assert_eq!(fixture.store.unmeasured_replies(10).unwrap(), [traced.id]);
        fixture.store.set_speedup(traced.id, "null").unwrap();
        assert_eq!(fixture.store.unmeasured_replies(10).unwrap(), [0; 0]);
        let summary = fixture.store.message(traced.id).unwrap().summary;
        assert_eq!(summary.as_deref(), Some(r#"{"rounds":1,"speedup":null}"#));
        assert!(fixture.store.set_speedup(traced.id, "no JSON").is_err());
    }
}
