//! Order of the drafts for a target. A pure function of the facts about both; opens nothing.
//!
//! Order: a head made for the target, known pairs, drafts that were faster in a trial, drafts that
//! fit by vocabulary and size, n-grams. A choice changes no order: the list stays as it was read.

use std::cmp::Ordering;

use crate::ipc::{DraftMerit, DraftOption};

/// Best size of a draft relative to its target in bytes: the bytes read determine the time of a
/// pass.
const BEST_SHARE: f64 = 0.1;

/// Largest relative size of a draft that is chosen without a trial: half of the gain is lost before
/// the first rejection.
const LARGEST_SHARE: f64 = 0.5;

/// A draft, with the facts that compare it to the target.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub option: DraftOption,
    /// Size relative to the target; `None` for a drafter without a model.
    pub share: Option<f64>,
    /// `true` if every token it drafts is one of the target's.
    pub same_vocabulary: bool,
    /// `true` for a draft head made for the target.
    pub is_head: bool,
    /// `true` if the library knows both as a pair.
    pub known_pair: bool,
    /// Speed-up over plain decoding, as predicted by a trial on this computer.
    pub speedup: Option<f64>,
    /// Memory needed in bytes.
    pub needs: u64,
    /// `true` if it fits into memory together with the target.
    pub room: bool,
}

/// Rank of a draft, the best first; within a variant, lower is better.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Rank {
    Head,
    /// Distance from the best size.
    KnownPair(f64),
    /// Time per token relative to plain decoding.
    Tried(f64),
    /// Distance from the best size.
    SameVocabulary(f64),
    NeedsNoModel,
    /// Usable without a reason to choose it: distance from the best size.
    Unproven(f64),
    NoDrafts,
    Unusable,
}

impl Candidate {
    /// A drafter without a model.
    pub fn without_model(option: DraftOption) -> Self {
        let (known_pair, is_head, needs) = (false, false, 0);
        let share = None;
        Self { option, share, same_vocabulary: true, is_head, known_pair, speedup: None, needs, room: true }
    }

    fn rank(&self) -> Rank {
        if self.option.problem.is_some() {
            return Rank::Unusable;
        }
        let Some(share) = self.share else {
            return if self.option.drafts() { Rank::NeedsNoModel } else { Rank::NoDrafts };
        };
        let distance = (share / BEST_SHARE).ln().abs();
        match self.speedup {
            _ if !self.room => Rank::Unproven(distance),
            Some(speedup) if speedup > 1.0 => Rank::Tried(1.0 / speedup),
            Some(_) => Rank::Unproven(distance),
            None if self.is_head => Rank::Head,
            None if self.known_pair => Rank::KnownPair(distance),
            None if self.same_vocabulary && share <= LARGEST_SHARE => Rank::SameVocabulary(distance),
            None => Rank::Unproven(distance),
        }
    }

    /// Returns the reason for this rank; `None` without a reason for or against the draft.
    fn merit(&self, rank: Rank) -> Option<DraftMerit> {
        Some(match rank {
            Rank::Head => DraftMerit::MadeForTarget,
            Rank::KnownPair(_) => DraftMerit::KnownPair,
            Rank::Tried(_) => DraftMerit::Tried { speedup: self.speedup? },
            Rank::SameVocabulary(_) => DraftMerit::SameVocabulary,
            Rank::NeedsNoModel => DraftMerit::NeedsNoModel,
            Rank::Unproven(_) if !self.room => DraftMerit::MayNotFit,
            Rank::Unproven(_) if self.speedup.is_some() => DraftMerit::NoFaster,
            Rank::Unproven(_) | Rank::NoDrafts | Rank::Unusable => return None,
        })
    }
}

/// Sorts the best first and sets each draft's merit.
pub fn rank(candidates: &mut [Candidate]) {
    for candidate in &mut *candidates {
        candidate.option.merit = candidate.merit(candidate.rank());
    }
    candidates.sort_by(|one, other| one.rank().partial_cmp(&other.rank()).unwrap_or(Ordering::Equal));
}

/// Returns the draft with this id if it can draft for the target.
pub fn usable<'a>(drafts: &'a [Candidate], id: &str) -> Option<&'a Candidate> {
    drafts.iter().find(|draft| draft.option.id == id && draft.option.problem.is_none())
}

/// Returns the draft to use of ranked ones: `last_used` with this target if it is usable, else the
/// best.
pub fn choose<'a>(ranked: &'a [Candidate], last_used: Option<&str>) -> Option<&'a Candidate> {
    last_used.and_then(|id| usable(ranked, id)).or_else(|| ranked.first())
}

#[cfg(test)]
mod tests {
    use foretoken_model::ProblemKind;

    use super::*;
    use crate::ipc::{DRAFT_NGRAM, DRAFT_NONE, Problem};

    fn option(id: &str) -> DraftOption {
        DraftOption { id: id.to_owned(), label: id.to_owned(), detail: None, merit: None, problem: None }
    }

