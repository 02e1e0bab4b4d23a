//! The store's own time, which says when what was deleted goes for good. The computer's clock cannot: one that is a
//! year ahead for an hour would end every undo, and after one that was set back a deleted text would stay. So each
//! opening counts as long as the clock says that it is since the last one, but as an hour at least and eight at most.

use rusqlite::params;

use crate::{Result, Store};

const HOUR: i64 = 60 * 60 * 1000;

/// What an opening counts at least: with a clock that stands still, a day is over after 24 openings.
const LEAST: i64 = HOUR;

/// What it counts at most: whatever the clock says, a day is not over before the third opening.
const MOST: i64 = 8 * HOUR;

impl Store {
    /// How old the store is by its own time, in milliseconds.
    pub(crate) fn age(&self) -> Result<i64> {
        let (age, seen) = self.last_opening()?;
        Ok(age + self.now().saturating_sub(seen).clamp(0, MOST))
    }

    /// Counts this opening; returns the age.
    pub(crate) fn grow_older(&mut self) -> Result<i64> {
        let (age, seen) = self.last_opening()?;
        let now = self.now();
        let age = age + now.saturating_sub(seen).clamp(LEAST, MOST);
        self.connection.execute("UPDATE age SET milliseconds = ?1, seen = ?2", params![age, now])?;
        Ok(age)
    }

    /// The age then, and what the clock showed.
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

    /// Openings, each so much later by the clock, until what was deleted is gone for good.
    fn openings_until_gone(later: i64) -> u32 {
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
        panic!("it is still there")
    }

    #[test]
    fn what_was_deleted_goes_after_a_day_of_openings_and_no_clock_changes_much_of_that() {
        assert_eq!(openings_until_gone(6 * HOUR), 4, "an honest clock");
        assert_eq!(openings_until_gone(YEAR), 3, "one that runs ahead");
        assert_eq!(openings_until_gone(0), 24, "one that stands still");
        assert_eq!(openings_until_gone(-HOUR), 24, "one that runs backwards");
        assert_eq!(openings_until_gone(i64::MAX / 200), 3, "one that says nonsense");
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
    fn what_was_deleted_while_the_clock_was_ahead_does_not_stay() {
        let mut fixture = Fixture::new().reopen(2 * YEAR);
        let id = fixture.store.create_conversation("c").unwrap().id;
        fixture.wait(YEAR);
        fixture.store.delete_conversation(id).unwrap();
        fixture.wait(-YEAR);
        for _ in 0..32 {
            fixture = fixture.reopen(0);
        }
        assert!(
            fixture.store.restore_conversation(id).is_err(),
            "it is gone for good after a day of openings"
        );
    }
}
