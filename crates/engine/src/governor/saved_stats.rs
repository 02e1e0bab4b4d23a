//! Saved statistics of a governor: current costs, and acceptance by kind of text. The caller
//! chooses file and name.

use serde::{Deserialize, Serialize};

use super::Governor;
use super::account::Account;
use super::costs::{Costs, DraftCosts, Estimate, LARGEST};
use super::row_ratios::RowRatios;
use super::text::{DrafterStats, TextKind, TextStats, UnpaidSpeed};
use crate::drafter_kind::DrafterKind;

/// Version of the stored form, raised when a field changes its meaning; other versions are measured
/// again.
const VERSION: u32 = 2;

/// Saved statistics of a target and its drafters, from [`Governor::saved_stats`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct GovernorStats {
    version: u32,
    /// Milliseconds by rows.
    verify: Vec<f32>,
    /// A bit for each number of rows that was measured; missing in files of earlier versions, where
    /// all were.
    #[serde(default = "all_measured")]
    verify_measured: u32,
    judge: Vec<f32>,
    drafters: Vec<SavedDrafter>,
    /// Speed without paid drafters, by kind of text.
    #[serde(rename = "alone")]
    unpaid: [UnpaidSpeed; TextKind::COUNT],
}

/// Statistics of a drafter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedDrafter {
    drafter: DrafterKind,
    /// Costs of its drafts; `None` if they are free.
    costs: Option<SavedCosts>,
    /// Acceptance by kind of text.
    records: [DrafterStats; TextKind::COUNT],
}

/// Cost of a drafter's drafts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedCosts {
    /// Milliseconds by tokens, unstaged and staged.
    draft: [Vec<f32>; 2],
    /// A bit for each number of tokens whose cost was measured, as above.
    #[serde(default = "all_drafts_measured")]
    measured: [u32; 2],
    /// Time of a pass after a draft against one after a pass; missing in files of earlier versions.
    #[serde(rename = "pollution", default = "no_eviction")]
    eviction_cost: f64,
    level: f64,
    /// Milliseconds to prefill a token.
    #[serde(rename = "reading")]
    token_prefill_ms: f64,
    /// True if it was never measured; in files of earlier versions it always was.
    #[serde(default)]
    assumes_prefill: bool,
}

fn no_eviction() -> f64 {
    1.0
}

/// Bits of costs that were all measured.
fn all_measured() -> u32 {
    u32::MAX
}

fn all_drafts_measured() -> [u32; 2] {
    [u32::MAX; 2]
}

impl SavedCosts {
    fn of(account: &Account) -> Self {
        let draft = account.draft.each_ref().map(Costs::to_vec);
        Self {
            draft,
            measured: account.draft.each_ref().map(Costs::measured_bits),
            eviction_cost: account.eviction_cost.get(),
            level: account.level.get(),
            token_prefill_ms: account.token_prefill_ms,
            assumes_prefill: account.assumes_prefill,
        }
    }

    /// Restores the drafter's state; `None` if the costs are impossible.
    fn account(&self, label: DrafterKind) -> Option<Account> {
        let sound = |number: f64| number > 0.0 && number < LARGEST;
        let [unstaged, staged] = &self.draft;
        let [first, second] = self.measured;
        let draft = [Costs::from_slice(unstaged, first)?, Costs::from_slice(staged, second)?];
        let costs = DraftCosts { draft: draft[0].clone(), eviction_cost: self.eviction_cost };
        let level = Estimate::new(self.level);
        let account = Account {
            draft,
            level,
            token_prefill_ms: self.token_prefill_ms,
            assumes_prefill: self.assumes_prefill,
            ..Account::new(label, Some(costs))
        };
        [self.eviction_cost, self.level, self.token_prefill_ms].into_iter().all(sound).then_some(account)
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
        #[serde(default = "all_measured")]
        verify_measured: u32,
        judge: Vec<f32>,
        drafters: Vec<SavedDrafter>,
        #[serde(rename = "alone")]
        unpaid: [UnpaidSpeed; TextKind::COUNT],
    },
    First {
        version: u32,
        verify: Vec<f32>,
        judge: Vec<f32>,
        #[serde(flatten)]
        costs: SavedCosts,
        texts: Box<[FirstTextStats; TextKind::COUNT]>,
    },
}

#[derive(Deserialize)]
struct FirstTextStats {
    /// Statistics of the draft model, repetition and recycling.
    records: [DrafterStats; 3],
    #[serde(rename = "alone")]
    unpaid: UnpaidSpeed,
}

