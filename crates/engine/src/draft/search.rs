//! Best-first search for the draft of a round.
//!
//! Each candidate has a survival: the product of the calibrated chances on its path. A round is
//! worth its expected tokens, 1 + the sum of the survivals of its verified guesses, minus the
//! tokens usually written in its time. So a guess is verified if its survival pays for its row, and
//! the drafter makes another step if the guesses that it is expected to bring pay for the step and
//! for their rows. With raw probabilities and a fixed number of rows this is EAGLE-2 (Li et al.
//! 2024), with chances by depth and rank alone Sequoia (Chen et al. 2024), with one step for all
//! depths DDTree (Ringel and Romano 2026).
//!
//! A certain guess may be dropped after all. A drawn one may not, or the text would have another
//! distribution: it is valued before its draw, by what is known without it, and then stays. Only
//! what follows it may depend on it.

use foretoken_forward::Row;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::{Draft, DraftRequest};
use crate::accept::{Guess, Guesses};
use crate::context::{After, Context};
use crate::drafter_kind::DrafterKind;
use crate::sampler::Sampler;
use crate::trace::LengthReason;

/// Maximum number of rows of a step after the first.
const MAX_ROWS_PER_STEP: usize = 8;

/// See the module.
pub struct Search<'a> {
    request: &'a DraftRequest<'a>,
    context: &'a Context,
    drafter: DrafterKind,
    /// End tokens: nothing is drafted after one.
    ends: &'a [TokenId],
    /// True if guesses are the likeliest tokens, whatever the sampler's settings.
    is_certain: bool,
    candidates: Vec<Candidate>,
    /// Rows of each step so far; the first follows the text.
    steps: Vec<usize>,
    /// Why there are fewer guesses than requested.
    shortened: Option<LengthReason>,
}

#[derive(Debug)]
struct Candidate {
    /// Its parent is an index of the candidates, which have parents before their children.
    guess: Guess,
    depth: usize,
    /// Chance that it and all its ancestors are accepted.
    survival: f64,
    /// True if its children are candidates.
    is_expanded: bool,
}

impl<'a> Search<'a> {
    /// Starts a draft of `drafter` after `context`, in whose tokens guesses are; `ends` are end
    /// tokens.
    pub fn new(
        request: &'a DraftRequest<'a>,
        context: &'a Context,
        drafter: DrafterKind,
        ends: &'a [TokenId],
    ) -> Self {
        let (candidates, steps) = (Vec::new(), Vec::new());
        Self { request, context, drafter, ends, is_certain: false, candidates, steps, shortened: None }
    }

    /// Guesses the likeliest tokens if `is_certain`, whatever the sampler's settings.
    #[must_use]
    pub fn certain(self, is_certain: bool) -> Self {
        Self { is_certain, ..self }
    }

    /// Candidates to expand in the next step, `None` for the end of the text. Empty at the end of
    /// the search.
    pub fn next_step(&mut self) -> Vec<Option<usize>> {
        if self.steps.is_empty() {
            self.steps.push(1);
            return if self.request.length > 0 { vec![None] } else { Vec::new() };
        }
        let chosen = self.chosen();
        let mut open: Vec<(usize, f64)> = chosen
            .iter()
            .filter(|&&index| self.can_expand(index))
            .map(|&index| (index, self.gain(index, chosen.len())))
            .collect();
        open.sort_by(|a, b| b.1.total_cmp(&a.1));
        let rows = self.rows(&open);
        if rows == 0 {
            self.shortened = self.reason(&open, &chosen);
            return Vec::new();
        }
        self.steps.push(rows);
        let expand = |(index, _): (usize, f64)| {
            self.candidates[index].is_expanded = true;
            Some(index)
        };
        open.into_iter().take(rows).map(expand).collect()
    }

