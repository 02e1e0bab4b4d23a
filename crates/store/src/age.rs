//! Age of the store, its own clock, which decides when deleted rows are purged. The computer's
//! clock cannot: running a year ahead for an hour it would end every undo, and set back it would
//! keep deleted text. So each opening adds the time since the last one, but at least an hour and at
//! most eight.

use rusqlite::params;

use crate::{Result, Store};

const HOUR: i64 = 60 * 60 * 1000;

/// Least time that an opening adds: with a clock that stands still, a day passes in 24 openings.
const MIN_STEP: i64 = HOUR;

/// Most time that an opening adds: whatever the clock shows, a day takes three openings.
const MAX_STEP: i64 = 8 * HOUR;

impl Store {
    /// Age of the store by its own clock, in milliseconds.
    pub(crate) fn age(&self) -> Result<i64> {
        let (age, seen) = self.last_opening()?;
        Ok(age + self.now().saturating_sub(seen).clamp(0, MAX_STEP))
    }

    /// Counts this opening and returns the new age.
    pub(crate) fn count_opening(&mut self) -> Result<i64> {
        let (age, seen) = self.last_opening()?;
        let now = self.now();
        let age = age + now.saturating_sub(seen).clamp(MIN_STEP, MAX_STEP);
        self.connection.execute("UPDATE age SET milliseconds = ?1, seen = ?2", params![age, now])?;
        Ok(age)
    }

    /// Age at the last opening, and the time that the computer's clock showed then.
    fn last_opening(&self) -> Result<(i64, i64)> {
        let last = "SELECT milliseconds, seen FROM age";
        Ok(self.connection.query_row(last, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Fixture;

    const YEAR: i64 = 365 * 24 * HOUR;

    /// Number of openings, each `later` milliseconds after the previous one, until a deleted
    /// conversation is purged.
    fn openings_until_purged(later: i64) -> u32 {
        let mut fixture = Fixture::new().reopen(10 * YEAR);
        let id = fixture.store.create_conversation("c").unwrap().id;
        fixture.store.delete_conversation(id).unwrap();
        for openings in 1..=100 {
            fixture = fixture.reopen(later);
            let left = "SELECT count(*) FROM conversations";
            let left: u32 = fixture.store.connection.query_row(left, [], |row| row.get(0)).unwrap();
            if left == 0 {
                return openings;
            }
        }
        panic!("the conversation is still stored")
    }

    #[test]
    fn deleted_conversations_are_purged_after_a_day_of_openings_whatever_the_clock_shows() {
        assert_eq!(openings_until_purged(6 * HOUR), 4, "an honest clock");
        assert_eq!(openings_until_purged(YEAR), 3, "a clock that runs ahead");
        assert_eq!(openings_until_purged(0), 24, "a clock that stands still");
        assert_eq!(openings_until_purged(-HOUR), 24, "a clock that runs backwards");
        assert_eq!(openings_until_purged(i64::MAX / 200), 3, "a clock with an absurd value");
    }

    #[test]
    fn a_clock_that_jumps_while_the_program_runs_does_not_end_the_undo() {
        for jump in [YEAR, -YEAR] {
            let mut fixture = Fixture::new().reopen(2 * YEAR);
            let id = fixture.store.create_conversation("c").unwrap().id;
            fixture.wait(jump);
            fixture.store.delete_conversation(id).unwrap();
            fixture.wait(-jump);
            fixture = fixture.reopen(HOUR).reopen(HOUR);
            assert_eq!(fixture.store.restore_conversation(id).unwrap().title, "c", "{jump}");
        }
    }

    #[test]
    fn a_conversation_deleted_while_the_clock_was_ahead_is_purged() {
        let mut fixture = Fixture::new().reopen(2 * YEAR);
        let id = fixture.store.create_conversation("c").unwrap().id;
        fixture.wait(YEAR);
        fixture.store.delete_conversation(id).unwrap();
        fixture.wait(-YEAR);
        for _ in 0..32 {
            fixture = fixture.reopen(0);
        }
        assert!(fixture.store.restore_conversation(id).is_err(), "purged after a day of openings");
    }
}
