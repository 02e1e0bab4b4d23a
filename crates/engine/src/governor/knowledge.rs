//! What a governor has learned, in a form that outlives the program: costs as they are by now, and what each
//! kind of text taught. Where it is kept, and under what name, is for others.

use serde::{Deserialize, Serialize};

use super::Governor;
use super::costs::{Costs, Estimate, LARGEST};
use super::text::{Lessons, TextKind};

/// Raised when a field changes its meaning: what is of another version is learned anew.
const VERSION: u32 = 1;

/// Costs hold that are off by less: busy computers and longer contexts change them by as much.
const STRAY: f64 = 1.6;

/// Made by [`Governor::knowledge`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    version: u32,
    /// Milliseconds by rows; of the draft by tokens, by itself and staged.
    verify: Vec<f32>,
    judge: Vec<f32>,
    draft: [Vec<f32>; 2],
    level: f64,
    /// Milliseconds in which the draft reads a token.
    reading: f64,
    texts: [Lessons; TextKind::COUNT],
}

impl Governor {
    /// What was learned so far.
    pub fn knowledge(&self) -> Knowledge {
        Knowledge {
            version: VERSION,
            verify: self.verify.to_vec(),
            judge: self.judge.to_vec(),
            draft: self.draft.each_ref().map(Costs::to_vec),
            level: self.level.get(),
            reading: self.reading,
            texts: self.texts.clone(),
        }
    }

    /// Goes on with what was learned before. It counts for less than what comes, and costs that no longer
    /// hold are found out as any that change. `None` for what no governor can have learned.
    pub fn recalling(knowledge: &Knowledge) -> Option<Self> {
        let Knowledge { version, verify, judge, draft: [alone, staged], level, reading, texts } = knowledge;
        let sound = |number: f64| number > 0.0 && number < LARGEST;
        let texts_sound = texts.iter().all(Lessons::are_sound);
        if *version != VERSION || !sound(*level) || !sound(*reading) || !texts_sound {
            return None;
        }
        let mut texts = texts.clone();
        texts.iter_mut().for_each(Lessons::fade);
        Some(Self {
            judge: Costs::from_slice(judge)?,
            draft: [Costs::from_slice(alone)?, Costs::from_slice(staged)?],
            level: Estimate::new(*level),
            reading: *reading,
            texts,
            ..Self::new(Costs::from_slice(verify)?, Costs::from_slice(alone)?)
        })
    }

    /// Whether passes over so many rows that took so many milliseconds are what was to be expected.
    pub fn holds(&self, passes: &[(usize, f64)]) -> bool {
        let expected =
            |&(rows, ms): &(usize, f64)| (1.0 / STRAY..STRAY).contains(&(ms / self.verify.get(rows)));
        passes.iter().all(expected)
    }

    /// Takes the costs of `measured`, and stays with what texts taught.
    pub fn cost(&mut self, measured: Self) {
        let texts = std::mem::take(&mut self.texts);
        *self = Self { texts, ..measured };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::MOST_ROWS;
    use crate::sampling::Sampling;
    use crate::trace::DrafterKind;

    /// One that learned something of everything.
    fn taught() -> Governor {
        let mut governor =
            Governor::new(Costs::measured(&[(1, 30.0), (9, 42.0)]), Costs::measured(&[(1, 12.0), (4, 48.0)]));
        governor.begin_reply(TextKind::of("```", &Sampling::greedy()));
        let lessons = &mut governor.texts[governor.kind.index()];
        lessons.alone.learn(9, 4.0);
        let record = &mut lessons.records[DrafterKind::Model as usize];
        (0..30).for_each(|case| record.acceptance.learn(case % 3, case % 4 > 0));
        (0..30).for_each(|case| record.calibration.learn(0, 0.85, case % 3 > 0));
        (0..20).for_each(|_| governor.verify.learn(5, 50.0));
        governor.learn_reading(100, 150.0);
        governor
    }

    fn by_way_of_a_file(governor: &Governor) -> Knowledge {
        serde_json::from_str(&serde_json::to_string(&governor.knowledge()).unwrap()).unwrap()
    }

    #[test]
    fn what_was_learned_survives_a_file() {
        let before = taught();
        let mut after = Governor::recalling(&by_way_of_a_file(&before)).unwrap();
        after.begin_reply(before.kind);
        for rows in 1..=MOST_ROWS {
            assert!((after.verify.get(rows) / before.verify.get(rows) - 1.0).abs() < 1e-5, "{rows} rows");
            assert!(
                (after.draft[0].get(rows) / before.draft[0].get(rows) - 1.0).abs() < 1e-5,
                "{rows} tokens"
            );
        }
        assert!((after.reading / before.reading - 1.0).abs() < 1e-9);
        let acceptance = |governor: &Governor| governor.record(DrafterKind::Model).acceptance.by_depth();
        for (after, before) in acceptance(&after).iter().zip(acceptance(&before)) {
            assert!((after - before).abs() < 0.05, "{after} was {before}");
        }
        let worth = |governor: &Governor| governor.calibration(DrafterKind::Model).chance(0, 0.85);
        assert!((worth(&after) - worth(&before)).abs() < 1e-5);
    }

    #[test]
    fn it_is_small() {
        let text = serde_json::to_string(&taught().knowledge()).unwrap();
        assert!(text.len() < 16_000, "{} bytes", text.len());
    }

    #[test]
    fn what_no_governor_learned_is_not_recalled() {
        let sound = by_way_of_a_file(&taught());
        assert!(Governor::recalling(&sound).is_some());
        let mut number = 0;
        let mut spoiled = |spoil: &dyn Fn(&mut Knowledge)| {
            let mut knowledge = sound.clone();
            spoil(&mut knowledge);
            number += 1;
            assert!(Governor::recalling(&knowledge).is_none(), "case {number}: {knowledge:?}");
        };
        spoiled(&|knowledge| knowledge.version += 1);
        spoiled(&|knowledge| knowledge.verify.truncate(16));
        spoiled(&|knowledge| knowledge.judge[3] = f32::NAN);
        spoiled(&|knowledge| knowledge.draft[0][0] = 0.0);
        spoiled(&|knowledge| knowledge.draft[1][16] = 1e9);
        spoiled(&|knowledge| knowledge.level = -1.0);
        spoiled(&|knowledge| knowledge.reading = f64::INFINITY);
        for share in ["[3.0,2.0]", "[-1.0,2.0]"] {
            let text = serde_json::to_string(&sound).unwrap().replacen("[0.0,0.0]", share, 1);
            spoiled(&|knowledge| *knowledge = serde_json::from_str(&text).unwrap());
        }
    }
}