    /// Adds guesses after `parent` from the drafter's `row` there. `confidence` is the drafter's
    /// own estimate, if it has one beside its logits.
    ///
    /// # Errors
    /// As [`Sampler::guess`].
    pub fn expand(
        &mut self,
        parent: Option<usize>,
        row: Row<'_>,
        confidence: Option<f32>,
        sampler: &mut Sampler,
    ) -> Result<()> {
        let path = self.path(parent);
        let after = After { text: self.context, guesses: &path };
        let adapt = |guess: Guess| {
            let confidence = confidence.unwrap_or(guess.confidence);
            Guess { confidence, drafter: self.drafter, ..guess }
        };
        if self.is_certain || !sampler.draws() {
            let width = self.request.width;
            let guesses = match self.is_certain {
                true => sampler.likeliest(row, after, width)?,
                false => sampler.guess(row, after, width)?,
            };
            let guesses: Vec<Guess> = guesses.into_iter().map(adapt).collect();
            self.add(parent, guesses);
            return Ok(());
        }
        let Some(mut slots) = sampler.slots(row, after)? else { return Ok(()) };
        // Chance that all siblings before are rejected.
        let mut left = 1.0;
        for rank in 0..self.request.width {
            let confidence = confidence.unwrap_or(slots.confidence());
            let chance = self.chance(parent, rank, confidence, true);
            if !self.pays(parent, rank, left * chance) {
                break;
            }
            let Some(guess) = slots.draw(sampler)? else { break };
            let guess = Guess { confidence, drafter: self.drafter, ..guess };
            self.push(parent, guess, left * chance);
            left *= 1.0 - chance;
        }
        Ok(())
    }

    /// Adds certain guesses after `parent`, likeliest first.
    pub fn add(&mut self, parent: Option<usize>, guesses: impl IntoIterator<Item = Guess>) {
        for (rank, guess) in guesses.into_iter().take(self.request.width).enumerate() {
            let chance = self.chance(parent, rank, guess.confidence, false);
            self.push(parent, guess, chance);
        }
    }

    /// Adds guesses that follow `parent` and each other, which one step brought.
    pub fn add_chain(&mut self, mut parent: Option<usize>, guesses: impl IntoIterator<Item = Guess>) {
        for guess in guesses {
            if parent.is_some_and(|parent| !self.can_expand(parent) && !self.candidates[parent].is_expanded) {
                return;
            }
            let chance = self.chance(parent, 0, guess.confidence, guess.drawn_from.is_some());
            if let Some(parent) = parent {
                self.candidates[parent].is_expanded = true;
            }
            self.push(parent, guess, chance);
            parent = Some(self.candidates.len() - 1);
        }
    }

    fn push(&mut self, parent: Option<usize>, guess: Guess, chance: f64) {
        let survival = self.survival(parent) * chance;
        let (guess, depth) = (Guess { parent, ..guess }, self.depth(parent));
        self.candidates.push(Candidate { guess, depth, survival, is_expanded: false });
    }

    /// Token at `place`.
    pub fn token(&self, place: Option<usize>) -> TokenId {
        match place {
            Some(index) => self.candidates[index].guess.token,
            None => self.context[self.context.len() - 1],
        }
    }

    /// Candidate that `place` follows.
    pub fn parent(&self, place: usize) -> Option<usize> {
        self.candidates[place].guess.parent
    }

    /// Tokens after the text up to `place`, inclusive.
    pub fn path(&self, place: Option<usize>) -> Vec<TokenId> {
        let up = std::iter::successors(place, |&index| self.parent(index));
        let mut path: Vec<TokenId> = up.map(|index| self.token(Some(index))).collect();
        path.reverse();
        path
    }

    /// The likeliest expanded candidates, each the child of the one before.
    pub fn likeliest_path(&self) -> Vec<usize> {
        let next = |parent: Option<usize>| {
            let children = (0..self.candidates.len()).filter(|&index| self.parent(index) == parent);
            let expanded = children.filter(|&index| self.candidates[index].is_expanded);
            expanded.max_by(|&a, &b| self.candidates[a].survival.total_cmp(&self.candidates[b].survival))
        };
        std::iter::successors(next(None), |&index| next(Some(index))).collect()
    }

    /// Depth of a guess after `parent`: 0 for the first.
    pub fn depth(&self, parent: Option<usize>) -> usize {
        parent.map_or(0, |parent| self.candidates[parent].depth + 1)
    }

    fn survival(&self, place: Option<usize>) -> f64 {
        place.map_or(1.0, |index| self.candidates[index].survival)
    }

    /// Chance that a guess after `parent` is accepted if `parent` is; the drafter's confidence
    /// where nothing else is known.
    fn chance(&self, parent: Option<usize>, rank: usize, confidence: f32, is_drawn: bool) -> f64 {
        let worth = self.request.worth.as_ref();
        let depth = self.depth(parent);
        worth.map_or(f64::from(confidence), |worth| worth.chances.of(depth, rank, confidence, is_drawn))
    }