impl From<Stored> for GovernorStats {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Now { version, verify, verify_measured, judge, drafters, unpaid } => {
                Self { version, verify, verify_measured, judge, drafters, unpaid }
            }
            Stored::First { version, verify, judge, costs, texts } => {
                let kinds = [DrafterKind::Model, DrafterKind::Ngram, DrafterKind::Recycling];
                let drafters = kinds.into_iter().enumerate().map(|(number, drafter)| SavedDrafter {
                    drafter,
                    costs: (drafter == DrafterKind::Model).then(|| costs.clone()),
                    records: texts.each_ref().map(|stats| stats.records[number].clone()),
                });
                Self {
                    version: if version == 1 { VERSION } else { version },
                    verify,
                    verify_measured: all_measured(),
                    judge,
                    drafters: drafters.collect(),
                    unpaid: texts.each_ref().map(|stats| stats.unpaid),
                }
            }
        }
    }
}

impl GovernorStats {
    /// Statistics of each of `drafters`, given by kind and whether its drafts are free; `None` if
    /// the costs of one are missing.
    fn of(
        &self,
        drafters: &[(DrafterKind, bool)],
    ) -> Option<Vec<(Account, [DrafterStats; TextKind::COUNT])>> {
        let mut left: Vec<&SavedDrafter> = self.drafters.iter().collect();
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
            && records.into_iter().all(DrafterStats::is_sound)
            && self.unpaid.iter().all(|unpaid| unpaid.is_sound())
    }
}

impl Governor {
    /// Statistics to save.
    pub fn saved_stats(&self) -> GovernorStats {
        let known = |(number, account): (usize, &Account)| SavedDrafter {
            drafter: account.label,
            costs: (!account.is_free).then(|| SavedCosts::of(account)),
            records: self.texts.each_ref().map(|stats| stats.records[number].clone()),
        };
        GovernorStats {
            version: VERSION,
            verify: self.verify.to_vec(),
            verify_measured: self.verify.measured_bits(),
            judge: self.judge.to_vec(),
            drafters: self.drafters.iter().enumerate().map(known).collect(),
            unpaid: self.texts.each_ref().map(|stats| stats.unpaid),
        }
    }

    /// Continues with saved statistics of `drafters`, given by kind and whether drafts are free.
    /// Saved statistics weigh less than new ones, and changed costs are noticed as usual. `None` if
    /// the statistics are impossible or miss the costs of a drafter.
    pub fn restored(saved: &GovernorStats, drafters: &[(DrafterKind, bool)]) -> Option<Self> {
        if !saved.is_sound() {
            return None;
        }
        let known = saved.of(drafters)?;
        let mut texts = std::array::from_fn(|kind| TextStats {
            records: known.iter().map(|(_, records)| records[kind].clone()).collect(),
            unpaid: saved.unpaid[kind],
        });
        texts.iter_mut().for_each(TextStats::fade);
        Some(Self {
            judge: Costs::from_slice(&saved.judge, u32::MAX)?,
            drafters: known.into_iter().map(|(account, _)| account).collect(),
            texts,
            ..Self::new(Costs::from_slice(&saved.verify, saved.verify_measured)?, Vec::new())
        })
    }

    /// Ratios of the measured costs of passes; `None` if too few were measured.
    pub fn row_ratios(&self) -> Option<RowRatios> {
        RowRatios::of(&self.verify)
    }
}

impl GovernorStats {
    /// These costs without statistics of texts.
    #[must_use]
    pub fn without_texts(mut self) -> Self {
        self.drafters.iter_mut().for_each(|known| known.records = Default::default());
        self.unpaid = Default::default();
        self
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
        let costs = |is_free: bool| (!is_free).then(|| DraftCosts { draft: draft(), eviction_cost: 1.1 });
        DRAFTERS.map(|(label, is_free)| (label, costs(is_free))).into()
    }

    fn costs(saved: &mut GovernorStats) -> &mut SavedCosts {
        saved.drafters[MODEL].costs.as_mut().unwrap()
    }

    /// Governor with statistics of every kind.
    fn taught() -> Governor {
        let mut governor = Governor::new(Costs::measured(&[(1, 30.0), (9, 42.0)]), drafters());
        governor.begin_reply(TextKind::of("```", &Sampling::greedy()));
        let stats = &mut governor.texts[governor.kind.index()];
        stats.unpaid.learn(9, 4.0);
        let record = &mut stats.records[MODEL];
        (0..30).for_each(|case| record.acceptance.learn(case % 3, case % 4 > 0));
        (0..30).for_each(|case| record.calibration.learn(0, 0, 0.85, case % 3 > 0));
        (0..20).for_each(|_| governor.verify.learn(5, 50.0));
        governor.learn_prefill(MODEL, 100, 150.0);
        governor
    }

    fn by_way_of_a_file(governor: &Governor) -> GovernorStats {
        serde_json::from_str(&serde_json::to_string(&governor.saved_stats()).unwrap()).unwrap()
    }

