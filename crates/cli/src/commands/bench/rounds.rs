//! Times of the rounds of real replies, by number of rows and by drafter.

use std::collections::BTreeMap;

use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::trace::Round;
use serde::Serialize;

use super::numbers::{median, number};

/// Medians over all rounds with the same number of rows and the same drafters.
#[derive(Debug, Serialize)]
pub struct RoundCost {
    /// Rows of the verification: the draft and the token before it.
    pub rows: usize,
    /// Drafters of the draft, in order; empty without a draft.
    pub drafters: Vec<DrafterKind>,
    pub rounds: usize,
    /// Position in the context.
    pub position: f64,
    pub draft_ms: f64,
    pub verify_ms: f64,
    /// Sampling, verification and everything else after the pass.
    pub sample_ms: f64,
}

/// Times of rounds, grouped by rows and drafters.
#[derive(Default)]
pub struct RoundTimes(BTreeMap<(usize, Vec<DrafterKind>), Group>);

#[derive(Default)]
struct Group {
    positions: Vec<f64>,
    draft: Vec<f64>,
    verify: Vec<f64>,
    sample: Vec<f64>,
}

impl RoundTimes {
    /// Adds the rounds of a reply except its first, which also pays for the prompt.
    pub fn add(&mut self, rounds: &[Round]) {
        for round in rounds.iter().skip(1) {
            let mut drafters = Vec::new();
            for drafted in &round.drafted {
                if !drafters.contains(&drafted.drafter) {
                    drafters.push(drafted.drafter);
                }
            }
            let group = self.0.entry((round.drafted.len() + 1, drafters)).or_default();
            let times = &round.times;
            group.positions.push(f64::from(round.position));
            group.draft.push(f64::from(times.draft_ms));
            group.verify.push(f64::from(times.verify_ms));
            group.sample.push(f64::from(times.sample_ms + times.rest_ms));
        }
    }

    /// Median position of all rounds; `None` without rounds.
    pub fn position(&self) -> Option<usize> {
        let positions = self.0.values().flat_map(|group| group.positions.iter().copied());
        median(positions.collect()).map(|position| position as usize)
    }

    /// The groups, by rows.
    pub fn costs(self) -> Vec<RoundCost> {
        let cost = |((rows, drafters), group): ((usize, Vec<DrafterKind>), Group)| RoundCost {
            rows,
            rounds: group.verify.len(),
            drafters,
            position: median(group.positions).unwrap_or_default(),
            draft_ms: median(group.draft).unwrap_or_default(),
            verify_ms: median(group.verify).unwrap_or_default(),
            sample_ms: median(group.sample).unwrap_or_default(),
        };
        self.0.into_iter().map(cost).collect()
    }
}

/// Lines of a table over several ways of decoding. Ratios are over the first way's pass of one row.
pub fn table(ways: &[(&str, &[RoundCost])]) -> Vec<String> {
    let one_row = |costs: &[RoundCost]| costs.iter().find(|cost| cost.rows == 1).map(|cost| cost.verify_ms);
    let plain = ways.first().and_then(|(_, costs)| one_row(costs));
    let heading =
        "rounds of     rows  drafted by            rounds  position  draft ms  verify ms  ratio  sample ms";
    let mut lines = vec![heading.to_owned()];
    for (name, costs) in ways {
        for cost in *costs {
            let RoundCost { rows, rounds, position, draft_ms, verify_ms, sample_ms, .. } = cost;
            let drafters = match &cost.drafters[..] {
                [] => "-".to_owned(),
                drafters => drafters.iter().copied().map(label).collect::<Vec<_>>().join(" + "),
            };
            let ratio = number(plain.map(|plain| verify_ms / plain), 2);
            lines.push(format!(
                "{name:12}{rows:>6}  {drafters:20}{rounds:>8}  {position:>8.0}  {draft_ms:>8.3}  \
                 {verify_ms:>9.3}  {ratio:>5}  {sample_ms:>9.3}"
            ));
        }
    }
    lines
}

fn label(drafter: DrafterKind) -> &'static str {
    match drafter {
        DrafterKind::Model => "model",
        DrafterKind::Head => "head",
        DrafterKind::Ngram => "n-gram",
        DrafterKind::Recycling => "recycling",
        DrafterKind::Forced => "forced",
    }
}

#[cfg(test)]
mod tests {
    use foretoken_engine::trace::{Drafted, LengthReason, Outcome, Times};

    use super::*;

    fn round(position: u32, drafters: &[DrafterKind], verify_ms: f32) -> Round {
        let drafted = |&drafter: &DrafterKind| Drafted {
            token: 1,
            text: String::new(),
            parent: None,
            draft_probability: 1.0,
            target_probability: None,
            acceptance: None,
            outcome: Outcome::Discarded,
            drafter,
            survival: None,
        };
        Round {
            index: position,
            position,
            drafted: drafters.iter().map(drafted).collect(),
            extra: None,
            draft_length: drafters.len() as u32,
            reason: LengthReason::Governed,
            threshold: None,
            expected: None,
            row_price: None,
            staged: false,
            decision: None,
            experts: None,
            times: Times { draft_ms: 0.5, verify_ms, sample_ms: 0.2, rest_ms: 0.1 },
            at_ms: 0.0,
            logprobs: Vec::new(),
        }
    }

    #[test]
    fn rounds_are_grouped_by_rows_and_drafters_without_the_first() {
        use DrafterKind::{Head, Ngram};
        let mut times = RoundTimes::default();
        times.add(&[
            round(9, &[], 500.0),
            round(10, &[], 2.0),
            round(11, &[Head, Ngram], 4.0),
            round(14, &[Head, Head], 3.0),
            round(15, &[Head, Head], 9.0),
            round(17, &[Head, Head], 5.0),
        ]);
        assert_eq!(times.position(), Some(14));
        let costs = times.costs();
        let found: Vec<_> =
            costs.iter().map(|cost| (cost.rows, &cost.drafters[..], cost.rounds, cost.verify_ms)).collect();
        assert_eq!(found, [(1, &[][..], 1, 2.0), (3, &[Head][..], 3, 5.0), (3, &[Head, Ngram][..], 1, 4.0)]);
        let lines = table(&[("plain", &costs)]);
        assert_eq!(lines.len(), 4);
        assert!(lines[2].contains("head") && lines[2].contains("2.50"), "{}", lines[2]);
    }

    #[test]
    fn no_rounds_have_no_median_position() {
        assert_eq!(RoundTimes::default().position(), None);
    }
}