    /// Returns true if a step may continue from a candidate.
    fn can_expand(&self, index: usize) -> bool {
        let Candidate { guess, depth, is_expanded, .. } = &self.candidates[index];
        !is_expanded && !self.ends.contains(&guess.token) && depth + 1 < self.request.length
    }

    /// Expected tokens that the likeliest guess after a candidate adds, minus those that its row
    /// costs beyond `chosen` guesses.
    fn gain(&self, index: usize, chosen: usize) -> f64 {
        let Candidate { survival, depth, .. } = self.candidates[index];
        self.request.worth.as_ref().map_or(survival, |worth| {
            survival * worth.chances.next(depth + 1) - worth.prices.next_rows(chosen)
        })
    }

    /// Number of rows of the next step that brings the most: of the first of `open`, each with its
    /// gain.
    fn rows(&self, open: &[(usize, f64)]) -> usize {
        let expanded: usize = self.steps.iter().sum();
        let most = self.request.nodes.saturating_sub(expanded).min(MAX_ROWS_PER_STEP).min(open.len());
        let Some(worth) = &self.request.worth else { return most };
        let (mut gain, mut best) = (0.0, (0, 0.0));
        for rows in 1..=most {
            gain += open[rows - 1].1;
            let value = gain - worth.prices.step(rows);
            if value > best.1 {
                best = (rows, value);
            }
        }
        best.0
    }

    /// Why the search ended with the guesses `chosen`, although those of `open` could be continued.
    fn reason(&self, open: &[(usize, f64)], chosen: &[usize]) -> Option<LengthReason> {
        if chosen.len() >= self.request.nodes {
            return None;
        }
        match open {
            [] if chosen.is_empty() => Some(LengthReason::Unlikely),
            [] => {
                let end = chosen.iter().any(|&index| self.ends.contains(&self.token(Some(index))));
                end.then_some(LengthReason::EndOfText)
            }
            [(_, gain), ..] if *gain > 0.0 => Some(LengthReason::StepTooDear),
            _ => Some(LengthReason::Unlikely),
        }
    }

    /// Returns true if a guess of this rank is worth its row, before it is drawn; `chance` is that
    /// it is accepted after `parent`.
    fn pays(&self, parent: Option<usize>, rank: usize, chance: f64) -> bool {
        let drawn = self.candidates.len();
        let Some(worth) = &self.request.worth else {
            // Later siblings leave room for the rest of the path.
            let path = if rank > 0 { self.request.length - self.depth(parent) - 1 } else { 0 };
            return drawn + path < self.request.nodes;
        };
        let survival = self.survival(parent) * chance;
        drawn < self.request.nodes && survival >= worth.least_survival && survival >= worth.prices.row(drawn)
    }

    /// Candidates to verify: all drawn ones, or the likeliest certain ones that are worth the most,
    /// parents before their children.
    fn chosen(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.candidates.len()).collect();
        if self.candidates.iter().any(|candidate| candidate.guess.drawn_from.is_some()) {
            return order;
        }
        // No survival is larger than its parent's, and the sort is stable.
        order.sort_by(|&a, &b| self.candidates[b].survival.total_cmp(&self.candidates[a].survival));
        order.truncate(self.request.nodes);
        let Some(worth) = &self.request.worth else { return order };
        let (mut value, mut best) = (0.0, (0, 0.0));
        for (count, &index) in (1..).zip(&order) {
            let survival = self.candidates[index].survival;
            if survival < worth.least_survival {
                break;
            }
            value += survival - worth.prices.row(count - 1);
            if value > best.1 {
                best = (count, value);
            }
        }
        order.truncate(best.0);
        order
    }

    /// The draft: the guesses to verify, and all candidates.
    pub fn finish(self) -> Draft {
        let chosen = self.chosen();
        let mut places = vec![None; self.candidates.len()];
        let mut guesses = Guesses::default();
        for (place, index) in chosen.into_iter().enumerate() {
            let guess = &self.candidates[index].guess;
            places[index] = Some(place);
            guesses.push(Guess { parent: guess.parent.and_then(|parent| places[parent]), ..guess.clone() });
        }
        let candidates = self.candidates.into_iter().map(|candidate| candidate.guess).collect();
        Draft { guesses, shortened: self.shortened, steps: self.steps, candidates }
    }
}