    #[test]
    fn statistics_survive_a_file() {
        let before = taught();
        let mut after = Governor::restored(&by_way_of_a_file(&before), &DRAFTERS).unwrap();
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
        assert!(
            (after.drafters[MODEL].token_prefill_ms / before.drafters[MODEL].token_prefill_ms - 1.0).abs()
                < 1e-9
        );
        let acceptance = |governor: &Governor| governor.stats(MODEL).acceptance.by_depth();
        for (after, before) in acceptance(&after).iter().zip(acceptance(&before)) {
            assert!((after - before).abs() < 0.05, "{after} was {before}");
        }
        let worth = |governor: &Governor| governor.stats(MODEL).calibration.chance(0, 0, 0.85, false);
        assert!((worth(&after) - worth(&before)).abs() < 1e-5);
    }

    #[test]
    fn costs_that_were_assumed_are_assumed_after_a_file_too() {
        let verify = Costs::assumed(|rows| rows as f64);
        let assumed = DraftCosts { draft: Costs::assumed(|tokens| tokens as f64), eviction_cost: 1.0 };
        let mut governor = Governor::new(verify, vec![(DrafterKind::Model, Some(assumed))]);
        governor.verify.learn(1, 20.0);
        let roster = [(DrafterKind::Model, false)];
        let mut restored = Governor::restored(&by_way_of_a_file(&governor), &roster).unwrap();
        assert!(restored.verify.is_measured(1) && !restored.verify.is_measured(4));
        restored.drafters[0].draft[0].learn(2, 9.0);
        assert!(
            (restored.drafters[0].draft[0].get(4) - 18.0).abs() < 1e-3,
            "the first draft is a measurement"
        );
        let mut earlier = serde_json::to_value(governor.saved_stats()).unwrap();
        earlier.as_object_mut().unwrap().remove("verify_measured");
        let read: GovernorStats = serde_json::from_value(earlier).unwrap();
        assert!(Governor::restored(&read, &roster).unwrap().verify.is_measured(17));
    }

    #[test]
    fn costs_without_texts_keep_nothing_that_texts_taught() {
        let before = taught();
        let stats = before.saved_stats().without_texts();
        let after = Governor::restored(&stats, &DRAFTERS).unwrap();
        assert!((after.verify.get(5) / before.verify.get(5) - 1.0).abs() < 1e-5);
        assert!(after.texts.iter().all(TextStats::is_empty));
    }

    #[test]
    fn saved_statistics_are_small() {
        let text = serde_json::to_string(&taught().saved_stats()).unwrap();
        assert!(text.len() < 16_000, "{} bytes", text.len());
    }

    #[test]
    fn impossible_statistics_are_not_restored() {
        let sound = by_way_of_a_file(&taught());
        assert!(Governor::restored(&sound, &DRAFTERS).is_some());
        let mut number = 0;
        let mut spoiled = |spoil: &dyn Fn(&mut GovernorStats)| {
            let mut saved = sound.clone();
            spoil(&mut saved);
            number += 1;
            assert!(Governor::restored(&saved, &DRAFTERS).is_none(), "case {number}: {saved:?}");
        };
        spoiled(&|saved| saved.version += 1);
        spoiled(&|saved| saved.verify.truncate(16));
        spoiled(&|saved| saved.judge[3] = f32::NAN);
        spoiled(&|saved| costs(saved).draft[0][0] = 0.0);
        spoiled(&|saved| costs(saved).draft[1][16] = 1e9);
        spoiled(&|saved| costs(saved).level = -1.0);
        spoiled(&|saved| costs(saved).eviction_cost = 0.0);
        spoiled(&|saved| costs(saved).token_prefill_ms = f64::INFINITY);
        for share in ["[3.0,2.0]", "[-1.0,2.0]"] {
            let text = serde_json::to_string(&sound).unwrap().replacen("[0.0,0.0]", share, 1);
            spoiled(&|saved| *saved = serde_json::from_str(&text).unwrap());
        }
    }

    #[test]
    fn statistics_of_version_1_are_restored_for_any_drafters() {
        let before = taught();
        let now = serde_json::to_value(before.saved_stats()).unwrap();
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
        let read: GovernorStats = serde_json::from_value(first.clone()).unwrap();
        let after = Governor::restored(&read, &DRAFTERS).unwrap();
        let known = Governor::restored(&by_way_of_a_file(&before), &DRAFTERS).unwrap();
        assert!(after.texts == known.texts);
        assert_eq!(
            after.drafters[MODEL].token_prefill_ms.to_bits(),
            known.drafters[MODEL].token_prefill_ms.to_bits()
        );
        let free = [DRAFTERS[0], DRAFTERS[2]];
        assert!(Governor::restored(&read, &free).is_some(), "without the model");
        let two = [DRAFTERS[MODEL], DRAFTERS[MODEL]];
        assert!(Governor::restored(&read, &two).is_none(), "the costs of a second model are not known");
        let mut later = first;
        later["version"] = 3.into();
        let read: GovernorStats = serde_json::from_value(later).unwrap();
        assert!(Governor::restored(&read, &DRAFTERS).is_none());
    }
}