    /// A model with the target's vocabulary and `share` of its bytes.
    fn model(id: &str, share: f64) -> Candidate {
        Candidate { share: Some(share), ..Candidate::without_model(option(id)) }
    }

    fn problem() -> Problem {
        Problem { kind: ProblemKind::OtherVocabulary, reason: "they differ".to_owned() }
    }

    /// Ranks `models`, n-grams and plain decoding.
    fn ranked(models: &[Candidate]) -> Vec<Candidate> {
        let others = [DRAFT_NONE, DRAFT_NGRAM].map(|id| Candidate::without_model(option(id)));
        let mut all: Vec<Candidate> = others.into_iter().chain(models.iter().cloned()).collect();
        rank(&mut all);
        all
    }

    fn order(models: &[Candidate]) -> Vec<(String, Option<DraftMerit>)> {
        let ranked = ranked(models).into_iter();
        ranked.map(|candidate| (candidate.option.id, candidate.option.merit)).collect()
    }

    fn ids(models: &[Candidate]) -> Vec<String> {
        order(models).into_iter().map(|(id, _)| id).collect()
    }

    #[test]
    fn known_pairs_rank_before_tried_drafts_and_those_before_drafts_with_only_the_vocabulary() {
        let same = model("same", 0.1);
        let tried = Candidate { speedup: Some(1.84), ..model("tried", 0.4) };
        let known = Candidate { known_pair: true, ..model("known", 0.3) };
        let found = order(&[same, tried, known]);
        let expected = [
            ("known", Some(DraftMerit::KnownPair)),
            ("tried", Some(DraftMerit::Tried { speedup: 1.84 })),
            ("same", Some(DraftMerit::SameVocabulary)),
            (DRAFT_NGRAM, Some(DraftMerit::NeedsNoModel)),
            (DRAFT_NONE, None),
        ];
        assert_eq!(found, expected.map(|(id, merit)| (id.to_owned(), merit)));
    }

    #[test]
    fn a_head_made_for_the_target_ranks_before_models_unless_a_trial_was_slower() {
        let known = Candidate { known_pair: true, ..model("known", 0.1) };
        let head = Candidate { is_head: true, same_vocabulary: false, ..model("head", 0.1) };
        let found = order(&[known.clone(), head.clone()]);
        assert_eq!(found[0], ("head".to_owned(), Some(DraftMerit::MadeForTarget)));
        let slow = Candidate { speedup: Some(0.9), ..head };
        assert_eq!(ids(&[known, slow])[0], "known");
    }

    #[test]
    fn the_draft_used_last_is_chosen_if_it_is_usable_and_changes_no_order() {
        let known = Candidate { known_pair: true, ..model("known", 0.1) };
        let slow = Candidate { speedup: Some(1.0), room: false, ..model("slow", 0.9) };
        let mut foreign = model("foreign", 0.1);
        foreign.option.problem = Some(problem());
        let drafts = ranked(&[known, slow, foreign]);
        let chosen = |last| choose(&drafts, Some(last)).map(|draft| draft.option.id.as_str());
        for last in ["slow", DRAFT_NGRAM, DRAFT_NONE] {
            assert_eq!(chosen(last), Some(last));
        }
        for last in ["gone", "foreign"] {
            assert_eq!(chosen(last), Some("known"));
        }
        assert_eq!(choose(&[], Some("gone")), None);
    }

    #[test]
    fn an_unusable_draft_is_last() {
        let mut foreign = Candidate { known_pair: true, speedup: Some(3.0), ..model("foreign", 0.1) };
        foreign.option.problem = Some(problem());
        assert_eq!(ids(&[foreign]), [DRAFT_NGRAM, DRAFT_NONE, "foreign"]);
    }

    #[test]
    fn of_drafts_with_the_same_vocabulary_the_one_nearest_to_a_tenth_ranks_first() {
        let models = [model("half", 0.45), model("tenth", 0.12), model("hundredth", 0.01)];
        assert_eq!(ids(&models)[..3], ["tenth", "half", "hundredth"]);
    }

    #[test]
    fn n_grams_rank_before_large_foreign_too_big_and_slow_drafts() {
        let large = model("large", 0.6);
        let foreign = Candidate { same_vocabulary: false, ..model("foreign", 0.1) };
        let roomless = Candidate { known_pair: true, room: false, ..model("roomless", 0.1) };
        let tried = Candidate { known_pair: true, speedup: Some(1.0), ..model("tried", 0.1) };
        for doubtful in [large, foreign.clone(), roomless, tried] {
            assert_eq!(ids(std::slice::from_ref(&doubtful))[0], DRAFT_NGRAM, "{doubtful:?}");
        }
        let tried = Candidate { speedup: Some(1.2), ..foreign };
        assert_eq!(ids(&[tried])[0], "foreign", "a trial outranks the vocabulary");
    }
}
