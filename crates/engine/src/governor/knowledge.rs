//! Saved statistics of a governor: current costs, and acceptance by kind of text. The caller
//! chooses file and name.

use serde::{Deserialize, Serialize};

use super::Governor;
use super::account::Account;
use super::costs::{Costs, DraftCosts, Estimate, LARGEST};
use super::text::{Alone, Lessons, Record, TextKind};
use crate::drafter_kind::DrafterKind;

/// Version of the stored form, raised when a field changes its meaning; other versions are measured
/// again.
const VERSION: u32 = 2;

/// Factor by which saved costs may be off: busy computers and longer contexts change them by as
/// much.
const STRAY: f64 = 1.6;

/// Saved statistics of a target and its drafters, from [`Governor::knowledge`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Knowledge {
    version: u32,
    /// Milliseconds by rows.
    verify: Vec<f32>,
    judge: Vec<f32>,
    drafters: Vec<Known>,
    /// Speed without paid drafters, by kind of text.
    alone: [Alone; TextKind::COUNT],
}

/// Statistics of a drafter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Known {
    drafter: DrafterKind,
    /// Costs of its drafts; `None` if they are free.
    costs: Option<KnownCosts>,
    /// Acceptance by kind of text.
    records: [Record; TextKind::COUNT],
}

/// Cost of a drafter's drafts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KnownCosts {
    /// Milliseconds by tokens, unstaged and staged.
    draft: [Vec<f32>; 2],
    /// Time of a pass after a draft against one after a pass; missing in files of earlier versions.
    #[serde(default = "unpolluted")]
    pollution: f64,
    level: f64,
    /// Milliseconds to prefill a token.
    reading: f64,
}

fn unpolluted() -> f64 {
    1.0
}

impl KnownCosts {
    fn of(account: &Account) -> Self {
        let draft = account.draft.each_ref().map(Costs::to_vec);
        Self {
            draft,
            pollution: account.pollution.get(),
            level: account.level.get(),
            reading: account.reading,
        }
    }

    /// Restores the drafter's state; `None` if the costs are impossible.
    fn account(&self, label: DrafterKind) -> Option<Account> {
        let sound = |number: f64| number > 0.0 && number < LARGEST;
        let [alone, staged] = &self.draft;
        let draft = [Costs::from_slice(alone)?, Costs::from_slice(staged)?];
        let costs = DraftCosts { draft: draft[0].clone(), pollution: self.pollution };
        let level = Estimate::new(self.level);
        let account = Account { draft, level, reading: self.reading, ..Account::new(label, Some(costs)) };
        [self.pollution, self.level, self.reading].into_iter().all(sound).then_some(account)
    }
}

/// Stored forms: the present one, and version 1, which had one draft model and stored the drafters'
/// statistics by kind.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Now {
        version: u32,
        verify: Vec<f32>,
        judge: Vec<f32>,
        drafters: Vec<Known>,
        alone: [Alone; TextKind::COUNT],
    },
    First {
        version: u32,
        verify: Vec<f32>,
        judge: Vec<f32>,
        #[serde(flatten)]
        costs: KnownCosts,
        texts: Box<[FirstLessons; TextKind::COUNT]>,
    },
}

#[derive(Deserialize)]
struct FirstLessons {
    /// Statistics of the draft model, repetition and recycling.
    records: [Record; 3],
    alone: Alone,
}

impl From<Stored> for Knowledge {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Now { version, verify, judge, drafters, alone } => {
                Self { version, verify, judge, drafters, alone }
            }
            Stored::First { version, verify, judge, costs, texts } => {
                let kinds = [DrafterKind::Model, DrafterKind::Ngram, DrafterKind::Recycling];
                let drafters = kinds.into_iter().enumerate().map(|(number, drafter)| Known {
                    drafter,
                    costs: (drafter == DrafterKind::Model).then(|| costs.clone()),
                    records: texts.each_ref().map(|lessons| lessons.records[number].clone()),
                });
                Self {
                    version: if version == 1 { VERSION } else { version },
                    verify,
                    judge,
                    drafters: drafters.collect(),
                    alone: texts.each_ref().map(|lessons| lessons.alone),
                }
            }
        }
    }
}

impl Knowledge {
    /// Statistics of each of `drafters`, given by kind and whether its drafts are free; `None` if
    /// the costs of one are missing.
    fn of(&self, drafters: &[(DrafterKind, bool)]) -> Option<Vec<(Account, [Record; TextKind::COUNT])>> {
        let mut left: Vec<&Known> = self.drafters.iter().collect();
        let known = drafters.iter().map(|&(label, is_free)| {
            // Several drafters of a kind are matched in order.
            let found = left.iter().position(|known| known.drafter == label).map(|at| left.remove(at));
            let account = match found.and_then(|known| known.costs.as_ref()) {
                _ if is_free => Account::new(label, None),
                costs => costs?.account(label)?,
            };
            Some((account, found.map_or_else(Default::default, |known| known.records.clone())))
        });
        known.collect()
    }

    fn is_sound(&self) -> bool {
        let records = self.drafters.iter().flat_map(|known| &known.records);
        self.version == VERSION
            && records.into_iter().all(Record::is_sound)
            && self.alone.iter().all(|alone| alone.is_sound())
    }
}

impl Governor {
    /// Statistics to save.
    pub fn knowledge(&self) -> Knowledge {
        let known = |(number, account): (usize, &Account)| Known {
            drafter: account.label,
            costs: (!account.is_free).then(|| KnownCosts::of(account)),
            records: self.texts.each_ref().map(|lessons| lessons.records[number].clone()),
        };
        Knowledge {
            version: VERSION,
            verify: self.verify.to_vec(),
            judge: self.judge.to_vec(),
            drafters: self.drafters.iter().enumerate().map(known).collect(),
            alone: self.texts.each_ref().map(|lessons| lessons.alone),
        }
    }

    /// Continues with saved statistics of `drafters`, given by kind and whether drafts are free.
    /// Saved statistics weigh less than new ones, and changed costs are noticed as usual. `None` if
    /// the statistics are impossible or miss the costs of a drafter.
    pub fn recalling(knowledge: &Knowledge, drafters: &[(DrafterKind, bool)]) -> Option<Self> {
        if !knowledge.is_sound() {
            return None;
        }
        let known = knowledge.of(drafters)?;
        let mut texts = std::array::from_fn(|kind| Lessons {
            records: known.iter().map(|(_, records)| records[kind].clone()).collect(),
            alone: knowledge.alone[kind],
        });
        texts.iter_mut().for_each(Lessons::fade);
        Some(Self {
            judge: Costs::from_slice(&knowledge.judge)?,
            drafters: known.into_iter().map(|(account, _)| account).collect(),
            texts,
            ..Self::new(Costs::from_slice(&knowledge.verify)?, Vec::new())
        })
    }

    /// Returns true if measured `passes` (rows, ms) are close to the saved costs.
    pub fn holds(&self, passes: &[(usize, f64)]) -> bool {
        let expected =
            |&(rows, ms): &(usize, f64)| (1.0 / STRAY..STRAY).contains(&(ms / self.verify.get(rows)));
        passes.iter().all(expected)
    }

    /// Sets the cost of a drafter's drafts.
    pub fn cost_of(&mut self, drafter: usize, costs: DraftCosts) {
        let account = &mut self.drafters[drafter];
        account.pollution = Estimate::new(costs.pollution);
        account.draft = [costs.draft.clone(), costs.draft];
    }

    /// Takes the costs of `measured` and keeps the statistics of texts.
    pub fn cost(&mut self, measured: Self) {
        let texts = std::mem::take(&mut self.texts);
        *self = Self { texts, ..measured };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::MAX_ROWS;
    use foretoken_model::sampling::Sampling;

    const MODEL: usize = 1;
    /// Drafter kinds, and whether their drafts are free.
    const DRAFTERS: [(DrafterKind, bool); 3] =
        [(DrafterKind::Ngram, true), (DrafterKind::Model, false), (DrafterKind::Recycling, true)];

    fn drafters() -> Vec<(DrafterKind, Option<DraftCosts>)> {
        let draft = || Costs::measured(&[(1, 12.0), (4, 48.0)]);
        let costs = |is_free: bool| (!is_free).then(|| DraftCosts { draft: draft(), pollution: 1.1 });
        DRAFTERS.map(|(label, is_free)| (label, costs(is_free))).into()
    }

    fn costs(knowledge: &mut Knowledge) -> &mut KnownCosts {
        knowledge.drafters[MODEL].costs.as_mut().unwrap()
    }

    /// Governor with statistics of every kind.
    fn taught() -> Governor {
        let mut governor = Governor::new(Costs::measured(&[(1, 30.0), (9, 42.0)]), drafters());
        governor.begin_reply(TextKind::of("```", &Sampling::greedy()));
        let lessons = &mut governor.texts[governor.kind.index()];
        lessons.alone.learn(9, 4.0);
        let record = &mut lessons.records[MODEL];
        (0..30).for_each(|case| record.acceptance.learn(case % 3, case % 4 > 0));
        (0..30).for_each(|case| record.calibration.learn(0, 0.85, case % 3 > 0));
        (0..20).for_each(|_| governor.verify.learn(5, 50.0));
        governor.learn_reading(MODEL, 100, 150.0);
        governor
    }

    fn by_way_of_a_file(governor: &Governor) -> Knowledge {
        serde_json::from_str(&serde_json::to_string(&governor.knowledge()).unwrap()).unwrap()
    }

    #[test]
    fn what_was_learned_survives_a_file() {
        let before = taught();
        let mut after = Governor::recalling(&by_way_of_a_file(&before), &DRAFTERS).unwrap();
        after.begin_reply(before.kind);
        for rows in 1..=MAX_ROWS {
            assert!((after.verify.get(rows) / before.verify.get(rows) - 1.0).abs() < 1e-5, "{rows} rows");
            assert!(
                (after.drafters[MODEL].draft[0].get(rows) / before.drafters[MODEL].draft[0].get(rows) - 1.0)
                    .abs()
                    < 1e-5,
                "{rows} tokens"
            );
        }
        assert!((after.drafters[MODEL].reading / before.drafters[MODEL].reading - 1.0).abs() < 1e-9);
        let acceptance = |governor: &Governor| governor.record(MODEL).acceptance.by_depth();
        for (after, before) in acceptance(&after).iter().zip(acceptance(&before)) {
            assert!((after - before).abs() < 0.05, "{after} was {before}");
        }
        let worth = |governor: &Governor| governor.calibration(MODEL).chance(0, 0.85);
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
        assert!(Governor::recalling(&sound, &DRAFTERS).is_some());
        let mut number = 0;
        let mut spoiled = |spoil: &dyn Fn(&mut Knowledge)| {
            let mut knowledge = sound.clone();
            spoil(&mut knowledge);
            number += 1;
            assert!(Governor::recalling(&knowledge, &DRAFTERS).is_none(), "case {number}: {knowledge:?}");
        };
        spoiled(&|knowledge| knowledge.version += 1);
        spoiled(&|knowledge| knowledge.verify.truncate(16));
        spoiled(&|knowledge| knowledge.judge[3] = f32::NAN);
        spoiled(&|knowledge| costs(knowledge).draft[0][0] = 0.0);
        spoiled(&|knowledge| costs(knowledge).draft[1][16] = 1e9);
        spoiled(&|knowledge| costs(knowledge).level = -1.0);
        spoiled(&|knowledge| costs(knowledge).pollution = 0.0);
        spoiled(&|knowledge| costs(knowledge).reading = f64::INFINITY);
        for share in ["[3.0,2.0]", "[-1.0,2.0]"] {
            let text = serde_json::to_string(&sound).unwrap().replacen("[0.0,0.0]", share, 1);
            spoiled(&|knowledge| *knowledge = serde_json::from_str(&text).unwrap());
        }
    }

    #[test]
    fn what_the_first_version_stored_is_read_whoever_drafts_now() {
        let before = taught();
        let now = serde_json::to_value(before.knowledge()).unwrap();
        let [ngram, model, recycling] = [0, 1, 2].map(|number| &now["drafters"][number]);
        let texts: Vec<_> = (0..TextKind::COUNT)
            .map(|kind| {
                let records = [model, ngram, recycling].map(|known| &known["records"][kind]);
                serde_json::json!({ "records": records, "alone": now["alone"][kind] })
            })
            .collect();
        let first = serde_json::json!({
            "version": 1,
            "verify": now["verify"],
            "judge": now["judge"],
            "draft": model["costs"]["draft"],
            "level": model["costs"]["level"],
            "reading": model["costs"]["reading"],
            "texts": texts,
        });
        let read: Knowledge = serde_json::from_value(first.clone()).unwrap();
        let after = Governor::recalling(&read, &DRAFTERS).unwrap();
        let known = Governor::recalling(&by_way_of_a_file(&before), &DRAFTERS).unwrap();
        assert!(after.texts == known.texts);
        assert_eq!(after.drafters[MODEL].reading.to_bits(), known.drafters[MODEL].reading.to_bits());
        let free = [DRAFTERS[0], DRAFTERS[2]];
        assert!(Governor::recalling(&read, &free).is_some(), "without the model");
        let two = [DRAFTERS[MODEL], DRAFTERS[MODEL]];
        assert!(Governor::recalling(&read, &two).is_none(), "the costs of a second model are not known");
        let mut later = first;
        later["version"] = 3.into();
        let read: Knowledge = serde_json::from_value(later).unwrap();
        assert!(Governor::recalling(&read, &DRAFTERS).is_none());
    }
}
